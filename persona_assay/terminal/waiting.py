"""Wait for a job; explain how to reattach when interrupted."""

from typing import TYPE_CHECKING

from click.exceptions import Exit

from persona_assay import UnreachableError
from persona_assay.terminal.outcome import INTERRUPTED, CommandError, Json, say

if TYPE_CHECKING:
    from persona_assay import AssayClient


def wait_for(client: "AssayClient", job: Json, *, as_json: bool, outlives_us: bool = True) -> Json:
    """Show a job on standard error until it ends.

    Args:
        client: The client.
        job: Its current state.
        as_json: Whether the suggested command prints JSON too.
        outlives_us: Whether the job keeps running when the wait is interrupted.

    Returns:
        Its last state.

    Raises:
        CommandError: The service is unreachable; the job continues once it is back.
    """
    from persona_assay.terminal.consoles import err, printable  # noqa: PLC0415
    from persona_assay.terminal.progress import follow  # noqa: PLC0415

    simulated = " (simulated)" if job["simulated"] else ""
    say(f"{job['id']}  {printable(job['name'] or '')}{simulated}")
    again = f"assay watch {job['id']}" + (" --json" if as_json else "")
    try:
        return follow(client.follow(job["id"]), err())
    except UnreachableError as error:
        raise CommandError(
            f"{error}\nThe job continues when the service is back. Reattach with: {again}"
        ) from error
    except KeyboardInterrupt:
        if not outlives_us:
            raise
        say(f"The job keeps running. Reattach with: {again}. Cancel with: assay cancel {job['id']}")
        raise Exit(INTERRUPTED) from None
