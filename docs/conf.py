"""The documentation as a site: `make docs` builds the Markdown of this repository into build/site."""

from pathlib import Path

from sphinx.application import Sphinx

project = "Persona Assay"
extensions = ["myst_parser"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/*.md", "docs/**/*.md", "benchmarks/*.md"]
exclude_patterns = [".*", "build"]  # neither has pages, and they have most of the files
myst_heading_anchors = 4  # the anchors that GitHub makes: links to them are checked
suppress_warnings = ["toc.not_included"]
html_theme = "alabaster"
html_theme_options = {
    "page_width": "1160px",
    "font_family": "system-ui, sans-serif",
    "font_size": "16px",
    "code_font_size": "14px",
    "show_powered_by": False,
}
html_copy_source = False

NAVIGATION = {
    "Start": ["tutorial", "concepts", "glossary"],
    "How to": [
        "how-to/jobs",
        "how-to/importing",
        "how-to/uploads",
        "how-to/providers",
        "how-to/budgets",
        "how-to/batches",
        "how-to/rubrics",
        "how-to/judges",
        "how-to/labelling",
        "how-to/exports",
        "how-to/bundles",
        "how-to/continuous-integration",
        "how-to/python",
        "how-to/schedules",
        "how-to/webhooks",
        "how-to/deploying",
        "how-to/kubernetes",
        "how-to/upgrading",
    ],
    "Reference": [
        "metrics",
        "inference",
        "api",
        *(f"reference/{page}" for page in ("api", "cli", "server-cli", "client", "settings")),
    ],
    "Run it": ["operations", "guarantees", "performance", "provider-replies"],
    "Work on it": ["../CONTRIBUTING", "decisions/README", "../CHANGELOG", "../SECURITY"],
}


def add_navigation(_: Sphinx, page: str, source: list[str]) -> None:
    """Gives the front page its tables of contents, which GitHub would show as code."""
    if page == root_doc:
        for caption, pages in NAVIGATION.items():
            options = f":caption: {caption}\n:hidden:\n:maxdepth: 1"
            source[0] += f"\n\n```{{toctree}}\n{options}\n\n" + "\n".join(pages) + "\n```"


def lead_to_the_front_page(app: Sphinx, _: Exception | None) -> None:
    """The site's address is its directory's; pages lie as they do in the repository."""
    address = f"{root_doc}.html"
    Path(app.outdir, "index.html").write_text(f'<meta http-equiv="refresh" content="0; url={address}">')


def setup(app: Sphinx) -> None:
    """What Sphinx calls."""
    app.connect("source-read", add_navigation)
    app.connect("build-finished", lead_to_the_front_page)
