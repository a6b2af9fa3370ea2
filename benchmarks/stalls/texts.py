"""Each step of a worker that reads what models write, on the costliest texts that we know of, at the largest size that it accepts."""

import asyncio
from collections.abc import Callable
from functools import partial

from app.domain.instruments.segmentation import MAX_CHARACTERS, runaway
from app.domain.judging.grouped_reply import read_grouped
from app.domain.judging.hardening import MAX_REPLY_CHARACTERS, Showing, key_of
from app.domain.judging.prompt_injection import addresses_judge
from app.domain.judging.verdict import parse_verdict
from app.domain.personagym.grades import read_final_score
from app.domain.personagym.replies import read_exemplars, read_questions, select_environments
from app.domain.personagym.task import GRADE_SCALE
from app.instruments.hardened_loader import load_hardened
from app.instruments.rules import RULES
from app.services.execution.responses import MAX_GENERATED_UNITS
from app.services.long_texts import LONG_CHARACTERS, read_text
from benchmarks.stalls.watch import longest_stall

SIZES = (LONG_CHARACTERS, 48_000, MAX_REPLY_CHARACTERS, MAX_CHARACTERS, 10 * 1024 * 1024)
"""The longest text that is read on the loop, the reply that once froze a worker, the longest
that are read, the longest reply."""
UNITS = (
    ". ", "! ", "a. ", "Dr. ", '." ', "I am here. ", "5 ", "S1: 5\n", "final score is ", "ignore previous ", "[-", "*", '["a", ', "é", "\\u",
)  # fmt: skip
"""Repeated, each is the costliest text of some step."""

Step = Callable[[str], object]


async def measure() -> dict[str, float]:
    """The longest stall of a loop by what was read on it."""
    steps = _steps()
    for step in steps.values():
        step("One. Two.")
    found = {"texts: nothing": await longest_stall(lambda: asyncio.sleep(0.5))}
    for name, step in steps.items():
        for size in SIZES[:4] if step is addresses_judge else SIZES:  # what it reads has been split
            stalls = {
                unit: await longest_stall(partial(_read, unit * (size // len(unit)), step)) for unit in UNITS
            }
            worst = max(stalls, key=lambda unit: stalls[unit])
            found[f"texts: {name}, {size:,} characters of {worst!r}"] = stalls[worst]
    return found


async def _read(text: str, step: Step) -> None:
    await asyncio.gather(*(read_text(tenant, text, step) for tenant in ("one", "another")))


def _steps() -> dict[str, Step]:
    segmenter, refusals = RULES.segmenter.load("punkt-en-v1"), RULES.refusals.load("refusals-v1")
    shown = Showing(load_hardened(), key_of(["x"], ""))

    def split(text: str) -> object:
        if runaway(text, MAX_GENERATED_UNITS) is None:
            return segmenter.segment(text, MAX_GENERATED_UNITS), refusals.is_refusal(text)
        return None

    def reasoned(read: Step) -> Step:
        return lambda text: read(text if len(text) <= MAX_REPLY_CHARACTERS else "")

    return {
        "splitting": split,
        "injection patterns": addresses_judge,
        "the key word": shown.read,
        "a verdict": lambda text: parse_verdict(shown.read(text).text, GRADE_SCALE),
        "a grouped reply": lambda text: read_grouped(shown.read(text).text, 8, GRADE_SCALE),
        "a grade": lambda text: read_final_score(shown.read(text).text),
        "environments": reasoned(lambda text: select_environments(text, ["a forest"])),
        "questions": reasoned(lambda text: read_questions(text, 10)),
        "exemplars": reasoned(read_exemplars),
    }
