"""Checks a reasoner's questions and exemplars before they are used; the words are data (``checks.yaml``)."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

import yaml

from app.domain.personagym.similarity import normalised

LEAST_WORDS = 4
"""Words of the shortest question, in scripts that separate words."""
RESTATED_WORDS = 6
"""Number of consecutive words of a rubric that show that an exemplar restates it."""
REPEATED_SHARE = 0.6
"""A text with a smaller share of distinct triples of words repeats itself; published questions have 0.9 and more."""
_ENGLISH_SHARE = 0.25
_FEWEST_TRIPLES = 8
_UNSPACED = 8
"""Characters a word from which a script does not separate words."""
_GREEK_QUESTION_MARK = "\u037e"

_WORDS: dict[str, Any] = yaml.safe_load(files(__package__).joinpath("checks.yaml").read_text("utf-8"))


def _flat(words: Iterable[str] | Mapping[str, Iterable[str]]) -> list[str]:
    return [one for each in words.values() for one in each] if isinstance(words, Mapping) else list(words)


def _any(kind: str) -> str:
    """Alternatives as whole words; scripts without spaces have no word boundary."""
    words = sorted(_flat(_WORDS[kind]), key=len, reverse=True)
    spaced = [word for word in words if re.match(r"\W*[a-z\u00c0-\u04ff]", word, re.IGNORECASE)]
    unspaced = [word for word in words if word not in spaced]
    parts = [rf"(?<!\w)(?:{'|'.join(spaced)})(?!\w)", *unspaced]
    return f"(?:{'|'.join(parts)})"


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE)


# Of plain text: its full-width marks are ASCII.
_QUOTED = re.compile(
    r'"[^"\n]*"|“[^”\n]*”|«[^»\n]*»|„[^“”\n]*[“”]|「[^」\n]*」|(?<!\w)[\'‘][^\'’\n]{3,}[\'’](?!\w)'
)
_QUESTION_MARK = re.compile(r"[?؟‽՞]")
_SENTENCE_END = re.compile(r"(?<=[.!?؟])[\"'”’»)*_]*\s+|(?<=。)|\n+")
_ENGLISH, _SECOND_PERSON = _pattern(_any("english")), _pattern(_any("second_person"))
_AT_SENTENCE = _pattern(rf"(?:^|[.!?:;。]\s*)\W*{_any('requests')}")
_REQUEST = _pattern(
    rf"(?:^|[.!?:;,–—。、-]\s*|(?<!\w)(?:and|then|please|now|so)\s+)\W*{_any('requests')}"
    r"|(?:ください|下さい|教えて|주세요|하세요|십시오)"
)
_FIRST_PERSON = _pattern(_any("first_person"))
_LABEL, _ANSWER = (_pattern(rf"^[\W_]*{_any(kind)}[*_]*\s*:") for kind in ("labels", "answers"))
_PLACEHOLDER = re.compile(
    r"\{[a-z_ ]+\}|\[(?:your|the|an?|insert|name|environments?|persona|question)\b[^\]\n]*\]|<(?:question|persona|environment|answer)>",
    re.IGNORECASE,
)
_SCORE_ALONE = _pattern(
    rf"^\W*(?:(?:{_any('final')}|the|a|my)\s*)*{_any('scores')}\W*(?:is|of|ist|est|es|é|è)?\W*[1-5](?:\W*(?:/|out of|von|sur|de|su|из)\W*5)?\W*$"
    r"|^\W*[1-5]\s*(?:/|out of)\s*5\W*$"
)
_SCORE_WORD, _FINAL = _pattern(_any("scores")), _pattern(_any("final"))
_SCORE_NUMBER = re.compile(
    r"(?<![\w.,:–-])(?<!to )(?<!and )[*_(\"']*[1-5](?![\w%])(?![.,:–-]\d)(?!\s*(?:-|–|to|and|goals?|points?)\s*\d)"
)
_OF_REASONER = {
    "says that it is a model": _pattern(_any("discloses")),
    "refuses to ask": _pattern(_any("refuses")),
    "speaks of the task": _pattern(_any("about_task")),
}
_TAG_QUESTION = _pattern(rf"[,;.!–—、-]\s*{_any('tags')}\s*\?\s*$")
_RESPONSE, _RUBRIC = _pattern(_any("response")), _pattern(_any("rubric"))


def question_fault(question: str) -> str | None:
    """Say why a text is no question or request to the persona; ``None`` for a good one.

    It asks the persona: it does not speak of the reasoner or of its task. It has a question mark, or a clause that begins with a
    verb that asks the persona to speak. In English it also addresses the persona, by the second person or by that verb.

    Args:
        question: One element of the reasoner's list. Untrusted.
    """
    text = _plain(question)
    words = normalised(text).split()
    if len(words) < LEAST_WORDS and len(words) * _UNSPACED > len(text):
        return "has fewer than four words"
    own = _QUOTED.sub(" ", text)
    of_reasoner = next((fault for fault, pattern in _OF_REASONER.items() if pattern.search(own)), None)
    return _form_fault(text) or of_reasoner or _asking_fault(text, own, words)


def _asking_fault(text: str, own: str, words: list[str]) -> str | None:
    """Say why a text, given also without its quotations, asks the persona nothing."""
    untagged = _TAG_QUESTION.sub(".", own)
    if untagged != own and _FIRST_PERSON.search(untagged):
        own = untagged
    marks = list(_QUESTION_MARK.finditer(own))
    requested = _REQUEST.search(own)
    if not marks and not requested:
        if _FIRST_PERSON.search(own):
            return "is the persona's own answer"
        if not _QUESTION_MARK.search(text):
            return "neither asks nor requests anything"
    after = own[marks[-1].end() :] if marks else ""
    if _ANSWER.search(text):
        return "holds an answer"
    if _FIRST_PERSON.search(after) and not _SECOND_PERSON.search(after) and not _AT_SENTENCE.search(after):
        return "holds the persona's own answer"
    english = sum(bool(_ENGLISH.fullmatch(word)) for word in words) >= _ENGLISH_SHARE * len(words)
    if english and not requested and not _SECOND_PERSON.search(text):
        return "does not address the persona"
    return None


def exemplar_fault(exemplars: Mapping[int, str], rubric: str, question: str) -> str | None:
    """Say why exemplars cannot illustrate a rubric; ``None`` for good ones.

    Args:
        exemplars: The texts by score. Untrusted.
        rubric: The rubric that the reasoner was shown.
        question: The question to which they respond.
    """
    runs = _runs(_QUOTED.sub(" ", rubric))
    for score, text in exemplars.items():
        fault = _fault_of(_plain(text), runs)
        if normalised(text) == normalised(question):
            fault = "is the question"
        if fault:
            return f"the exemplar for score {score} {fault}"
    return None


def _fault_of(text: str, runs: frozenset[tuple[str, ...]]) -> str | None:
    if not runs.isdisjoint(_runs(text)):
        return "restates the rubric"
    for sentence in _sentences(_QUOTED.sub(" ", text)):
        if _states_score(sentence):
            return "states a score"
        if _RESPONSE.search(sentence) and _RUBRIC.search(sentence):
            return "describes a response instead of giving one"
    return _form_fault(text)


def _form_fault(text: str) -> str | None:
    """Say what is wrong with the form of a question or exemplar."""
    if _PLACEHOLDER.search(text):
        return "has a placeholder"
    if _LABEL.search(text):
        return "restates the prompt"
    return "repeats itself" if _repeats(text) else None


def _states_score(sentence: str) -> bool:
    if _SCORE_ALONE.search(sentence):
        return True
    about = _RESPONSE.search(sentence) or _FINAL.search(sentence)
    return bool(about and _SCORE_WORD.search(sentence) and _SCORE_NUMBER.search(sentence))


def _repeats(text: str) -> bool:
    """Tell whether a sentence is in a text twice, or the same few words again and again."""
    sentences = [words for each in _sentences(text) if len(words := normalised(each).split()) >= LEAST_WORDS]
    words = normalised(text).split()
    triples = list(zip(words, words[1:], words[2:], strict=False))
    often = len(triples) >= _FEWEST_TRIPLES and len(set(triples)) < REPEATED_SHARE * len(triples)
    return often or len({tuple(each) for each in sentences}) < len(sentences)


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text.replace(_GREEK_QUESTION_MARK, "?"))


def _sentences(text: str) -> list[str]:
    return [part.strip() for part in _SENTENCE_END.split(text) if part.strip()]


def _runs(text: str) -> frozenset[tuple[str, ...]]:
    words = normalised(text).split()
    return frozenset(tuple(words[n : n + RESTATED_WORDS]) for n in range(len(words) - RESTATED_WORDS + 1))
