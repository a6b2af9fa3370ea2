"""Builds the prompts that reach a model, from an instrument's templates (atomic paper, Tables 9 to 13)."""

import re

from app.domain.instruments.dimension import Dimension
from app.domain.instruments.persona import Persona
from app.domain.instruments.task import AtomicTask, Item
from app.domain.instruments.template import fill

_ARTICLE_BEFORE_PERSONA = re.compile(r"\b([Aa]n?) (?=\{persona\})")
_DETERMINED = re.compile(
    r"(an?|the|my|your|his|her|its|our|their|this|that|these|those|some|someone|somebody|anyone|anybody|one|no one|nobody)"
    r"(?=\s|$)",
    re.IGNORECASE,
)
"""Openings after which a description takes no article: "a cowboy", "my neighbour", "someone who ..."."""


def system_prompt(instruction: str, persona: Persona) -> str:
    """The system prompt that assigns a persona.

    The paper's personas are bare nouns, so its "You are a {persona}." gives "You are a open person.", word for word.
    Our one addition serves personas that users describe: where a description brings an article or another
    determiner of its own ("a cowboy", "The mayor of …", "someone who …"), the instruction's article in front of it
    goes, and the white space around a description and one final period of it go always. A bare name keeps the
    article, since a name cannot be told from a noun.

    Args:
        instruction: A template with ``{persona}``.
        persona: Whom the model plays; its description is untrusted and never read as a template.
    """
    if drops_article(instruction, persona):
        instruction = _ARTICLE_BEFORE_PERSONA.sub("", instruction)
    return fill(instruction, {"persona": _bare(persona)})


def drops_article(instruction: str, persona: Persona) -> bool:
    """Whether the persona's own determiner takes the place of the instruction's article."""
    return bool(_ARTICLE_BEFORE_PERSONA.search(instruction) and _DETERMINED.match(_bare(persona)))


def _bare(persona: Persona) -> str:
    return persona.description.strip().removesuffix(".")


def user_prompt(task: AtomicTask, item: Item) -> str:
    """The user prompt that asks for one response (Tables 9 to 11).

    Args:
        task: The task.
        item: The question or context to answer; its text stands for ``{question}`` and ``{context}``.
    """
    return fill(task.prompt, {"question": item.text, "context": item.text})


def scoring_prompt(task: AtomicTask, dimension: Dimension, item: Item, unit_text: str) -> str:
    """The prompt by which a judge scores one sentence on one dimension (Table 13).

    Args:
        task: The task that the response belongs to.
        dimension: What is scored.
        item: The item that the response answers.
        unit_text: The normalised sentence, untrusted and never read as a template.
    """
    values = {
        "dimension": dimension.name,
        "question": item.text,
        "atomic unit": unit_text,
        "options": dimension.options,
    }
    return fill(task.scoring_prompt, values)
