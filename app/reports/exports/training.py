"""What models are trained on: pairs of preferences (DPO, as TRL reads them) and rewards sentence by sentence, as JSON Lines."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_core import to_json

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.jobs.asked import AskedPrompt, AskedPrompts
from app.domain.judging.fit import (
    GOOD,
    GRADES,
    Candidate,
    Scored,
    judged_on,
    preferences,
    reward,
    sentence_candidates,
    text_candidates,
)
from app.domain.judging.judged_response import JudgedResponse, ResponseGrade
from app.reports.exports.jsonl import one_line

Unit = Literal["response", "sentence"]
Json = dict[str, Any]
Place = tuple[str, int | None, str | None]
"""A response's id, a sentence of it or ``None`` for all of it, and the dimension, or ``None`` for PersonaGym's grades."""
PeopleScore = tuple[float, int]
"""The mean of people's scores, and how many there are."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the texts of a job were judged on and by whom.

    Attributes:
        prompts: What was asked.
        dimensions: The job's.
        judges: Labels of the judges whose scores count.
        marks: What each line says of the job: its id, whether anything in it was simulated, and which of the judges were never called.
    """

    prompts: AskedPrompts
    dimensions: Sequence[Dimension]
    judges: Sequence[str]
    marks: Mapping[str, Any]

    def scale(self, dimension: str | None) -> Scale:
        """That of a dimension; without one that of PersonaGym's grades."""
        return GRADES if dimension is None else next(d for d in self.dimensions if d.id == dimension).scale


def _line(record: Json) -> bytes:
    return one_line(to_json(record)) + b"\n"


def _messages(prompt: AskedPrompt) -> list[Json]:
    return [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]


@dataclass(slots=True)
class _Prompt:
    """One prompt on one dimension, and the texts for it."""

    response: JudgedResponse
    dimension: str | None
    candidates: list[Candidate]


class PreferenceLines:
    """Pairs of texts, or sentences, for the same prompt: one in character, one out of it.

    Responses come cell by cell, and the cells of a persona's task follow each other: pairs are made when all its texts are there.
    """

    def __init__(self, judged: Judged, unit: Unit, minimum_margin: float) -> None:
        self._judged = judged
        self._unit = unit
        self._minimum = minimum_margin
        self._of: tuple[str, str] | None = None
        self._prompts: dict[tuple[Any, ...], _Prompt] = {}

    def add(self, page: Iterable[JudgedResponse]) -> Iterator[bytes]:
        """The pairs of what is complete with this page."""
        for response in page:
            of = (response.persona, response.task)
            if of != self._of:
                yield from self.end()
                self._of = of
            for dimension in judged_on(response, grades=self._unit == "response"):
                self._collect(response, dimension)

    def end(self) -> Iterator[bytes]:
        """The pairs of what is left."""
        for prompt in self._prompts.values():
            yield from self._lines(prompt)
        self._prompts.clear()

    def _collect(self, response: JudgedResponse, dimension: str | None) -> None:
        judges = self._judged.judges
        if dimension is not None and self._unit == "sentence":
            found = sentence_candidates(response, dimension, judges)
        else:
            found = text_candidates(response, dimension, judges)
        key = (response.item.id, response.instruction, dimension)
        prompt = self._prompts.get(key)
        if prompt is None:
            prompt = self._prompts[key] = _Prompt(response, dimension, [])
        prompt.candidates += found

    def _lines(self, prompt: _Prompt) -> Iterator[bytes]:
        response, dimension = prompt.response, prompt.dimension
        level = GOOD if dimension is None else response.levels[dimension]
        scale = self._judged.scale(dimension)
        asked = self._judged.prompts.of(response)
        for pair in preferences(prompt.candidates, scale, level, self._minimum):
            yield _line(
                {
                    "prompt": _messages(asked),
                    "chosen": [{"role": "assistant", "content": pair.chosen.text}],
                    "rejected": [{"role": "assistant", "content": pair.rejected.text}],
                    "margin": pair.margin,
                    "unit": self._unit,
                    "scores": [
                        {
                            "judge": judge,
                            "chosen": pair.chosen.scores[judge].mean,
                            "rejected": pair.rejected.scores[judge].mean,
                        }
                        for judge in self._judged.judges
                    ],
                    "persona": response.persona,
                    "task": response.task,
                    "item": response.item.id,
                    "dimension": dimension,
                    "level": None if dimension is None else level,
                    "chosen_model": pair.chosen.model,
                    "rejected_model": pair.rejected.model,
                    "chosen_response": pair.chosen.response,
                    "rejected_response": pair.rejected.response,
                    "chosen_sentence": pair.chosen.unit,
                    "rejected_sentence": pair.rejected.unit,
                    "prompt_known": asked.known,
                    **self._judged.marks,
                }
            )


class RewardLines:
    """A line for each response, dimension and judge, with a reward for each sentence; for a grade one for the whole response alone.

    Attributes:
        people: What people gave the responses of the next page, and their sentences.
    """

    def __init__(self, judged: Judged) -> None:
        self._judged = judged
        self.people: Mapping[Place, PeopleScore] = {}

    def add(self, page: Iterable[JudgedResponse]) -> Iterator[bytes]:
        """The lines of these responses."""
        for response in page:
            if response.text is None:
                continue
            for dimension in response.levels:
                yield from self._of_sentences(response, dimension)
            for grade in response.grades:
                if grade.judge in self._judged.judges:
                    yield self._of_grade(response, grade)

    def end(self) -> Iterator[bytes]:
        """Nothing is left."""
        return iter(())

    def _of_sentences(self, response: JudgedResponse, dimension: str) -> Iterator[bytes]:
        scale, level = self._judged.scale(dimension), response.levels[dimension]
        by_judge: dict[str, list[Json]] = defaultdict(list)
        for unit in response.units:
            for said in unit.verdicts:
                if said.dimension == dimension:
                    place = {"start": unit.span[0], "end": unit.span[1], "text": unit.text}
                    scored = None if said.score is None else Scored(said.score, 1)
                    by_judge[said.judge].append(
                        place
                        | {"status": said.status}
                        | _rewarded(scale, level, scored)
                        | self._said_by_people(response, unit.index, dimension)
                    )
        for judge in self._judged.judges:
            if sentences := by_judge.get(judge):
                scores = [each["score"] for each in sentences if each["score"] is not None]
                whole = _rewarded(scale, level, Scored(int(sum(scores)), len(scores)) if scores else None)
                yield self._row(response, judge, dimension, level, whole, sentences)

    def _of_grade(self, response: JudgedResponse, grade: ResponseGrade) -> bytes:
        whole = _rewarded(GRADES, GOOD, None if grade.score is None else Scored(grade.score, 1))
        return self._row(response, grade.judge, None, None, whole, [])

    def _row(
        self,
        response: JudgedResponse,
        judge: str,
        dimension: str | None,
        level: str | None,
        whole: Json,
        sentences: list[Json],
    ) -> bytes:
        asked, scale = self._judged.prompts.of(response), self._judged.scale(dimension)
        return _line(
            {
                "prompt": _messages(asked),
                "text": response.text,
                "judge": judge,
                "dimension": dimension,
                "level": level,
                "scale_minimum": scale.minimum,
                "scale_maximum": scale.maximum,
                **whole,
                **self._said_by_people(response, None, dimension),
                "sentences": sentences,
                "model": response.model,
                "persona": response.persona,
                "task": response.task,
                "item": response.item.id,
                "run": response.run,
                "response": response.id,
                "prompt_known": asked.known,
                **self._judged.marks,
            }
        )

    def _said_by_people(self, response: JudgedResponse, unit: int | None, dimension: str | None) -> Json:
        mean, answers = self.people.get((response.id, unit, dimension), (None, 0))
        return {"people_score": mean, "people_answers": answers}


def _rewarded(scale: Scale, level: str, given: Scored | None) -> Json:
    if given is None:
        return dict.fromkeys(("score", "score_normalised", "reward", "in_character"))
    return {
        "score": given.mean,
        "score_normalised": (given.mean - scale.minimum) / scale.width,
        "reward": reward(scale, level, given.mean),
        "in_character": given.fits(scale, level),
    }
