"""PersonaGym's released rubrics, and what its released code makes of them."""

import json
import re
from pathlib import Path

OFFICIAL = {
    path.name: path.read_bytes().decode()
    for path in sorted((Path(__file__).parent / "golden" / "personagym_rubrics").glob("*.txt"))
}
RELEASED = json.loads(
    (Path(__file__).parent / "golden" / "personagym_rubrics" / "released.json").read_text(encoding="utf-8")
)
"""One persona with its questions by task, the environments, and the question criteria by task."""
SCORE_EXAMPLES: str = RELEASED["score_examples"]
"""The prompt that asks for exemplars."""
TASK_OF = {
    "Action Justification.txt": "action_justification",
    "Expected Action.txt": "expected_action",
    "Linguistic Habits.txt": "linguistic_habits",
    "Persona Consistency.txt": "persona_consistency",
    "Toxicity.txt": "toxicity_control",
}


def process_examples(text: str) -> str:
    """Word for word the function of that name in PersonaGym's ``code/run.py`` (MIT licence, see the golden files)."""
    matches = re.findall(
        r'Score (\d+): *Response - *"?(.*?)"?(?=\n*Score \d+: *Response -|$)', text, re.DOTALL
    )
    processed_text = "\n\n".join(f'Score {score}: "{response.strip()}"' for score, response in matches)
    lines = processed_text.split("\n")
    return "\n\n".join(line for line in lines if line.startswith("Score"))


def official_prompt(rubric: str, persona: str, question: str, answer: str, reply: str) -> str:
    """One rubric as ``format_rubrics`` of PersonaGym's ``code/run.py`` fills it in.

    There, an oversight takes one character of the exemplars for each question; what they are meant to be is all of them.
    """
    return rubric.format(
        persona=persona, question=question, response=answer, score_example=process_examples(reply)
    )
