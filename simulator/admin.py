"""The simulator's own endpoints, under `/_sim/`: settings, counts and the ledger. They are not counted."""

import json
from collections.abc import Callable
from ipaddress import ip_address

from simulator.state import State
from simulator.wire import Answer, Request, head, json_message

PREFIX = b"/_sim/"


class Admin:
    """Answers for the simulator instead of the provider that it simulates.

    Args:
        state: What to show and to change.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._actions: dict[str, Callable[[bytes], Answer]] = {
            "GET /_sim/config": self._show_config,
            "POST /_sim/config": self._change_config,
            "GET /_sim/stats": self._show_stats,
            "POST /_sim/flush": self._flush,
            "GET /_sim/ledger": self._show_ledger,
        }

    def handle(self, request: Request) -> Answer:
        """Answers a request to a path under `/_sim/`; none that a page in a browser on the same machine may have made."""
        if _is_of_browser(request):
            return _answer(
                403, {"error": "the simulator's control answers programs on this machine, no browser"}
            )
        name = f"{request.method.decode('latin-1')} {request.path.decode('latin-1')}"
        action = self._actions.get(name)
        if action is None:
            return _answer(404, {"error": f"there is no {name}; there are {', '.join(self._actions)}"})
        return action(request.body)

    def _show_config(self, _: bytes) -> Answer:
        return _answer(200, self._state.config.as_dict())

    def _change_config(self, body: bytes) -> Answer:
        try:
            self._state.config = self._state.config.changed(json.loads(body))
        except (ValueError, TypeError, RecursionError) as problem:
            return _answer(400, {"error": str(problem)})
        return self._show_config(body)

    def _show_stats(self, _: bytes) -> Answer:
        accounts = {name: account.as_dict() for name, account in self._state.accounts.items()}
        return _answer(200, {**self._state.counters.as_dict(), "profiles": accounts})

    def _flush(self, _: bytes) -> Answer:
        ledger = self._state.ledger
        if ledger is not None:
            ledger.flush()
        return _answer(200, {"flushed": ledger is not None})

    def _show_ledger(self, _: bytes) -> Answer:
        ledger = self._state.ledger
        if ledger is None:
            return _answer(404, {"error": "the simulator was started without --ledger"})
        size = ledger.size()
        return Answer(
            head(200, size, content_type="application/jsonl").encode("ascii"), stream=ledger.read(size)
        )


def _is_of_browser(request: Request) -> bool:
    """Whether a browser's page asks: it says whence, or it asks by a name, which a page can have lead to this machine."""
    if any(name == b"origin" or name.startswith(b"sec-fetch-") for name in request.headers):
        return True
    host = request.headers.get(b"host", b"localhost").decode("latin-1").rpartition("@")[2]
    name = host.partition("]")[0].removeprefix("[") if host.startswith("[") else host.partition(":")[0]
    return name != "localhost" and not _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _answer(status: int, members: object) -> Answer:
    return Answer(json_message(status, json.dumps(members)))
