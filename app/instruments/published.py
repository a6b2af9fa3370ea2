"""The two papers' published figures: data files that are read once."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import NamedTuple

_DEVIATION = "_sd"
_RESPONSES = {"questionnaire": 10}
"""Responses of a run, where there are several."""


@dataclass(frozen=True, slots=True)
class PublishedCell:
    """A row of Tables 18–29 (atomic paper).

    Attributes:
        model: The model as the paper names it.
        task: The task's id.
        dimension: The dimension's id.
        level: The persona's level on it.
        metrics: By name, as printed.
    """

    model: str
    task: str
    dimension: str
    level: str
    metrics: Mapping[str, float]


class PublishedLength(NamedTuple):
    """A figure of Table 15 (atomic paper).

    Attributes:
        sentences: Scored sentences of a response, on average.
        responses: Responses of a run.
        in_all: Sentences of a response, with or without a score.
    """

    sentences: float
    responses: int
    in_all: float

    @property
    def sentences_of_run(self) -> float:
        """Scored sentences of a run, on average."""
        return self.sentences * self.responses


@dataclass(frozen=True, slots=True)
class PublishedScores:
    """A row of Table 1 (PersonaGym paper).

    Attributes:
        model: The model as the paper names it.
        tasks: Mean and standard deviation over personas, by task.
        persona_score: Those of PersonaScore.
    """

    model: str
    tasks: Mapping[str, tuple[float, float]]
    persona_score: tuple[float, float]


@cache
def published_cells() -> tuple[PublishedCell, ...]:
    """The 540 cells of Tables 18–29, in the paper's order."""
    return tuple(
        PublishedCell(
            row.pop("model"),
            row.pop("task"),
            row.pop("dimension"),
            row.pop("level"),
            {name: float(figure) for name, figure in row.items()},
        )
        for row in _rows("atomic_cells.csv")
    )


@cache
def published_lengths() -> Mapping[tuple[str, str], PublishedLength]:
    """How long the texts of Tables 18–29 are, by model and task."""
    return {
        (row["model"], row["task"]): PublishedLength(
            float(row["sentences"]) * float(row["valid_percent"]) / 100,
            _RESPONSES.get(row["task"], 1),
            float(row["sentences"]),
        )
        for row in _rows("lengths.csv")
    }


@cache
def published_attributes() -> Mapping[str, Mapping[str, str]]:
    """What is known of the atomic paper's models: base or tuned, size, training on human preferences; see the data's README."""
    return {
        row["model"]: {name: value for name, value in row.items() if name != "model" and value}
        for row in _rows("models.csv")
    }


@cache
def published_scores() -> tuple[PublishedScores, ...]:
    """The six models of Table 1, in the paper's order."""
    found = []
    for row in _rows("personagym.csv"):
        names = [name for name in row if name != "model" and not name.endswith(_DEVIATION)]
        scores = {name: (float(row[name]), float(row[name + _DEVIATION])) for name in names}
        total = scores.pop("persona_score")
        found.append(PublishedScores(row["model"], scores, total))
    return tuple(found)


class PublishedCorrelation(NamedTuple):
    """An entry of Table 2 (PersonaGym paper): how scores go with people's.

    Attributes:
        model: The model as the paper names it.
        task: The task's id; ``None`` for PersonaScore.
        spearman_rho: Spearman's ρ over 100 personas.
        kendall_tau: Kendall's τ.
    """

    model: str
    task: str | None
    spearman_rho: float
    kendall_tau: float


@cache
def published_correlations() -> tuple[PublishedCorrelation, ...]:
    """Table 2, in the paper's order."""
    return tuple(
        PublishedCorrelation(
            row["model"],
            None if row["task"] == "persona_score" else row["task"],
            round(float(row["spearman_rho"]) / 100, 3),
            round(float(row["kendall_tau"]) / 100, 3),
        )
        for row in _rows("personagym_people.csv")
    )


def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(_text(name).splitlines()))


def _text(name: str) -> str:
    return files("app.instruments").joinpath("published/v1", name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class ReleasedTexts:
    """Hashes of what PersonaGym's authors released, by which jobs that use it are told from others.

    Attributes:
        rubrics: SHA-256 of the rubric file, by task.
        question_criteria: SHA-256 of what questions must be like, by task.
        environments: What :func:`hash_of_names` gives for the environments.
        score_examples: SHA-256 of the prompt that asks for exemplars.
        questions: What :func:`hash_of_questions` gives for each persona's questions of each task.
    """

    rubrics: Mapping[str, str]
    question_criteria: Mapping[str, str]
    environments: str
    score_examples: str
    questions: frozenset[str]


@cache
def released_texts() -> ReleasedTexts:
    """What PersonaGym's authors released (github.com/vsamuel2003/PersonaGym at 536f705)."""
    rows = _rows("personagym_texts.csv")
    of = {
        kind: {row["task"]: row["sha256"] for row in rows if row["kind"] == kind}
        for kind in ("rubric", "question_criteria", "environments", "score_examples")
    }
    questions = _text("personagym_questions.txt").split()
    return ReleasedTexts(
        of["rubric"],
        of["question_criteria"],
        of["environments"][""],
        of["score_examples"][""],
        frozenset(questions),
    )
