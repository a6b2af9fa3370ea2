"""Requests for jobs, said shortly."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from app.domain.jobs.budget import Budget
from app.domain.jobs.request import (
    DimensionIn,
    JobIn,
    JudgingCheckIn,
    JudgingIn,
    ModelIn,
    PersonaIn,
    ResponseIn,
    ScaleIn,
    TaskIn,
)
from app.domain.judging.grouping import CHECK_MINIMUM, CHECK_SHARE
from app.domain.providers.reuse import Reuse


def a_job(**fields: Any) -> JobIn:
    """A job. Tuples stand for lists, the domain's values for their names; what is ``None`` is left out."""
    return JobIn(**{name: _plain(value) for name, value in fields.items() if value is not None})


def _plain(value: Any) -> Any:
    if isinstance(value, Budget):
        return {name: limit for name, limit in asdict(value).items() if limit is not None}
    if isinstance(value, Reuse):
        return {"judging": value.judging.value, "generation": value.generation.value}
    if isinstance(value, tuple):
        return list(map(_plain, value))
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in value.items()}
    return str(value) if isinstance(value, str) else value


def a_model(name: str, label: str | None = None, **parameters: Any) -> ModelIn:
    return ModelIn(model=name, label=label, **parameters)


def a_persona(id_: str, description: str, traits: Mapping[str, str] | None = None) -> PersonaIn:
    return PersonaIn(id=id_, description=description, traits=dict(traits or {}))


def a_task(task: str, **options: Any) -> TaskIn:
    return TaskIn(task=task, **options)


def a_response(persona: str, task: str, text: str, **more: Any) -> ResponseIn:
    return ResponseIn(persona=persona, task=task, text=text, **more)


def a_dimension(
    id_: str,
    name: str,
    options: str,
    scale: tuple[int, int, int] = (1, 5, 9),
    levels: Sequence[str] = ("low", "neutral", "high"),
    questions: Sequence[str] = (),
    essay_context: str | None = None,
) -> DimensionIn:
    minimum, maximum, not_applicable = scale
    return DimensionIn(
        id=id_,
        name=name,
        options=options,
        scale=ScaleIn(minimum=minimum, maximum=maximum, not_applicable=not_applicable),
        levels=list(levels),
        questions=list(questions),
        essay_context=essay_context,
    )


def grouped(sentences: int, share: float = CHECK_SHARE, minimum: int = CHECK_MINIMUM) -> JudgingIn:
    """Sentences judged several at a time; unlike a client's, its sample may be empty."""
    check = JudgingCheckIn.model_construct(share=share, minimum=minimum)
    return JudgingIn(sentences_per_call=sentences, check=check)
