"""What many commands are given, and the service that they ask."""

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from app.client.api_client import ApiClient

DEFAULT_URL = "http://127.0.0.1:8321"

Url = Annotated[str, typer.Option("--url", envvar="ASSAY_URL", help="Where the service is.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the service's JSON instead of text.")]
JobId = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.", show_default=False)]


def client_of(url: str) -> "ApiClient":
    """A client of the service at a URL; imported late, so that every command starts fast."""
    from app.client.api_client import ApiClient  # noqa: PLC0415

    return ApiClient(url)
