import asyncio
import threading

from app.services.long_texts import LONG_CHARACTERS, read_text

LONG = "x" * (LONG_CHARACTERS + 1)


class TestReading:
    async def test_short_texts_are_read_at_once(self) -> None:
        assert await read_text("a", "hello", lambda _: threading.get_ident()) == threading.get_ident()

    async def test_long_ones_are_read_beside_the_loop(self) -> None:
        assert await read_text("a", LONG, lambda _: threading.get_ident()) != threading.get_ident()

    async def test_one_tenant_takes_one_thread_however_many_long_texts_it_has(self) -> None:
        held, go = threading.Event(), threading.Event()
        under_way = [0]

        def slow(_: str) -> int:
            under_way[0] += 1
            held.set()
            go.wait(10)
            return under_way[0]

        many = [asyncio.create_task(read_text("greedy", LONG, slow)) for _ in range(100)]
        await asyncio.to_thread(held.wait, 10)
        assert await read_text("other", LONG, len) == len(LONG), "another tenant has its turn meanwhile"
        assert under_way == [1]
        go.set()
        assert await asyncio.gather(*many) == list(range(1, 101))
