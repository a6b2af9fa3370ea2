import asyncio
import json
import time

import httpx2
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.http.access import Caller
from app.api.http.limits import Limits
from app.api.http.problems import ProblemError
from app.api.http.strict_json import LARGE_BYTES, MAX_KEYS, MAX_NESTED, TURN_BYTES, StrictRoute, loads

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text('abü\n"', max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


def large(body: bytes) -> bytes:
    """The same, parsed the way in which large bodies are."""
    return b" " * (LARGE_BYTES - len(body) // 2) + body + b"\n" * (len(body) // 2)


class TestLoads:
    def test_json_is_read(self) -> None:
        value = {"a": [1, -2.5e3, True, None, "ü𝄞\\u0041"], "": {}}
        assert loads(json.dumps(value).encode()) == value
        assert loads(json.dumps(value, ensure_ascii=False).encode()) == value

    def test_brackets_in_texts_are_no_levels(self) -> None:
        value: object = ["[" * 100, '"\\{' * 100, [{"{[": "["}] * 100]
        assert loads(json.dumps(value).encode()) == value

    def test_sixty_four_levels_are_read(self) -> None:
        assert json.dumps(loads(b"[" * 64 + b"]" * 64)) == "[" * 64 + "]" * 64

    def test_a_pair_of_escaped_surrogates_is_one_character(self) -> None:
        assert loads(rb'["\ud834\udd1e"]') == ["𝄞"]

    @pytest.mark.parametrize(
        ("body", "detail"),
        [
            (b'{"a":1,"b":{"c":1,"c":2}}', "the key 'c' appears more than once"),
            (b'{"a":1,"\\u0061":1}', "the key 'a' appears more than once"),
            (b"[NaN]", "NaN is not JSON"),
            (b"[1e400]", "the number 1e400 is too large"),
            (b'["\\ud834"]', "lone surrogate"),
            (b'{"\\uDC00":1}', "lone surrogate"),
            (b'["\xff"]', "not UTF-8"),
            (b"[" + b"1" * 5000 + b"]", "the body: Exceeds the limit"),
            (b"[" * 100_000, "nested deeper than 64 levels"),
            (b'{"a":' * 65 + b"1" + b"}" * 65, "nested deeper than 64 levels"),
        ],
    )
    def test_what_other_parsers_would_take_otherwise_is_refused(self, body: bytes, detail: str) -> None:
        for sent in (body, large(body)):
            with pytest.raises(ProblemError) as caught:
                loads(sent)
            assert caught.value.status_code == 400
            assert detail in str(caught.value.detail)

    def test_what_is_no_json_at_all_is_a_decode_error(self) -> None:
        for body in (
            b"{'a': 1}",
            b"[1,]",
            b"{}{}",
            b"",
            b'"',
            b'{"a"}',
            b"\xef\xbb\xbf{}",
            b"[1 2]",
            b"tru",
            b"-",
            '{"a": 1\u0662}'.encode(),
            '{"a": 1.\u0662}'.encode(),
        ):
            for sent in (body, large(body)):
                with pytest.raises(json.JSONDecodeError):
                    loads(sent)

    @given(VALUES)
    def test_a_large_body_says_what_a_small_one_does(self, value: object) -> None:
        for body in (json.dumps(value).encode(), json.dumps(value, ensure_ascii=False, indent=1).encode()):
            assert loads(large(body)) == loads(body) == value
            assert json.dumps(loads(large(body))) == json.dumps(
                value
            )  # 1 is not 1.0, and keys keep their order

    def test_sixty_four_levels_of_a_large_body_are_read_wherever_they_are(self) -> None:
        levels = b"[" * 62 + b"]" * 62
        body = large(b'{"a":[' + b",".join([levels] * 20) + b"]}")
        assert len(loads(body)["a"]) == 20

    def test_too_many_lists_and_objects_are_refused(self) -> None:
        assert len(loads(b"[" + b"[]," * (MAX_NESTED - 2) + b"{}]")) == MAX_NESTED - 1
        with pytest.raises(ProblemError, match="more than 500,000 lists and objects"):
            loads(b"[" + b"[]," * (MAX_NESTED - 1) + b"{}]")

    def test_an_object_of_too_many_fields_is_refused(self) -> None:
        body = json.dumps({str(n): 0 for n in range(MAX_KEYS + 1)}).encode()
        with pytest.raises(ProblemError, match="at most 50,000 fields"):
            loads(body)

    @pytest.mark.parametrize(
        "body",
        [
            b"[" + b"1," * 300_000 + b"1]",
            b'["\\ud834\\udd1e"' + b',"a"' * 300_000 + b"]",
        ],
        ids=["numbers", "a pair of surrogates and texts"],
    )
    async def test_others_run_while_a_large_body_is_parsed(self, body: bytes) -> None:
        begun, longest = time.process_time(), 0.0
        parsing = asyncio.create_task(asyncio.to_thread(loads, body))
        while not parsing.done():
            turn = time.process_time()
            await asyncio.sleep(0.001)
            longest = max(longest, time.process_time() - turn)
        assert len(await parsing) == 300_001
        # In CPU time, so that other programs do not count: to the parser in C it is 77 % and more, of this one 10 %.
        assert longest < (time.process_time() - begun) / 2


class ByTenant:
    """Takes each request for that of the tenant in its header."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        request.state.caller = Caller(request.headers["tenant"])
        await self.app(scope, receive, send)


def strict_app() -> FastAPI:
    app = FastAPI()
    app.router.route_class = StrictRoute
    app.add_middleware(ByTenant)
    app.add_middleware(Limits, most_bytes=4 * TURN_BYTES, seconds=60)
    return app


async def test_a_tenant_s_large_bodies_are_held_one_at_a_time_and_no_other_tenant_s_wait() -> None:
    app = strict_app()
    held: list[str] = []
    most, other_came = 0, asyncio.Event()

    @app.post("/")
    async def read(request: Request, body: list[int]) -> int:
        nonlocal most
        held.append(tenant := request.headers["tenant"])
        most = max(most, held.count("one"))
        if tenant == "other":
            other_came.set()
        await other_came.wait()
        await asyncio.sleep(0.01)
        held.remove(tenant)
        return len(body)

    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app), base_url="http://service"
    ) as client:

        async def post(tenant: str) -> int:
            answer = await client.post("/", json=[1] * TURN_BYTES, headers={"tenant": tenant})
            assert answer.status_code == 200, answer.text
            return int(answer.text)

        async with asyncio.timeout(60):
            counts = await asyncio.gather(*map(post, ["one", "one", "one", "other"]))
    assert counts == [TURN_BYTES] * 4
    assert most == 1


async def test_a_malformed_large_body_is_answered_and_the_next_one_too() -> None:
    app = strict_app()

    @app.post("/")
    async def read(body: list[int]) -> int:
        return len(body)

    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app=app), base_url="http://service"
    ) as client:
        bodies = "[" + "1," * TURN_BYTES, str([1] * TURN_BYTES)
        async with asyncio.timeout(60):
            answers = [
                await client.post(
                    "/", content=b, headers={"tenant": "one", "content-type": "application/json"}
                )
                for b in bodies
            ]
    assert [answer.status_code for answer in answers] == [422, 200]
