"""Options that many commands share, and the client for their URL."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from persona_assay import AssayClient

DEFAULT_URL = "http://127.0.0.1:8321"

URL = click.option(
    "--url", envvar="ASSAY_URL", default=DEFAULT_URL, show_envvar=True, help="URL of the service."
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the service's JSON instead of text.")
JOB = click.argument("job_id", metavar="JOB")


def client_of(url: str) -> "AssayClient":
    """A client of the service at a URL, with the key of ``ASSAY_API_KEY``; imported late, so that commands start fast."""
    from persona_assay.client import AssayClient  # noqa: PLC0415

    return AssayClient(url)
