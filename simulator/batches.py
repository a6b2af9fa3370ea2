"""Batches of chat requests, as both providers take them.

https://platform.openai.com/docs/guides/batch, https://platform.claude.com/docs/en/build-with-claude/batch-processing.
A batch takes as long as the setting says, and its requests are spread evenly over that time; they are answered when somebody looks.
"""

import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from simulator.conversation import ProviderError
from simulator.draw import Draws
from simulator.state import State
from simulator.wire import Request

Converse = Callable[[Request], tuple[int, str]]
"""Answers one chat request of a batch with a status and a body."""

Json = dict[str, object]

_CHAT, _MESSAGES = b"/v1/chat/completions", b"/v1/messages"
_FILE = re.compile(rb"/v1/files/(?P<id>[\w-]+)(?P<content>/content)?")
_BATCH = re.compile(
    rb"(?P<list>/v1/batches|/v1/messages/batches)(/(?P<id>[\w-]+)(/(?P<action>cancel|results))?)?"
)
_DAY_SECONDS = 86_400


@dataclass(slots=True)
class Call:
    """A request of a batch, and what has come of it: an answer, or the reason why there is none."""

    custom_id: str
    path: bytes
    body: bytes
    answer: tuple[int, str] | None = None
    left_out: str | None = None


@dataclass(slots=True)
class Batch:
    """A batch at either provider; times in seconds of Unix time."""

    id: str
    calls: list[Call]
    headers: dict[bytes, bytes]
    created: float
    seconds: float
    details: Json = field(default_factory=dict)
    failed: str | None = None
    cancelled: bool = False

    @property
    def ended(self) -> bool:
        """Whether nothing more will come of it."""
        return self.failed is not None or all(call.answer or call.left_out for call in self.calls)


class Batches:
    """The endpoints around batches.

    Args:
        state: The settings in force.
        converse: Answers the requests in them.
    """

    def __init__(self, state: State, converse: Converse) -> None:
        self._state = state
        self._converse = converse
        self._files: dict[str, bytes] = {}
        self._uploads: dict[str, Json] = {}
        self._uploaded = 0
        self._batches: dict[str, Batch] = {}

    @staticmethod
    def own(path: bytes) -> bool:
        """Whether a path is one of theirs."""
        return path == b"/v1/files" or bool(_FILE.fullmatch(path) or _BATCH.fullmatch(path))

    def handle(self, request: Request) -> str:
        """The body of the answer to a request to one of their paths.

        Raises:
            ProviderError: There is no such thing, or the request is malformed.
        """
        posted = request.method == b"POST"
        if request.path == b"/v1/files":
            return json.dumps(
                self._keep_file(request) if posted else _list_of(reversed(self._uploads.values()))
            )
        if found := _FILE.fullmatch(request.path):
            name = found["id"].decode()
            return self._file(name).decode() if found["content"] else self._change_file(request, name)
        found = _BATCH.fullmatch(request.path)
        if found is None:
            raise ProviderError("unknown_path", "Invalid URL")
        show = _show_openai if found["list"] == b"/v1/batches" else _show_anthropic
        if found["id"] is None and posted:
            return json.dumps(show(self._create(request, show is _show_openai)))
        if found["id"] is None:
            return self._list(show)
        batch = self._look(found["id"].decode())
        if found["action"] == b"results":
            return "".join(_anthropic_line(call) for call in batch.calls)
        if found["action"] == b"cancel" and not batch.ended:
            batch.cancelled = True
            self._answer_due(batch)
        if show is _show_openai and batch.ended:
            self._write_files(batch)
        return json.dumps(show(batch))

    def _list(self, show: Callable[[Batch], Json]) -> str:
        kind = "batch_" if show is _show_openai else "msgbatch_"
        newest_first = [batch for batch in reversed(self._batches.values()) if batch.id.startswith(kind)]
        return json.dumps(_list_of(show(batch) for batch in newest_first))

    def _change_file(self, request: Request, name: str) -> str:
        """Deletes an uploaded file; nothing else can be done with it."""
        if request.method != b"DELETE" or name not in self._uploads:
            raise ProviderError("unknown_path", f"No such File object: {name}")
        del self._uploads[name], self._files[name]
        return json.dumps({"id": name, "object": "file", "deleted": True})

    # -- making them -----------------------------------------------------------------------------------------------

    def _keep_file(self, request: Request) -> Json:
        filename, content = _file_part(request)
        self._uploaded += 1
        name = f"file-sim{self._uploaded:08x}"
        self._files[name] = content
        self._uploads[name] = about = {
            "id": name,
            "object": "file",
            "bytes": len(content),
            "created_at": int(time.time()),
            "filename": filename,
            "purpose": "batch",
            "status": "processed",
        }
        return about

    def _file(self, name: str) -> bytes:
        if name not in self._files:
            raise ProviderError("unknown_path", f"No such File object: {name}")
        return self._files[name]

    def _create(self, request: Request, openai: bool) -> Batch:
        members = _object(request.body)
        calls = self._openai_calls(members) if openai else _anthropic_calls(members)
        if len({call.custom_id for call in calls}) < len(calls) or not calls:
            raise ProviderError("malformed", "requests: custom_id must be unique, and there must be one")
        prefix = "batch_sim" if openai else "msgbatch_sim"
        batch = Batch(
            id=f"{prefix}{len(self._batches):08x}",
            calls=calls,
            headers=request.headers,
            created=time.time(),
            seconds=self._state.config.batch_ms / 1000,
            details={name: members[name] for name in ("input_file_id", "metadata") if name in members},
        )
        if 0 < self._state.config.batch_limit < self._enqueued() + len(calls) and openai:
            batch.failed = "token_limit_exceeded"
        self._batches[batch.id] = batch
        return batch

    def _openai_calls(self, members: Json) -> list[Call]:
        lines = self._file(str(members.get("input_file_id"))).decode().split("\n")
        entries = [_object(line.encode()) for line in lines if line]
        return [
            Call(str(entry.get("custom_id")), _CHAT, json.dumps(entry.get("body")).encode())
            for entry in entries
        ]

    def _enqueued(self) -> int:
        return sum(len(batch.calls) for batch in map(self._look, list(self._batches)) if not batch.ended)

    # -- answering what is in them ---------------------------------------------------------------------------------

    def _look(self, name: str) -> Batch:
        if name not in self._batches:
            raise ProviderError("unknown_path", f"No such batch: {name}")
        self._answer_due(self._batches[name])
        return self._batches[name]

    def _answer_due(self, batch: Batch) -> None:
        if batch.ended:
            return
        passed = (time.time() - batch.created) / batch.seconds if batch.seconds else 1.0
        due = int(len(batch.calls) * min(1.0, passed))
        for call in batch.calls[:due]:
            if call.answer is None and call.left_out is None:
                self._answer(batch, call)
        if batch.cancelled:
            for call in batch.calls[due:]:
                call.left_out = "canceled"

    def _answer(self, batch: Batch, call: Call) -> None:
        draws = Draws(self._state.config.seed, "expired", call.custom_id)
        if self._state.config.batch_expired and draws.unit() < self._state.config.batch_expired:
            call.left_out = "expired"
            return
        headers = batch.headers | {b"x-client-request-id": _identity(call.custom_id).encode()}
        call.answer = self._converse(Request(b"POST", call.path, headers, call.body))

    def _write_files(self, batch: Batch) -> None:
        answered = [_openai_line(call) for call in batch.calls if call.answer and call.answer[0] == 200]  # noqa: PLR2004
        faulty = [_openai_line(call) for call in batch.calls if not call.answer or call.answer[0] != 200]  # noqa: PLR2004
        for member, lines in (("output_file_id", answered), ("error_file_id", faulty)):
            if lines and not batch.failed:
                batch.details[member] = name = f"file-{member}-{batch.id}"
                self._files[name] = "".join(lines).encode()


def _list_of(entries: Iterable[Json]) -> Json:
    return {"object": "list", "data": list(entries), "has_more": False}


def _identity(custom_id: str) -> str:
    """What would be sent along with a direct call: the job's id, and what else was spelled with other characters."""
    job, *parts = custom_id.split("-")
    return "/".join([job, *(part.replace("_", "-") for part in parts)])


# -- as OpenAI shows them ---------------------------------------------------------------------------------------------


def _show_openai(batch: Batch) -> Json:
    reasons = {call.left_out for call in batch.calls}
    status = "in_progress"
    if batch.failed is not None:
        status = "failed"
    elif batch.ended:
        status = "cancelled" if batch.cancelled else "expired" if "expired" in reasons else "completed"
    failure = {"code": batch.failed, "message": "Enqueued token limit reached", "param": None, "line": None}
    return {
        "id": batch.id,
        "object": "batch",
        "endpoint": _CHAT.decode(),
        "completion_window": "24h",
        "created_at": int(batch.created),
        "expires_at": int(batch.created) + _DAY_SECONDS,
        "status": status,
        "errors": {"object": "list", "data": [failure]} if batch.failed else None,
        "request_counts": {
            "total": len(batch.calls),
            "completed": sum(call.answer is not None and call.answer[0] == 200 for call in batch.calls),  # noqa: PLR2004
            "failed": sum(call.answer is not None and call.answer[0] != 200 for call in batch.calls),  # noqa: PLR2004
        },
        "output_file_id": None,
        "error_file_id": None,
    } | batch.details


def _openai_line(call: Call) -> str:
    line: Json = {
        "id": f"batch_req_{call.custom_id}",
        "custom_id": call.custom_id,
        "response": None,
        "error": None,
    }
    if call.answer is not None:
        status, body = call.answer
        line["response"] = {
            "status_code": status,
            "request_id": f"req_{call.custom_id}",
            "body": json.loads(body),
        }
    else:
        code = "batch_expired" if call.left_out == "expired" else "batch_cancelled"
        line["error"] = {"code": code, "message": "This request was not executed."}
    return json.dumps(line) + "\n"


# -- as Anthropic shows them ------------------------------------------------------------------------------------------


def _show_anthropic(batch: Batch) -> Json:
    def count(kind: str) -> int:
        return sum(_anthropic_kind(call) == kind for call in batch.calls)

    status = "canceling" if batch.cancelled else "in_progress"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if batch.ended else status,
        "request_counts": {
            kind: count(kind) for kind in ("processing", "succeeded", "errored", "canceled", "expired")
        },
        "created_at": _rfc3339(batch.created),
        "expires_at": _rfc3339(batch.created + _DAY_SECONDS),
        "ended_at": _rfc3339(time.time()) if batch.ended else None,
        "archived_at": None,
        "cancel_initiated_at": _rfc3339(time.time()) if batch.cancelled else None,
        "results_url": f"https://api.anthropic.com/v1/messages/batches/{batch.id}/results"
        if batch.ended
        else None,
    }


def _anthropic_kind(call: Call) -> str:
    if call.answer is not None:
        return "succeeded" if call.answer[0] == 200 else "errored"  # noqa: PLR2004
    return call.left_out or "processing"


def _anthropic_line(call: Call) -> str:
    kind = _anthropic_kind(call)
    result: Json = {"type": kind}
    if call.answer is not None:
        result["message" if kind == "succeeded" else "error"] = json.loads(call.answer[1])
    return json.dumps({"custom_id": call.custom_id, "result": result}) + "\n"


def _anthropic_calls(members: Json) -> list[Call]:
    requests = members.get("requests")
    if not isinstance(requests, list) or not all(isinstance(entry, dict) for entry in requests):
        raise ProviderError("malformed", "requests: Field required", parameter="requests")
    calls = [
        Call(str(entry.get("custom_id")), _MESSAGES, json.dumps(entry.get("params")).encode())
        for entry in requests
    ]
    if not all(re.fullmatch(r"[\w-]{1,64}", call.custom_id, re.ASCII) for call in calls):
        raise ProviderError("malformed", "requests: custom_id should match '^[a-zA-Z0-9_-]{1,64}$'")
    return calls


def _rfc3339(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


# -- reading requests -------------------------------------------------------------------------------------------------


def _object(body: bytes) -> Json:
    try:
        members = json.loads(body)
    except ValueError:
        members = None
    if not isinstance(members, dict):
        raise ProviderError("malformed", "We could not parse the JSON body of your request.")
    return members


def _file_part(request: Request) -> tuple[str, bytes]:
    """The file in a form (RFC 7578), and its name."""
    found = re.search(rb'boundary="?([^";]+)', request.headers.get(b"content-type", b""))
    parts = request.body.split(b"--" + found[1]) if found else []
    for part in parts:
        head, _, content = part.partition(b"\r\n\r\n")
        if b'name="file"' in head:
            named = re.search(rb'filename="([^"]*)"', head)
            return named[1].decode() if named else "", content.removesuffix(b"\r\n")
    raise ProviderError("malformed", "file: Field required", parameter="file")
