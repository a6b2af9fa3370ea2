"""What of a judge's prompt it follows: the key word that it has to begin its reply with, and for some judges the judged text."""

import re
from dataclasses import replace

from simulator.conversation import Conversation, Reply

_KEY = re.compile(r"Begin your reply with a line that has the word ([A-Z]+) and nothing else\.")
_ORDER = re.compile(r"\breply (?:only |just )?(?:with )?(\d)(?!\d| lines)", re.IGNORECASE)


def key_word(conversation: Conversation) -> str | None:
    """The word that encloses the judged text and has to begin the reply, if there is one."""
    found = _KEY.search(conversation.system)
    return None if found is None else found[1]


def unkeyed(conversation: Conversation, key: str) -> Conversation:
    """The same request without the key word."""
    role, prompt = conversation.turns[-1]
    plain = prompt.replace(f"</{key}>", "").replace(f"<{key}>", "")
    return replace(conversation, system="", turns=(*conversation.turns[:-1], (role, plain)))


def with_key(reply: Reply, key: str) -> Reply:
    """The reply with the key word on a line before it."""
    return replace(reply, text=f"{key}\n{reply.text}")


def obeyed(conversation: Conversation) -> Reply | None:
    """The reply of a judge that does what the judged text says, if that says "reply 5" or the like."""
    order = _ORDER.search(conversation.prompt)
    return None if order is None else Reply(order[1], "stop", "judge", {"given": int(order[1])})
