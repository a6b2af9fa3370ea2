import json
import socket
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from simulator.bank import load_bank
from tests.integration.simulator.conftest import RunningSimulator
from tests.unit.simulator.prompts import OPTIONS, POST, essay_score

KEY = {"Authorization": "Bearer any"}
CLAUDE_KEY = {"x-api-key": "any", "anthropic-version": "2023-06-01"}
CHAT = "/v1/chat/completions"


def chat(prompt: str, model: str = "sim-judge") -> dict[str, object]:
    messages = [
        {"role": "system", "content": "You are a careless person."},
        {"role": "user", "content": prompt},
    ]
    return {"model": model, "messages": messages}


def raw_request(body: bytes, *headers: str) -> bytes:
    lines = (f"POST {CHAT} HTTP/1.1", "Host: simulator", "Authorization: Bearer any", *headers, "", "")
    return "\r\n".join(lines).encode() + body


def read_reply(stream: socket.SocketIO) -> tuple[int, dict[str, object]]:
    """Status and JSON of the next reply on a connection."""
    head = bytearray()
    while not head.endswith(b"\r\n\r\n"):
        byte = stream.read(1)
        assert byte, "the simulator has closed the connection"
        head += byte
    length = int(bytes(head).split(b"content-length: ")[1].split(b"\r\n")[0])
    body = b""
    while len(body) < length:
        body += stream.read(length - len(body)) or b""
    return int(head.split(b" ")[1]), json.loads(body)


def content(reply: dict[str, object]) -> str:
    text = json.loads(json.dumps(reply))["choices"][0]["message"]["content"]
    assert isinstance(text, str)
    return text


class TestBadRequests:
    @pytest.mark.parametrize(
        "body",
        [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"null", b"[]", {}, {"model": "sim-judge"}, {"model": 3, "messages": []},
         {"model": "sim-judge", "messages": [{"content": "no role"}]},
         {"model": "sim-judge", "messages": [{"role": "user", "content": {"not": "text"}}]},
         {"model": "sim-judge", "messages": [{"role": "system", "content": "only a system message"}]},
         {"model": "sim-judge", "messages": [{"role": "user", "content": "x"}], "max_tokens": 0},
         {"model": "sim-judge", "messages": [{"role": "user", "content": "x"}], "stream": True}],
    )  # fmt: skip
    def test_a_malformed_request_is_a_400_in_each_format(
        self, simulator: RunningSimulator, body: object
    ) -> None:
        status, _, text = simulator.request("POST", CHAT, body, KEY)
        assert (status, json.loads(text)["error"]["type"]) == (400, "invalid_request_error")
        status, _, text = simulator.request("POST", "/v1/messages", body, CLAUDE_KEY)
        assert (status, json.loads(text)["type"]) == (400, "error")
        assert json.loads(text)["error"]["type"] == "invalid_request_error"

    def test_a_request_without_a_key_is_a_401_in_each_format(self, simulator: RunningSimulator) -> None:
        status, _, text = simulator.request("POST", CHAT, chat("Hello"))
        assert (status, json.loads(text)["error"]["type"]) == (401, "invalid_request_error")
        status, _, text = simulator.request(
            "POST", "/v1/messages", chat("Hello"), {"anthropic-version": "2023-06-01"}
        )
        assert (status, json.loads(text)["error"]["type"]) == (401, "authentication_error")

    def test_an_unknown_path_is_a_404(self, simulator: RunningSimulator) -> None:
        assert simulator.request("GET", "/v2/anything", headers=KEY)[0] == 404
        assert simulator.request("GET", CHAT, headers=KEY)[0] == 404
        assert simulator.request("GET", "/_sim/anything")[0] == 404

    def test_what_is_not_http_is_refused_and_the_next_client_is_served(
        self, simulator: RunningSimulator
    ) -> None:
        with socket.create_connection(("127.0.0.1", simulator.port)) as connection:
            connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
            assert connection.recv(1000).startswith(b"HTTP/1.1 400 ")
        assert simulator.request("POST", CHAT, chat("Hello"), KEY)[0] == 200

    def test_an_endless_request_is_a_413(self, simulator: RunningSimulator) -> None:
        with socket.create_connection(("127.0.0.1", simulator.port), timeout=10) as connection:
            connection.sendall(raw_request(b"", "Content-Length: 99999999"))
            piece = b" " * 2**20
            try:
                for _ in range(17):
                    connection.sendall(piece)
                first = connection.recv(1000)
            except ConnectionError:
                first = b"HTTP/1.1 413 "  # the system may drop the reply together with what was not read
            assert first.startswith(b"HTTP/1.1 413 ")
        assert ("other", None, "other", 413) in simulator.counts()


class TestConnections:
    def test_a_body_may_come_in_any_pieces(self, simulator: RunningSimulator) -> None:
        body = json.dumps(
            chat(essay_score("I usually sleep well, even before an important day.", OPTIONS["N"]))
        ).encode()
        request = raw_request(body, f"Content-Length: {len(body)}")
        with (
            socket.create_connection(("127.0.0.1", simulator.port)) as connection,
            connection.makefile("rb", 0) as stream,
        ):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for start in range(0, len(request), 7):
                connection.sendall(request[start : start + 7])
            assert content(read_reply(stream)[1]) == "4"

    def test_a_body_may_be_chunked(self, simulator: RunningSimulator) -> None:
        body = json.dumps(
            chat(essay_score("I usually sleep well, even before an important day.", OPTIONS["N"]))
        ).encode()
        chunks = (
            b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (body[:50], body[50:])) + b"0\r\n\r\n"
        )
        with (
            socket.create_connection(("127.0.0.1", simulator.port)) as connection,
            connection.makefile("rb", 0) as stream,
        ):
            connection.sendall(raw_request(chunks, "Transfer-Encoding: chunked"))
            assert content(read_reply(stream)[1]) == "4"

    def test_one_connection_serves_many_requests_in_their_order(self, simulator: RunningSimulator) -> None:
        simulator.configure(latency_ms=10, jitter_ms=10)
        sentences = [load_bank().trait["A", score][0][0] for score in (1, 2, 3, 4, 5)]
        bodies = [json.dumps(chat(essay_score(sentence, OPTIONS["A"]))).encode() for sentence in sentences]
        with (
            socket.create_connection(("127.0.0.1", simulator.port)) as connection,
            connection.makefile("rb", 0) as stream,
        ):
            connection.sendall(b"".join(raw_request(body, f"Content-Length: {len(body)}") for body in bodies))
            assert [content(read_reply(stream)[1]) for _ in bodies] == ["1", "2", "3", "4", "5"]

    def test_a_client_that_asks_for_it_is_disconnected(self, simulator: RunningSimulator) -> None:
        _, headers, _ = simulator.request("POST", CHAT, chat("Hello"), {**KEY, "Connection": "close"})
        assert headers["connection"] == "close"

    def test_a_client_that_leaves_counts_as_not_answered(self, simulator: RunningSimulator) -> None:
        simulator.configure(latency_ms=300)
        body = json.dumps(chat("Hello")).encode()
        with socket.create_connection(("127.0.0.1", simulator.port)) as connection:
            connection.sendall(raw_request(body, f"Content-Length: {len(body)}"))
            time.sleep(0.1)
        time.sleep(0.4)
        assert simulator.counts()[CHAT, "sim-judge", "generation", 200] == (1, 0)
        assert [line["answered"] for line in simulator.ledger()] == [None]

    def test_replies_take_their_time(self, simulator: RunningSimulator) -> None:
        simulator.configure(latency_ms=120, jitter_ms=20)
        start = time.monotonic()
        _, headers, _ = simulator.request("POST", CHAT, chat("Hello"), KEY)
        assert 0.099 < time.monotonic() - start < 1
        assert 100 <= int(headers["openai-processing-ms"]) <= 140


class TestLedger:
    def test_it_tells_the_truth_about_a_generation(self, simulator: RunningSimulator) -> None:
        _, _, text = simulator.request(
            "POST", CHAT, chat(POST, "sim-faithful"), {**KEY, "X-Client-Request-Id": "job_1/g/4/a1"}
        )
        line = json.loads(json.dumps(simulator.ledger()[0]))
        assert line["text"] == content(json.loads(text)) == " ".join(unit[0] for unit in line["units"])
        assert (line["request_id"], line["kind"], line["model"], line["status"]) == (
            "job_1/g/4/a1",
            "generation",
            "sim-faithful",
            200,
        )
        assert line["persona"] == {"C": "low"}
        assert all(
            load_bank().truth(sentence) == (dimension, score) for sentence, dimension, score in line["units"]
        )

    def test_it_tells_the_truth_about_a_judgement(self, simulator: RunningSimulator) -> None:
        sentence = "I\u2019d call my imagination average \u2014 it works when I need it."
        simulator.request("POST", CHAT, chat(essay_score(sentence, OPTIONS["O"])), KEY)
        line = simulator.ledger()[0]
        assert (line["received"], line["answered"], line["kind"]) == (1, 1, "judge")
        assert (line["dimension"], line["sentence"], line["truth"], line["given"], line["reply"]) == (
            "O",
            sentence,
            3,
            3,
            "3",
        )

    def test_it_has_every_request_also_the_refused(self, simulator: RunningSimulator) -> None:
        simulator.request("POST", CHAT, b"{", KEY)
        simulator.request("POST", CHAT, chat("Hello", "gpt-4o"), KEY)
        simulator.request("GET", "/v1/models", headers=KEY)
        assert [
            (line["endpoint"], line["model"], line["kind"], line["status"]) for line in simulator.ledger()
        ] == [
            (CHAT, None, "other", 400),
            (CHAT, None, "other", 404),
            ("/v1/models", None, "other", 200),
        ]
        assert sum(received for received, _ in simulator.counts().values()) == 3

    def test_it_is_on_disk_soon_and_after_a_flush_at_once(self, simulator: RunningSimulator) -> None:
        simulator.request("POST", CHAT, chat("Hello"), KEY)
        simulator.request("POST", "/_sim/flush")
        assert len(simulator.ledger_file.read_text().splitlines()) == 1
        simulator.request("POST", CHAT, chat("Hello"), KEY)
        time.sleep(0.5)
        assert len(simulator.ledger_file.read_text().splitlines()) == 2

    def test_a_long_ledger_is_streamed_whole(self, simulator: RunningSimulator) -> None:
        line = b'{"received":0,"filler":"' + b"x" * 1000 + b'"}\n'
        simulator.request("POST", CHAT, chat("Hello"), KEY)
        simulator.request("POST", "/_sim/flush")
        with simulator.ledger_file.open("ab") as file:
            file.write(line * 5_000)
        simulator.request("POST", CHAT, chat("Hello"), KEY)
        text = simulator.request("GET", "/_sim/ledger")[2]
        assert text == simulator.ledger_file.read_text()
        assert len(text.splitlines()) == 5_002

    @pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
    def test_memory_does_not_grow_with_judgements(self, simulator: RunningSimulator) -> None:
        def resident() -> int:
            status = Path(f"/proc/{simulator.process.pid}/status").read_text()
            return int(status.partition("VmRSS:")[2].split()[0])

        numbers = count()
        address = ("127.0.0.1", simulator.port)

        def judge(times: int) -> None:
            with socket.create_connection(address) as connection, connection.makefile("rb", 0) as stream:
                for _ in range(times):
                    sentence = f"Sentence {next(numbers)} is long{' and long' * 250}."
                    body = json.dumps(chat(essay_score(sentence, OPTIONS["E"]))).encode()
                    connection.sendall(raw_request(body, f"Content-Length: {len(body)}"))
                    read_reply(stream)

            # What the ledger has not written yet would count as growth, the more the faster the machine is.
            simulator.request("POST", "/_sim/flush")

        judge(300)
        before = resident()
        for _ in range(10):
            judge(300)
        # kB; 3,000 prompts of 2.5 kB, if they were kept, would be 7,500
        assert resident() - before < 2_500


class TestProcess:
    def test_sigterm_ends_it_cleanly_with_the_ledger_written(self, simulator: RunningSimulator) -> None:
        simulator.configure(latency_ms=60_000)
        body = json.dumps(chat("Hello")).encode()
        with socket.create_connection(("127.0.0.1", simulator.port)) as connection:
            connection.sendall(raw_request(body, f"Content-Length: {len(body)}"))
            time.sleep(0.1)
            assert simulator.stop() == 0
        lines = [json.loads(line) for line in simulator.ledger_file.read_text().splitlines()]
        assert [(line["received"], line["answered"]) for line in lines] == [(1, None)]

    def test_settings_can_be_read_and_changed(self, start: Callable[..., RunningSimulator]) -> None:
        simulator = start("--seed", "4", "--latency-ms", "5")
        assert json.loads(simulator.request("GET", "/_sim/config")[2])["latency_ms"] == 5
        simulator.configure(latency_ms=0)
        settings = json.loads(simulator.request("GET", "/_sim/config")[2])
        assert (settings["seed"], settings["latency_ms"]) == (4, 0)

    @pytest.mark.parametrize(
        "headers",
        [
            {"Origin": "https://evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Mode": "no-cors"},
            {"Host": "evil.example:80"},
        ],
    )
    def test_no_page_in_a_browser_controls_it(
        self, simulator: RunningSimulator, headers: dict[str, str]
    ) -> None:
        for method, path in (("GET", "/_sim/ledger"), ("POST", "/_sim/config"), ("POST", "/_sim/flush")):
            assert simulator.request(method, path, {"latency_ms": 9}, headers)[0] == 403
        assert json.loads(simulator.request("GET", "/_sim/config")[2])["latency_ms"] != 9

    @pytest.mark.parametrize("body", [b"{", b"[]", {"latency": 3}, {"error_rate": 2}, {"seed": "x"}])
    def test_a_bad_setting_is_a_400_and_changes_nothing(
        self, simulator: RunningSimulator, body: object
    ) -> None:
        before = simulator.request("GET", "/_sim/config")[2]
        status, _, text = simulator.request("POST", "/_sim/config", body)
        assert status == 400
        assert json.loads(text)["error"]
        assert simulator.request("GET", "/_sim/config")[2] == before
