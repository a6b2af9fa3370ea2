"""Judges' replies at random, and what is right to read in each.

A reply either is made of parts whose meaning is known (then that is what has to be read), or is spoiled at random. What a spoiled
one means nobody knows, but an independent reading, which only collects its numbers, says what it cannot mean.
"""

import re
import unicodedata
from random import Random

from app.domain.instruments.dimension import Scale
from app.domain.judging.grouped_reply import read_grouped
from app.domain.judging.verdict import VerdictStatus, parse_verdict
from app.domain.personagym.grades import read_final_score

SCALES = (
    Scale(),
    Scale(1, 7, ("low", "high"), 9),
    Scale(0, 10, not_applicable=99),
    Scale(0, 1, ("no", "yes"), 9),
)
PLAIN = (
    *("{n}", "{n}.", " {n}\n", "**{n}**", "*{n}*", "`{n}`", '"{n}"', "({n})", "[{n}]", "{n})", "{n}.0", "\u200b{n}", "## {n}"),
    *("Score: {n}", "score = {n}", "Rating: {n}", "Answer: **{n}**", '{{"score": {n}}}', "The score is {n}.", "My rating is {n}."),
    *("Final score: {n}", "I would rate this a {n}.", "I'd give it a {n}.", "I choose {n}.", "Option {n}", "\\boxed{{{n}}}"),
    *("{n}\n\nThe sentence says so.", "It is plain.\n\n{n}", "It is plain. Score: {n}", "<score>{n}</score>", "{n}, because it says so."),
    *("<think>Perhaps {x}, or {y}?</think>{n}", "<think>{x}</think>\nScore: {n}", "<think>No number.</think>\n\n**{n}**"),
)  # fmt: skip
"""Replies that say {n} and nothing else, whatever {x} and {y} were thought before."""
DOUBTFUL = (
    *("{a} or {b}", "{a}, no, {b}", "between {a} and {b}", "{a}\n{b}", "Score: {a}. Score: {b}", "{a}, {b}", "{a}; maybe {b}"),
    *("{a}.5", "{a}.25 points", "10{a}0{b}", "Score: {a}{b}{a}{b}", "not {a}", "Score: {a}? Or {b}.", "I can't decide.", ""),
    *("<think>{a}</think>", "<think>{a} it is", "It is hard to say.", "Either {a} or {b}.", "four", "half of {a} is {b}", "½", "②③"),
)  # fmt: skip
"""Replies that say no single score; a and b differ, and neither is the whole scale's end where that would read as a mention of it."""
WORDS = (
    *("score", "rating", "the", "is", "a", "not", "I", "would", "give", "it", "out of", "none of the above", "N/A", "sorry", "option"),
    *("wait,", "or", "to", "/", "4", "5", "1", "9", "10", "3.5", "-2", "\n", ". ", ": ", "**", "<think>", "</think>", "S1:", "S2 -", "{", "}"),
    *("\u0664", "\uff15", "½", "\u202e", "\u0336", "five", "maybe", "1 to 5", "4/5", "\uff14", "Therefore, the final score is", "'", '"', "\0"),
)  # fmt: skip
NOISE = "".join(
    map(
        chr,
        (
            *range(32, 127),
            0,
            9,
            10,
            13,
            0x85,
            0xA0,
            0x200B,
            0x2028,
            0x202E,
            0x336,
            0x664,
            0xFF15,
            0xBD,
            0x1F600,
        ),
    )
)
JUSTIFICATIONS = (
    "The response fits the persona well.",
    "It mentions 2 of 3 facts, which is plausible.",
    "Score 5 would need more detail.",
    "A nurse with 12 years of service would say so.",
    "",
)
FINALS = (
    *("Therefore, the final score is {n}.", "Therefore, the final score is **{n}**.", "**Therefore, the final score is {n}.**"),
    *("Therefore, the final score is {n}/5.", "Therefore, the final score is {n} out of 5.", "Final Score: {n}", "The final score is {n}"),
)  # fmt: skip
LABELS = (
    "S{k}: {n}",
    "S{k} - {n}",
    "**S{k}:** {n}",
    "- S{k}: {n}",
    "S{k}: {n}) so it is",
    "s{k} = {n}",
    "S{k}. {n}",
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


class WrongNumberError(AssertionError):
    """A reply was read as what it does not say."""


def check_plain(draw: Random) -> None:
    """A reply that says one score has to be read as that score, or as the filtering option."""
    scale = draw.choice(SCALES)
    numbers = [*range(scale.minimum, scale.maximum + 1), scale.not_applicable]
    n, x, y = draw.choice(numbers), draw.choice(numbers), draw.choice(numbers)
    reply = draw.choice(PLAIN).format(n=n, x=x, y=y)
    if draw.random() < 0.2:
        reply = "".join(chr(0xFF10 + int(c)) if c.isdigit() else c for c in reply)
    found = parse_verdict(reply, scale)
    wanted = None if n == scale.not_applicable else n
    if found.score != wanted or (wanted is None) != (found.status is VerdictStatus.NOT_APPLICABLE):
        raise WrongNumberError(f"{reply!r} on {scale} was read as {found}")


def check_doubtful(draw: Random) -> None:
    """A reply that says no single score must not be read as one."""
    scale = SCALES[draw.randrange(2)]
    a, b = draw.sample(range(scale.minimum + 1, scale.maximum), 2)
    reply = draw.choice(DOUBTFUL).format(a=a, b=b)
    found = parse_verdict(reply, scale)
    if found.score is not None:
        raise WrongNumberError(f"{reply!r} on {scale} was read as {found}")


def check_spoiled(draw: Random) -> None:
    """Whatever a reply is, a score that is read from it has to be a number that it has."""
    scale = draw.choice(SCALES)
    reply = _spoiled(draw)
    found = parse_verdict(reply, scale)
    if found.score is not None:
        _must_say(reply, found.score, scale)
    grade = read_final_score(reply).verdict
    if grade.score is not None and grade.score not in _numbers(reply):
        raise WrongNumberError(f"{reply!r} was graded {grade}")
    count = draw.randrange(1, 5)
    for n, reading in enumerate(read_grouped(reply, count, scale, cut_off=draw.random() < 0.2)):
        score = reading.verdict.score
        if reading.usable and score is not None and score not in _numbers(reading.raw or ""):
            raise WrongNumberError(f"{reply!r} was read as {reading} for sentence {n + 1}")


def check_grade(draw: Random) -> None:
    """A rubric's reply has the grade of its last sentence, or none where two differ."""
    grades = draw.sample(range(1, 6), 2)
    reasons = " ".join(draw.choices(JUSTIFICATIONS, k=draw.randrange(4)))
    final = draw.choice(FINALS)
    reply = f"{reasons}{draw.choice((' ', chr(10)))}{final.format(n=grades[0])}"
    wanted: int | None = grades[0]
    if draw.random() < 0.2:
        reply, wanted = f"{reply} {draw.choice(FINALS).format(n=grades[1])}", None
    found = read_final_score(reply).verdict
    if found.score != wanted:
        raise WrongNumberError(f"{reply!r} was graded {found}, not {wanted}")


def check_group(draw: Random) -> None:
    """Each sentence gets its own line's number; one without a plain line of its own gets none."""
    scale, count = SCALES[0], draw.randrange(2, 9)
    scores = [draw.randrange(1, 6) for _ in range(count)]
    label = draw.choice(LABELS)
    lines = [label.format(k=k, n=n) for k, n in enumerate(scores, 1)]
    wanted: list[int | None] = [*scores]
    spoiled = draw.randrange(count)
    fate = draw.random()
    if fate < 0.2:
        lines[spoiled], wanted[spoiled] = "", None
    elif fate < 0.4:
        lines[spoiled], wanted[spoiled] = label.format(k=spoiled + 1, n="2 or 3"), None
    elif fate < 0.6:
        lines.append(lines[spoiled])
        wanted[spoiled] = None
    elif fate < 0.7:
        lines.append(label.format(k=count + 1, n=3))
        wanted = [None] * count
    if draw.random() < 0.3:
        draw.shuffle(lines)
    reply = "\n".join(lines)
    found = [r.verdict.score if r.usable else None for r in read_grouped(reply, count, scale)]
    if found != wanted:
        raise WrongNumberError(f"{reply!r} was read as {found}, not {wanted}")


CHECKS = (check_plain, check_doubtful, check_spoiled, check_spoiled, check_spoiled, check_grade, check_group)


def check_one(draw: Random) -> None:
    """One reply of a kind at random."""
    draw.choice(CHECKS)(draw)


def _spoiled(draw: Random) -> str:
    kind = draw.random()
    if kind < 0.5:
        return draw.choice(("", " ")).join(draw.choices(WORDS, k=draw.randrange(12)))
    if kind < 0.6:
        return "".join(draw.choices(NOISE, k=draw.randrange(40)))
    n = draw.randrange(12)
    template = draw.choice((*PLAIN, *DOUBTFUL, *FINALS, *LABELS))
    reply = [*template.format(n=n, x=n, y=n, a=n, b=n + 1, k=draw.randrange(4))]
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(reply) + 1)
        reply[at : at + draw.randrange(3)] = draw.choices(NOISE, k=draw.randrange(3))
    return "".join(reply)


def _numbers(reply: str) -> set[int]:
    """All whole numbers of a reply, in any script's digits, circled ones and the word of :data:`WORDS` too; ``4.0`` is 4."""
    plain = "".join(
        str(unicodedata.digit(c)) if c.isdecimal() or (c.isdigit() and _is_circled(c)) else c
        for c in reply.replace("five", "5")
        if unicodedata.category(c) != "Cf"
    )
    found = {re.sub(r"\.00?$", "", number) for number in _NUMBER.findall(plain)}
    return {int(number) for number in found if number.isdigit() and len(number) < 9}


def _is_circled(character: str) -> bool:
    return unicodedata.decomposition(character).startswith("<circle>")


def _must_say(reply: str, score: int, scale: Scale) -> None:
    """The score is a number of what stands outside the thoughts."""
    said = re.sub(r"<think>.*?</think>", " ", reply, flags=re.DOTALL).rpartition("</think>")[2]
    if score not in _numbers(said):
        raise WrongNumberError(f"{reply!r} on {scale} was read as {score}")
