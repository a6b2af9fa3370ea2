"""The report that people read: one self-contained HTML page that loads nothing and runs only its own script."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cache
from hashlib import sha256
from typing import Any

from jinja2 import Environment, Template
from markupsafe import Markup

from app.domain.judged import JudgedResponse
from app.reports.cards import Card, make_card
from app.reports.coefficients import coefficients
from app.reports.distributions import Distributions
from app.reports.persona_scores import persona_scores, score_share, score_step
from app.reports.run_matrices import RunMatrices
from app.reports.selection import Selection
from app.reports.summary import Summary
from app.reports.targets import Targets
from app.web.templates import make_environment, source, style_sheet

FOLDER = "report"

RESPONSE_BYTES = 2_200_000
"""Bytes of the page that responses may take; the rest of a page is some 100 kB."""
OPEN_CARDS = 6
"""Responses that are unfolded at first, and on paper."""
WEAKEST_CELLS = 5
RESPONSES_A_STEP = 50
"""After so many responses, some 5 ms, whoever else uses the event loop gets a turn."""


async def html_report(results: Mapping[str, Any], responses: AsyncIterator[JudgedResponse]) -> str:
    """A job's report as one HTML file.

    Args:
        results: The results document.
        responses: All of the job's responses; read once, of which a bounded number is kept.

    Returns:
        The page, under 3 MB but for jobs of thousands of cells. The same results and responses give the same page.
    """
    targets = Targets(results["cells"])
    selection = Selection(_texts(results))
    distributions, matrices = Distributions(targets), RunMatrices(results["cells"])
    async for response in responses:
        selection.add(make_card(response, targets))
        distributions.add(response)
        matrices.add(response)
        if selection.seen % RESPONSES_A_STEP == 0:
            await asyncio.sleep(0)
    return await asyncio.to_thread(
        _render, results, Summary(results, targets), selection, distributions, matrices
    )


def _texts(results: Mapping[str, Any]) -> int:
    """How many model × persona × task there are; a PersonaGym task need not have cells."""
    judged = {(c["model"], c["persona"], c["task"]) for c in results["cells"]}
    graded = {(r["model"], r["persona"], task) for r in results["persona_scores"] for task in r["tasks"]}
    return len(judged | graded)


def _render(
    results: Mapping[str, Any],
    summary: Summary,
    selection: Selection,
    distributions: Distributions,
    matrices: RunMatrices,
) -> str:
    styles, script = style_sheet(FOLDER, "report.css"), source(FOLDER, "report.js")
    models = summary.models()
    groups = distributions.groups([row.model for row in models])
    cards = _fitting(selection.by_importance())
    return _template("report.html.j2").render(
        results=results,
        policy=_policy(styles, script),
        styles=Markup(styles),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704
        models=models,
        gym=persona_scores(results),
        made=results.get("persona_set"),
        check=results.get("judging_check"),
        agreement=results.get("verdict_agreement", []),
        coefficients=coefficients(results),
        weakest_levels=summary.weakest_levels(),
        weakest_cells=summary.weakest_cells(WEAKEST_CELLS),
        quotes=[(row.model, selection.quotes(row.model)) for row in models],
        heat_maps=summary.heat_maps(row.model for row in models),
        distributions=groups,
        highest_share=max(
            (bar.share for _, found in groups for one in found for bar in one.bars), default=1.0
        ),
        run_matrices=matrices.matrices(),
        cards=cards,
        cards_html=_cards_html(cards),
        responses_seen=selection.seen,
        manifest=json.dumps(results.get("manifest", {}), ensure_ascii=False, indent=2),
    )


def _fitting(cards: list[Card]) -> list[Card]:
    """As many of the most important cards as the page has room for, the worst of them first."""
    chosen, left = [], RESPONSE_BYTES
    for card in cards:
        left -= len(_card_html(card, unfolded=False).encode())
        if left < 0:
            break
        chosen.append(card)
    return sorted(chosen, key=lambda card: (card.fidelity, -card.deviation, card.id))


def _cards_html(cards: list[Card]) -> Iterator[Markup]:
    for position, card in enumerate(cards):
        # The template escapes what it is given; its result must not be escaped again.
        yield Markup(_card_html(card, unfolded=position < OPEN_CARDS))  # noqa: S704


def _card_html(card: Card, *, unfolded: bool) -> str:
    return _template("card.html.j2").render(card=card, unfolded=unfolded)


def _policy(styles: str, script: str) -> str:
    """The page's content security policy: nothing but its own style sheet and its own script."""
    return (
        f"default-src 'none'; style-src '{_digest(styles)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return f"sha256-{base64.b64encode(sha256(content.encode()).digest()).decode()}"


@cache
def _template(name: str) -> Template:
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    environment = make_environment(FOLDER)
    environment.filters |= {"score_share": score_share, "score_step": score_step}
    return environment
