"""What many commands are given, and the service that they ask."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from persona_assay import AssayClient

DEFAULT_URL = "http://127.0.0.1:8321"

Url = Annotated[str, typer.Option("--url", envvar="ASSAY_URL", help="Where the service is.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the service's JSON instead of text.")]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.", show_default=False)]


def client_of(url: str) -> "AssayClient":
    """A client of the service at a URL, with the key of ``ASSAY_API_KEY``; imported late, so that commands start fast."""
    from persona_assay.client import AssayClient  # noqa: PLC0415

    return AssayClient(url)
