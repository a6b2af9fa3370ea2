"""Waits for a job, and says what becomes of it when somebody stops waiting."""

from typing import TYPE_CHECKING

from click.exceptions import Exit

from persona_assay import UnreachableError
from persona_assay.terminal.outcome import INTERRUPTED, CommandError, Json, say

if TYPE_CHECKING:
    from persona_assay import AssayClient


def wait_for(client: "AssayClient", job: Json, *, as_json: bool, outlives_us: bool = True) -> Json:
    """Shows a job on standard error until it is over.

    Args:
        client: Whom to ask.
        job: Its state by now.
        as_json: Whether what is said afterwards has to be JSON as well.
        outlives_us: Whether it goes on when nobody waits any more.

    Returns:
        Its last state.

    Raises:
        CommandError: The service has gone; the job goes on once it is back.
    """
    from persona_assay.terminal.consoles import err, printable  # noqa: PLC0415
    from persona_assay.terminal.progress import follow  # noqa: PLC0415

    simulated = " (simulated)" if job["simulated"] else ""
    say(f"{job['id']}  {printable(job['name'] or '')}{simulated}")
    again = f"assay watch {job['id']}" + (" --json" if as_json else "")
    try:
        return follow(client.follow(job["id"]), err())
    except UnreachableError as error:
        raise CommandError(f"{error}\nThe job goes on when the service is back: `{again}`.") from error
    except KeyboardInterrupt:
        if not outlives_us:
            raise
        say(f"The job goes on. To see it again: `{again}`. To stop it: `assay cancel {job['id']}`.")
        raise Exit(INTERRUPTED) from None
