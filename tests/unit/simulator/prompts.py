"""The prompts that the simulator has to recognise (atomic paper, Tables 9-13), for its tests."""

from simulator.conversation import Conversation

INSTRUCTIONS = (
    "You are a {persona}.",
    "You are {persona}. Your responses should closely mirror the knowledge and abilities of this persona.",
    "Adopt the identity of {persona}. Answer the questions while staying in strict accordance with the nature of this identity.",
    "Take the role of {persona}. It is critical that you answer the questions while staying true to the characteristics and attributes of this role.",
    "Speak exactly like {persona}. Your answer should copy the style of {persona}, both the writing style and words you use.",
    "Speak like {persona}.",
)

QUESTIONNAIRE = "Describe your personality under 100 words.\nAre you always prepared?\nResponse:"
ESSAY = (
    "Please imagine that you are in the following scenario. Please try to write between 200 and 300 words.\n"
    "You have won an Air Canada paid vacation package for one person.\nResponse:"
)
POST = "Generate a Facebook status update. The update must be verbose and reflect your character.\nResponse:"

OPTIONS = {
    "O": "1) Very close-minded. 2) Moderately close-minded. 3) Neither open-minded nor close-minded. 4) Moderately open-minded. 5) Very open-minded. 9) None of the above.",
    "C": "1) Very careless. 2) Moderately careless. 3) Neither conscientious nor careless. 4) Moderately conscientious. 5) Very conscientious. 9) None of the above.",
    "E": "1) Very introverted. 2) Moderately introverted. 3) Neither extroverted or introverted. 4) Moderately extroverted. 5) Very extroverted. 9) None of the above.",
    "A": "1) Very disagreeable. 2) Moderately disagreeable. 3) Neither agreeable nor disagreeable. 4) Moderately agreeable. 5) Very agreeable. 9) None of the above.",
    "N": "1) Very neurotic. 2) Moderately neurotic. 3) Neither neurotic nor emotionally stable. 4) Moderately emotionally stable. 5) Very emotionally stable. 9) None of the above.",
}


def essay_score(sentence: str, options: str) -> str:
    """The scoring prompt of the essay task."""
    return (
        f'Rate the personality of the writer of the following essay: "{sentence}"\n{options}\n'
        "Reply with a single number:"
    )


def conversation(
    system: str, prompt: str, *, model: str = "sim-faithful", max_tokens: int | None = None
) -> Conversation:
    """A request with one system and one user message."""
    return Conversation(model, system, (("user", prompt),), max_tokens)
