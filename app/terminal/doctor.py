"""`assay doctor`: whether settings, connections and the service are in order, and what to do where they are not."""

from collections.abc import Callable, Iterator
from http import HTTPStatus

import click
from click.exceptions import Exit

from app.terminal.findings import Finding
from persona_assay.terminal.options import AS_JSON, URL, client_of
from persona_assay.terminal.outcome import CommandError, print_json, told_errors


def command(of_operator: Callable[[], Iterator[Finding]]) -> click.Command:
    """The command.

    Args:
        of_operator: Looks at settings, the operator's file and the connections.
    """

    @click.command()
    @URL
    @AS_JSON
    def doctor(url: str, *, as_json: bool) -> None:
        """Check settings, connections and the service.

        Costs nothing. Exit status: 0 if all is in order, 1 if not.
        """
        with told_errors():
            found = []
            for finding in (*_told(of_operator), *_of_service(url)):
                found.append(finding)
                if not as_json:
                    click.echo(finding.line)
            if as_json:
                print_json({"data": [finding._asdict() for finding in found]})
        if not all(finding.good for finding in found):
            raise Exit(1)

    return doctor


def _told(of_operator: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from of_operator()
    except CommandError as error:
        yield Finding("settings", False, str(error))


def _of_service(url: str) -> Iterator[Finding]:
    """Whether the service answers, is ready, and takes the API key."""
    import httpx2  # noqa: PLC0415

    from persona_assay import AssayError, ProblemError  # noqa: PLC0415

    try:
        with client_of(url) as client:
            ready = httpx2.get(f"{client.url}/readyz", timeout=10)
            if ready.status_code != HTTPStatus.OK or '"degraded"' in ready.text:
                yield Finding("service", False, f"{client.url} is not ready: {ready.text.strip()[:300]}")
                return
            yield Finding("service", True, f"{client.url} is ready")
            client.jobs(limit=1)
            yield Finding("API key", True, "accepted, or none needed")
    except ProblemError as error:
        remedy = " Set ASSAY_API_KEY." if error.status == HTTPStatus.UNAUTHORIZED else ""
        yield Finding("API key", False, f"{error.detail}.{remedy}")
    except (AssayError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        words = f"cannot reach {url}: {str(error).rstrip('.')}. Start it with `assay up`, or set ASSAY_URL to its address."
        yield Finding("service", False, words)
