"""The forms of PersonaGym's data files: what each file must hold, and the domain values that it becomes."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from app.domain.dimension import Dimension, Scale
from app.domain.persona import Persona, Trait
from app.domain.personagym.task import GRADE_SCALE, Environment, GymPrompts, GymTask
from app.instruments.forms import Id, Text, Texts, offered_scores, placeholders, require_distinct

_PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "environment_selection": frozenset({"persona", "environments_list"}),
    "question_generation": frozenset(
        {"count", "persona", "environments", "task", "question_quality_criteria"}
    ),
    "further_questions": frozenset(
        {"count", "persona", "environments", "task", "question_quality_criteria", "existing_questions"}
    ),
    "rubric": frozenset(
        {"task", "task_description", "guidelines", "score_example", "persona", "question", "response"}
    ),
    "score_examples": frozenset({"persona", "question", "rubric"}),
    "persona_generation": frozenset({"count", "existing_personas"}),
    "sentence_scoring": frozenset({"persona", "question", "atomic unit", "options"}),
}
