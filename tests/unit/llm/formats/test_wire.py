import json

import pytest

from app.llm.formats import wire
from app.llm.replies.error_bodies import MOST_BYTES, parsed, read_fault
from app.llm.replies.transport_reply import Reply
from app.ports import ModelCallError


def long(content: bytes) -> Reply:
    """A reply that is read on a thread because of the space after its JSON."""
    reply = Reply(200, {}, content + b" " * wire.LONG_BYTES)
    assert wire.is_long(reply)
    return reply


class TestLongReplies:
    @pytest.mark.parametrize(
        "content",
        [
            b'{"choices": [{"message": {"content": "\\u00e9 \xc3\xa9 \\ud834\\udd1e"}}], "usage": {"n": 1, "x": -1.5e3}}',
            b'{"a": "\\ud834"}',
            b'{"a": NaN, "b": Infinity}',
            b'{"a": 1, "a": 2}',
            json.dumps({"a": "\u00e9\U0001d11e"}, ensure_ascii=False).encode("utf-16"),
        ],
        ids=["a chat", "a lone surrogate", "no numbers", "a repeated field", "UTF-16"],
    )
    def test_they_say_what_short_ones_say(self, content: bytes) -> None:
        more = b"" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else b" "
        long_reply = Reply(200, {}, content + more * wire.LONG_BYTES)
        if not more:
            long_reply = Reply(200, {}, (content.decode("utf-16") + " " * wire.LONG_BYTES).encode("utf-16"))
        assert repr(wire.json_object(long_reply)) == repr(wire.json_object(Reply(200, {}, content)))

    @pytest.mark.parametrize(
        "content",
        [
            b"<html>",
            b'{"a":',
            b"[1]",
            b"\xff{}",
            b'{"a":' * 100_000,
            b'{"a": ' + b"1" * 5000 + b"}",
            json.dumps({"other": {str(n): n for n in range(wire.MOST_FIELDS + 1)}}).encode(),
            json.dumps({"other": [{}] * wire.MOST_NESTED}).encode(),
        ],
        ids=[
            "a page",
            "half a reply",
            "a list",
            "no text",
            "too deep",
            "a huge number",
            "too many fields",
            "too many objects",
        ],
    )
    def test_what_is_no_reply_is_malformed(self, content: bytes) -> None:
        with pytest.raises(ModelCallError, match="no JSON object"):
            wire.json_object(long(content))


class TestLongErrors:
    def test_an_error_within_the_bound_is_read(self) -> None:
        body = {"error": {"code": "insufficient_quota", "message": "m", "other": "x" * (MOST_BYTES - 100)}}
        assert read_fault(parsed(json.dumps(body).encode())).codes == ("insufficient_quota",)

    def test_one_beyond_it_is_text(self) -> None:
        found = parsed(json.dumps({"error": {"code": "c", "other": [{}] * MOST_BYTES}}).encode())
        assert isinstance(found, str)
        assert len(found) == MOST_BYTES
