"""What PersonaGym asks with: tasks, environments and templates (PersonaGym paper, sections 2 and 3, appendix A)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from app.domain.instruments.dimension import Scale

GRADE_SCALE = Scale(1, 5)
"""The scores of every rubric. Its filtering option is none of a rubric's: a 9 is no grade."""


@dataclass(frozen=True, slots=True)
class GymTask:
    """One of the five evaluation tasks, or one that a rubric set adds.

    Attributes:
        id: For example ``"expected_action"``.
        title: Its name in the prompts, for example ``"Expected Action in Given Setting"``.
        aliases: Other names of it in published question files.
        description: The rubric's task description.
        guidelines: The rubric's requirements for the scores 1 to 5, in this order.
        question_criteria: What the questions must be like, for the reasoner who makes them.
        from_paper: Which of the texts (by attribute) the paper prints; the others are this project's.
        rubric: The whole text of its rubric, as in PersonaGym's released files, in place of the common template; mostly empty.
    """

    id: str
    title: str
    aliases: tuple[str, ...]
    description: str
    guidelines: tuple[str, ...]
    question_criteria: str
    from_paper: tuple[str, ...] = ()
    rubric: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """A setting in which a persona may be questioned.

    Attributes:
        name: As the reasoner reads and repeats it, for example ``"Weekly Farmers Market"``.
        category: The kind of setting, for example ``"everyday"``.
    """

    name: str
    category: str


@dataclass(frozen=True, slots=True)
class GymPrompts:
    """Templates; a name in braces is a placeholder.

    Attributes:
        instructions: Templates of the system prompt by id, with ``{persona}``.
        default_instruction: Id of the one that is used unless another is named.
        environment_selection: Appendix A.1.
        question_generation: Appendix A.2.
        further_questions: Asks for the questions that an earlier reply lacked (ours).
        rubric: Appendix A.4 and A.6.
        score_examples: Appendix A.4.
        persona_generation: Asks for personas (ours).
        sentence_scoring: Asks for one sentence's persona consistency (ours).
    """

    instructions: Mapping[str, str]
    default_instruction: str
    environment_selection: str
    question_generation: str
    further_questions: str
    rubric: str
    score_examples: str
    persona_generation: str
    sentence_scoring: str


def task_named(tasks: Iterable[GymTask], name: str) -> GymTask | None:
    """The task that goes by a name: its id, its title or an alias; case, spaces and punctuation do not count."""
    wanted = _letters(name)
    for task in tasks:
        if wanted in {_letters(known) for known in (task.id, task.title, *task.aliases)}:
            return task
    return None


def _letters(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
