"""Builds PersonaGym's prompts from its templates (PersonaGym paper, appendix A).

The system prompt is built by :func:`app.domain.instruments.prompts.system_prompt`, as in the atomic framework. Every template is
filled in one pass, so that braces in personas, questions and responses, all untrusted, stay what they are.
"""

import json
from collections.abc import Mapping, Sequence

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.template import fill
from app.domain.personagym.task import GymPrompts, GymTask


def environment_prompt(prompts: GymPrompts, persona: str, pool: Sequence[str]) -> str:
    """Asks the reasoner for the environments of a persona (appendix A.1).

    Args:
        prompts: The templates.
        persona: The persona's description.
        pool: Names of the environments to choose from.
    """
    return fill(
        prompts.environment_selection, {"persona": persona.strip(), "environments_list": _listed(pool)}
    )


def question_prompt(
    prompts: GymPrompts,
    task: GymTask,
    persona: str,
    environments: Sequence[str],
    count: int,
    existing: Sequence[str] = (),
) -> str:
    """Asks the reasoner for questions (appendix A.2).

    Args:
        prompts: The templates.
        task: The task that the questions shall test.
        persona: The persona's description.
        environments: Names of the environments in which they shall be set.
        count: How many questions; the paper's number is 10.
        existing: Questions of an earlier reply, where only those are asked for that it lacked.
    """
    values = {
        "count": str(count),
        "persona": persona.strip(),
        "environments": _listed(environments),
        "task": task.title,
        "question_quality_criteria": task.question_criteria,
        "existing_questions": _listed(existing),
    }
    return fill(prompts.further_questions if existing else prompts.question_generation, values)


def score_examples_prompt(prompts: GymPrompts, task: GymTask, persona: str, question: str) -> str:
    """Asks the reasoner for one example response for each score (appendix A.4).

    Args:
        prompts: The templates.
        task: The task whose rubric the examples shall illustrate.
        persona: The persona's description.
        question: The question to which the examples respond.
    """
    values = {"persona": persona.strip(), "question": question, "rubric": rubric_outline(prompts, task)}
    return fill(prompts.score_examples, values)


def rubric_outline(prompts: GymPrompts, task: GymTask) -> str:
    """A task's rubric before anything is known of a persona; its other placeholders stay, as in Box A.4-1."""
    return fill(task.rubric or prompts.rubric, _outline_values(task))


def rubric_prompt(
    prompts: GymPrompts,
    task: GymTask,
    *,
    persona: str,
    question: str,
    exemplars: Mapping[int, str],
    response: str,
) -> str:
    """Asks an evaluator to grade one response (appendix A.6).

    Args:
        prompts: The templates.
        task: The task that the question tests.
        persona: The persona's description.
        question: The question.
        exemplars: An example response for each score.
        response: The response to be graded.
    """
    values = {
        **_outline_values(task),
        "score_example": _score_examples(task, exemplars),
        "persona": persona.strip(),
        "question": question,
        "response": response,
    }
    return fill(task.rubric or prompts.rubric, values)


def _score_examples(task: GymTask, exemplars: Mapping[int, str]) -> str:
    """The exemplars as the paper prints them; in a rubric that is a whole text, as PersonaGym's released code fills it in."""
    if task.rubric:
        return "\n\n".join(f'Score {score}: "{exemplars[score]}"' for score in sorted(exemplars))
    return "\n".join(f"Score {score}: {exemplars[score]}" for score in sorted(exemplars))


def persona_generation_prompt(prompts: GymPrompts, count: int, existing: Sequence[str] = ()) -> str:
    """Asks the reasoner for personas.

    Args:
        prompts: The templates.
        count: How many.
        existing: Descriptions that it must not repeat.
    """
    return fill(prompts.persona_generation, {"count": str(count), "existing_personas": _listed(existing)})


def sentence_prompt(
    prompts: GymPrompts, dimension: Dimension, *, persona: str, question: str, unit_text: str
) -> str:
    """Asks a judge how consistent one sentence of a response is with the persona.

    Args:
        prompts: The templates.
        dimension: Persona consistency, with its options.
        persona: The persona's description.
        question: The question that the response answers.
        unit_text: The normalised sentence.
    """
    values = {
        "persona": persona.strip(),
        "question": question,
        "atomic unit": unit_text,
        "options": dimension.options,
    }
    return fill(prompts.sentence_scoring, values)


def _outline_values(task: GymTask) -> dict[str, str]:
    guidelines = "\n".join(f"Score = {score}: {text}" for score, text in enumerate(task.guidelines, 1))
    return {"task": task.title, "task_description": task.description, "guidelines": guidelines}


def _listed(texts: Sequence[str]) -> str:
    """A list that reads the same as Python and as JSON."""
    return json.dumps(list(texts), ensure_ascii=False)
