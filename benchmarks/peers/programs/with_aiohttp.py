"""What the wire alone costs in Python: bare aiohttp on uvloop, which keeps each reply's bytes and nothing else."""

import asyncio
import json
import sys
from pathlib import Path
from typing import BinaryIO

import aiohttp
import uvloop


async def judge(
    session: aiohttp.ClientSession, gate: asyncio.Semaphore, url: str, prompt: str, lines: BinaryIO
) -> None:
    """One call, and its line."""
    body = {"model": "judge", "messages": [{"role": "user", "content": prompt}], "temperature": 0}
    async with gate, session.post(url, json=body) as reply:
        lines.write(await reply.read() + b"\n")


async def judge_all(prompts: list[str], lines: BinaryIO, base_url: str, in_flight: int) -> None:
    """Every call, so many at once."""
    gate = asyncio.Semaphore(in_flight)
    url = f"{base_url}/chat/completions"
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=in_flight)) as session:
        await asyncio.gather(*(judge(session, gate, url, prompt, lines) for prompt in prompts))


def main(calls: str, output: str, base_url: str, in_flight: int) -> None:
    """Judges every prompt."""
    prompts = [json.loads(line)["prompt"] for line in Path(calls).read_text("utf-8").splitlines()]
    with (Path(output) / "replies.jsonl").open("wb") as lines:
        uvloop.run(judge_all(prompts, lines, base_url, in_flight))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
