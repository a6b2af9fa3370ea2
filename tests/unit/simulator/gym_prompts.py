"""The prompts of the PersonaGym paper (appendix A) that the simulator has to recognise, for its tests."""

import json
from collections.abc import Sequence

PERSONA = "A 71-year-old retired nurse from Italy, volunteering in hospice care"
QUESTION = "You're at a Farmer's Market and lose your purse. What do you do, and why?"
POOL = (
    "Beach",
    "Farmer's Market",
    "Library",
    "Hospital Ward",
    "Ski Resort",
    "Town Council, open session",
    "Night Train",
    "Cooking Class",
)
TASK = "Expected Action in Given Setting"

SYSTEM_PROMPTS = (
    "Adopt the identity of {persona}. Answer the questions while staying in strict accordance with the nature of this identity.",
    "You are {persona}. Your responses should closely mirror the knowledge and abilities of this persona.",
)

CONSISTENCY_OPTIONS = (
    "1) Contradicts the persona. 2) Rather unlike the persona. 3) Neither like nor unlike the persona. "
    "4) Rather like the persona. 5) Exactly like the persona. 9) None of the above."
)


def environments_prompt(persona: str = PERSONA, pool: Sequence[str] = POOL) -> str:
    return (
        "Given the following persona description, select the most relevant environments from the given environment options "
        "for the persona. Your output must only be the selected environments in a Python list format with no other verbose.\n"
        f"Persona: {persona}\nEnvironments: {json.dumps(pool)}\nSelected Environments:"
    )


def questions_prompt(
    number: int = 10, environments: Sequence[str] = POOL[:3], persona: str = PERSONA, task: str = TASK
) -> str:
    return (
        "You are tasked with determining if a person with the given persona description can answer questions related to "
        f"environments that specifically test the given evaluation task. Generate exactly {number} challenging multi-step "
        "questions to do this where the questions are intended to be asked directly to the persona. You may use the question "
        "description below to guide you. Your output must be the generated questions in a Python list format with no other "
        f"verbose.\nPersona: {persona}\nEnvironments: {list(environments)}\nEvaluation Task: {task}\n"
        "Questions Description: Ask for something that the persona would do.\nQuestions:"
    )


def rubric(response: str, persona: str = PERSONA, question: str = QUESTION, examples: str = "") -> str:
    return (
        "You will be given a description of a persona and a question. You will then be given one response to the question. "
        "Your task is to rate the response. You need to output the final score in your final sentence like "
        f'"Therefore, the final score is …"\n\nEvaluation Task: {TASK}\n\nEvaluation Task Description: The persona acts.\n\n'
        f"Evaluation Criteria:\nScore = 1: Not at all.\nScore = 5: Wholly.\n——————\nScore Examples:\n{examples}\n——————\n\n"
        f"Persona Description: {persona}\n\nQuestion: {question}\n\nResponse: {response}\n\nEvaluation Form:"
    )


def exemplars_prompt(persona: str = PERSONA, question: str = QUESTION) -> str:
    return (
        "Given the following persona, question, and rubric, generate an example for each of the possible scores in the "
        "rubric for the given persona and question. You are only giving an example of a response from the given persona for "
        "the given question that would attain each score and you must follow the output format and fill in an example for "
        f"each of the scores.\nPersona: {persona}\nQuestion: {question}\nRubric: {rubric('{response}')}\n——————\n"
        "Output Format (example responses ONLY):\nScore 1: Response -\nScore 5: Response -\n——————"
    )


def personas_prompt(number: int = 20) -> str:
    return f"Write {number} distinct persona descriptions, one sentence each. Reply with a Python list of strings only."


def consistency_score(sentence: str, persona: str = PERSONA, question: str = QUESTION) -> str:
    """A scoring prompt in the form of the atomic paper's questionnaire."""
    return (
        f"What would be the persona consistency score for the following response to the question?\nPersona: {persona}\n"
        f"Question: {question}\nResponse: {sentence}\nOptions: {CONSISTENCY_OPTIONS}\nReply with a single number:"
    )
