"""The forms of PersonaGym's data files: what each file must hold, and the domain values that it becomes."""

from collections.abc import Mapping

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
