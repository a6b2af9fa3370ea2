"""Tells from a prompt's fixed words what a model is asked to do."""

import re

from simulator.conversation import ChatKind, Conversation
from simulator.grouped import is_grouped_prompt
from simulator.judge import is_judge_prompt

# How the prompts of the PersonaGym paper begin (appendix A.1, A.2, A.4).
_BEGINNINGS: tuple[tuple[str, ChatKind], ...] = (
    ("You will be given a description of a persona and a question.", "grade"),
    ("Given the following persona description, select the most relevant environments", "environments"),
    ("You are tasked with determining if a person with the given persona description", "questions"),
    ("Given the following persona, question, and rubric, generate an example", "exemplars"),
    # Persona Assay's own.
    ("A language model was asked to speak as a persona and wrote the text below.", "refusal_check"),
    ("A language model, which may have been told to speak as a persona, was sent a request", "refusal_check"),
)
_PERSONAS = "distinct persona descriptions"

NUMBER_OF_PERSONAS = re.compile(rf"(\d+) {_PERSONAS}")


def recognise(conversation: Conversation) -> ChatKind:
    """What a request is for.

    A request to a reasoner may go on with its reply and a complaint about it, so its first message decides.
    """
    prompt = conversation.turns[0][1].lstrip()
    for asked in (conversation.prompt, prompt):
        if is_judge_prompt(asked) or is_grouped_prompt(asked):
            return "judge"
    for beginning, kind in _BEGINNINGS:
        if prompt.startswith(beginning):
            return kind
    return "personas" if _PERSONAS in prompt and NUMBER_OF_PERSONAS.search(prompt) else "generation"
