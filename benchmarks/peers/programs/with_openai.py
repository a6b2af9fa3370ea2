"""What a researcher writes: ``asyncio.gather`` over the official SDK, a line of JSON for each answer.

With ``aiohttp`` as a fifth argument it uses the transport that the SDK's documentation names for many calls at once.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import TextIO

from openai import AsyncOpenAI, DefaultAioHttpClient

OFFERED = {"1", "2", "3", "4", "5", "9"}


async def judge(client: AsyncOpenAI, gate: asyncio.Semaphore, prompt: str, lines: TextIO) -> None:
    """One call, and its line."""
    async with gate:
        reply = await client.chat.completions.create(
            model="judge", messages=[{"role": "user", "content": prompt}], temperature=0
        )
    text = (reply.choices[0].message.content or "").strip()
    score = int(text) if text in OFFERED else None
    lines.write(json.dumps({"prompt": prompt, "raw": text, "score": score}) + "\n")


async def judge_all(
    prompts: list[str], lines: TextIO, base_url: str, in_flight: int, *, aiohttp: bool
) -> None:
    """Every call, so many at once."""
    gate = asyncio.Semaphore(in_flight)
    transport = DefaultAioHttpClient() if aiohttp else None
    async with AsyncOpenAI(base_url=base_url, api_key="none", http_client=transport) as client:
        await asyncio.gather(*(judge(client, gate, prompt, lines) for prompt in prompts))


def main(calls: str, output: str, base_url: str, in_flight: int, *transports: str) -> None:
    """Judges every prompt."""
    prompts = [json.loads(line)["prompt"] for line in Path(calls).read_text("utf-8").splitlines()]
    with (Path(output) / "verdicts.jsonl").open("w", encoding="utf-8") as lines:
        asyncio.run(judge_all(prompts, lines, base_url, in_flight, aiohttp="aiohttp" in transports))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), *sys.argv[5:])
