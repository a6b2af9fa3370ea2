"""Finds where a judge's reply states a score: bare, on a labelled line or in a statement; everything else is never read.

A statement counts only where a clause begins with it, with nothing between it and its value but words of a closed vocabulary. So
negated, quoted, hypothetical, superlative and other people's scores have no form that is read.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from app.domain.instruments.dimension import Dimension, Scale
from app.domain.judging.phrases import (
    WORDS,
    Phrases,
    Stems,
    all_words,
    by_script,
    has_any,
    has_digit,
    one_of,
    whole_words,
)
from app.domain.judging.reply_text import BLANK, DENIED, FOREIGN, labelled, spelled_out, with_denials
from app.domain.judging.scale_words import Ends, OffTopic, ends_of, off_topic

SCALE_MARK = "§"
"""Replaces a mention of the whole scale, such as "1 to 5"."""
_LONGEST_SENTENCE = 600
_SHORTEST_LABEL = 4
MOST_CLAIMS = 50


OUT_OF = one_of(WORDS["out_of"])
NOT_APPLICABLE_WORDS = one_of(WORDS["not_applicable"])
JUDGED_UNIT = one_of(WORDS["judged_units"])
AFTER_UNIT_NUMBER = "(?:句话?|文)?"
_UNIT_LABEL = (
    rf"[*_]{{0,2}}{JUDGED_UNIT}\s?#?1{AFTER_UNIT_NUMBER}[*_]*(?:\s*:| -(?= ))[*_]*\s*(?=\d{{1,4}}\b[^\n]*\Z)"
)
OPENING = re.compile(
    rf"\A(?:(?:q(?:uestion)?:[^\n]*\n\s*)?{one_of(WORDS['roles'])}(?![^\n]*\n\s*b:)\s*[:\n]\s*|{one_of(WORDS['assents'])}[,.!]\s+(?=\d{{1,4}}(?:\s?[).:–-]\s?[^\W\d]|\.?$))|{_UNIT_LABEL})"
)
"""Matches a role, an assent or the label of the only sentence at the beginning of a reply."""


class Elsewhere(NamedTuple):
    """Patterns that name another dimension than the asked one.

    Attributes:
        before: Before a statement.
        behind: Behind a score.
        title: A whole line: "Openness", "Trait: openness", "The trait judged here is openness".
        end: A whole line that is a word for an end of its scale: "Neurotic".
        field: A field or a tag with its name: ``"trait": "openness"``.
        lead: The begin of a score's line: "Trait: openness".
        topic: A sentence that says what the judged text is about: "This sentence is about openness."
        stems: How the names begin.
        instead: The asked dimension's name behind a denial: "rather than extraversion".
        named: Another dimension's name, or that of the asked one's lower end.
        own: The asked dimension's name or that of an end of its scale.
    """

    before: re.Pattern[str]
    behind: re.Pattern[str]
    title: re.Pattern[str]
    end: re.Pattern[str]
    field: re.Pattern[str]
    lead: re.Pattern[str]
    topic: re.Pattern[str]
    stems: Stems
    instead: re.Pattern[str]
    named: re.Pattern[str]
    own: re.Pattern[str]


class Claim(NamedTuple):
    """A place where a reply states its score.

    Attributes:
        number: The number; ``None`` if the statement names no single number.
        text: The words that follow the number up to the end of its sentence.
        end: Where the claim ends in the rewritten reply.
        firm: Whether nothing hedges it.
    """

    number: str | None
    text: str
    end: int
    firm: bool = True


_ONLY_NOT_APPLICABLE = re.compile(NOT_APPLICABLE_WORDS)
_NOT_APPLICABLE = Stems(WORDS["not_applicable"])
_NOT_APPLICABLE_LINE = re.compile(rf"[:=]\s*{NOT_APPLICABLE_WORDS}")
_NUMBER = r"[+-]?\d+(?:[.,]\d+)*"
_ANY_NUMBER = re.compile(_NUMBER)
_OPENING = r"[\s'(\[{]{0,8}"
_CLOSING = r"[\s')\]}]{0,8}"
_UNIT = rf"(?:\s?{one_of(WORDS['units'])})?(?:\s?{one_of(WORDS['endings'])})?"
_NOT_AFTER = r"(?!\w|[%°+/~^²]|[.,:-]\d|\s?\.\.|…|-(?:\w|$)|\s?[!(]{0,2}\?|\x00|\u0336)"
_SPACED_LEADS, _UNSPACED_LEADS = map(
    one_of, by_script([*all_words("scores"), *all_words("adjectives"), *WORDS["joints"]])
)
_VALUE = re.compile(
    rf"{_OPENING}(?:{_SPACED_LEADS}(?:[\s:]+|(?<='))|{_UNSPACED_LEADS}\s*|#\s*){{0,5}}{_OPENING}({_NUMBER})(?:st\b)?{_UNIT}{_NOT_AFTER}"
)
_TAIL = re.compile(
    rf"{_CLOSING}(?:\s*$|[.;!)\]](?!\d)|,(?!\d)|:|\s*[–—(<|{BLANK}]|\s-\s|\s+{whole_words([*WORDS['reasons'], *WORDS['after']])}|\s*{SCALE_MARK})"
)
_DOUBTED = re.compile(
    rf"[*_'\]}}]*(?:[^\S\n]|[,;(–—-])+(?:{'|'.join(WORDS['doubts'])})\b"
    r"|[*_'\])}]*[.,:;)\s]+(?:no,|or\b|but(?! not)\b|wait\b|i mean\b)|\s*[?/]"
)
_LAST_NUMBER = re.compile(r"[.!]\s+(\d{1,4})\s*$")
"""Matches a number that stands alone after the last sentence of a line."""


class _Line(NamedTuple):
    """A line of a rewritten reply with its offset."""

    start: int
    text: str
    has_digit: bool

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def _lines(text: str) -> Iterator[_Line]:
    """Yield the lines that are not empty."""
    start = 0
    for line in text.split("\n"):
        if line and not line.isspace():
            yield _Line(start, line, has_digit(line))
        start += len(line) + 1


def _named_by(lines: list[_Line], n: int) -> Iterator[str]:
    """Yield the line before a line, and the one before a rule ("---")."""
    for line in reversed(lines[max(0, n - 2) : n]):
        yield line.text
        if _LETTER.search(line.text) or has_digit(line.text):
            return


_SENTENCE_END = re.compile(r"[.!?;](?=\s|$)")
_SENTENCE_BREAK = re.compile(r"(?<=[.!?;])\s|\n")
_BULLET = re.compile(r"^[^\S\n]*(?:[-•·+](?=\s+[^\W\d])|[|#>=]+)?[^\S\n]*")
_LEADING = re.compile(
    rf"(?:(?:({whole_words(all_words('conclusions'))})|{whole_words(WORDS['connectives'])})[,:]?\s*)+"
)
_CLAUSE = re.compile(
    rf"[ ,:;(\[](?:(?<! ) *|(?<= )(?:- *| *(?={whole_words([*all_words('conclusions'), *WORDS['connectives']])})))"
)
"""Matches what a clause of an English sentence begins with."""
_FOREIGN_CLAUSE = re.compile(
    rf"[–—]\s*|{_CLAUSE.pattern}|(?={one_of(by_script(all_words('conclusions'))[1])})"
)
_ADVERB = (
    rf"(?!{one_of(WORDS['denials'])}\b)(?!(?:near|almost|possib|potential|initial|original|previous)ly)\w+ly"
)
_HYPOTHETICAL = Phrases(all_words("hypothetical"))
_TITLE_WORDS = whole_words(WORDS["titles"])
_TITLE = re.compile(
    rf"(?:{whole_words([*all_words('adjectives'), *WORDS['titled']])}[\s:-]*){{0,3}}{_TITLE_WORDS}(?: ?{whole_words(WORDS['titled_texts'])})?[\s:-]*"
)
"""Matches a short title over a score: "Evaluation of the sentence"."""
_LONGEST_ATTRIBUTION = 120
_ATTRIBUTED = re.compile(
    rf"{whole_words([*all_words('attributions'), *WORDS['others']])}[^,;:]{{0,60}}(?:[,:]| that)$"
)
_REMARK = re.compile(r"\s*note:\s*")
"""Matches what is a score's name in French and German, and begins a remark in English."""
_ANNOUNCING = re.compile(
    rf"{whole_words(all_words('attributions'))}(?: (?:this|these|the following|as follows)(?: [^\W\d]+)?)?$"
)
_REFERENCE = re.compile(r"\bcorrect(?:ed)?\b.*\b(?:answer|response|result|output|value|number)")
"""Matches the name of what a graded response should have said."""
_SOLUTION = re.compile(r"\banswer (?:is|would be|will be)\b")
"""Matches a statement that in the middle of a critique solves the task."""
_HEADING = re.compile(whole_words(WORDS["headings"]))
"""Matches the heading of a reason, behind which a statement is the judge's own."""
_NO_ANSWER = re.compile(rf"(?:^|:)\W{{0,20}}{whole_words(WORDS['not_answers'])}\s{{0,9}}[,:]\s{{0,9}}$")
_FIRST_PERSON = re.compile(whole_words(WORDS["first_person"]))
_DENIAL = Phrases(WORDS["denials"])
_NOT = re.compile("n't")
_NUMBER_BEHIND = re.compile(
    rf"[^\S\n]+(?:(?:[^\W\d]+(?:[^\S\n]|:)+){{0,2}}?(?:[^\S\n]|['(])*({_NUMBER})|(?:an? |the )?({BLANK}))"
)
_SCORE_NAME = re.compile(one_of(all_words("scores")))
_GIVEN = re.compile(rf"\s*{whole_words(WORDS['given'])}")
_GIVEN_LEAD = re.compile(r"(?:based|given|considering|after|having)\b")
_LIMITING = re.compile(rf"\W*{whole_words(all_words('limiting'))}[^,;:]*,\s*$")
_UNLIMITING = re.compile(rf"\W*{one_of(all_words('unlimiting'))}")
_MINUS = re.compile(r"-\s*$")
_SEGMENT = re.compile(r"[,;.:]")
_UNCONCLUDED = re.compile(r"\b(?:if|only|even|unless)\b[^,;:]*$|^\W*(?:only if|unless)\b")
"""Matches what turns a conclusion into a condition ("if so", "only then")."""
_CONDITIONAL = re.compile(rf"[\s–—-]+would {whole_words(WORDS['conditional'])}")
_REASON_WORD = whole_words(WORDS["reasons"])
_REASON = re.compile(rf"[\s(,;:.–—-]*{_REASON_WORD}")
_PERSON = re.compile(rf"(?:the |this )?{whole_words([*WORDS['persons'], *WORDS['judged']])}")
_DURATION = re.compile(r"\s*\d+[ -](?:year|month|week|day|hour|minute|page|word)s?\b")
"""Matches a number that a unit of something else than scores follows: "a 34-year-old chef"."""
_DANGLING = re.compile(r"(?:\b(?:is|be|of|as|a)|[:=])\s*$")
_SPELLED_WORDS = (
    "\0",
    *(word for word in WORDS["spelled"] if word != "ten"),
    *(sign + "ten" for sign in " \n([':=~/|-"),  # not as in "sentence"
)
_LOUD = (
    *"0123456789",
    *(word for word in _SPELLED_WORDS if word not in WORDS["vague"]),
    *'"<>{}[]|\\$`_',
    " '",
)
"""Pieces of text that may be a number, a quotation or a machine format."""
_SPELLED = re.compile(rf"[\d\x00\W](?:(?<=[\d\x00])|{one_of(WORDS['spelled'])}\b)")
"""Matches, in a text that begins with no letter, what may stand in the place of a number."""
_RETRACTED = Phrases(word for words in WORDS["retractions"]["anywhere"].values() for word in words)
_FAULT = re.compile(
    rf"(?:{'|'.join(WORDS['judged_subjects'])})(?:(?!{whole_words(all_words('scores'))})[^.;!?\n\d])*?{whole_words(WORDS['faults'])}(?![^.;!?\n]*\b(?:my|i)\b)"
)
"""Matches what a reason says is wrong with the judged text."""
_CONDITION = re.compile(rf",? {whole_words(WORDS['conditions'])}")
_LIMITED = re.compile(
    rf"(?:[\W_]|{SCALE_MARK})*(?:[^\W\d]+[\s,]+){{0,2}}?{whole_words(WORDS['conditions'])}"
    rf"|\s?[,;–—-]+\s*(?:(?:it|he|she|they|thus|so|some|one|many|others|people) )?(?:(?:would|might|could|may) )?{whole_words(all_words('attributions'))}"
    rf"|\s?[,;–—-]+\s*(?:the|this) [^\W\d]+ {whole_words(all_words('attributions'))}\W*(?:\n|$)"
)
_RETRACTING = re.compile(
    rf"[.!?;\n…(–—,-][\s'(\[–—-]{{0,8}}{whole_words(WORDS['retractions']['first'])}(?=\W|$)"
)
_REMARK_ON_OWN = re.compile(
    rf"[.!?;\n(–—][\s'(\[–—-]{{0,8}}i(?:'(?:m|ve|d))?+(?=[ '])(?! {whole_words(WORDS['explaining'])})"
)
"""Matches the begin of a sentence in which the judge speaks of itself and does not explain its score."""
_CHANGES = re.compile(whole_words(WORDS["changes"]))
_CONCEDED = re.compile(
    rf"^\W*(?:[^\W\d]+:\s*)?{whole_words(WORDS['concessions']['clauses'])}[^,.;!?\n]*,(?=\s*\w)"
    rf"|^[^.;!?\n]*{whole_words(WORDS['concessions']['verbs'])}[^.;!?\n]*{whole_words(WORDS['concessions']['turns'])}"
)
"""Matches what a sentence concedes before its main point: "While one could argue for a 5, …", "It could be a 5, but …"."""
_SCORE_LINE = re.compile(
    rf"\W*(?!note:)(?:[^\W\d]+ ){{0,2}}?{whole_words(all_words('scores'))}[^:=\n]{{0,20}}[:=]"
)
_RULED_OUT_BEHIND = re.compile(
    rf"\b(?:not|no|than|unlike|nor)\s(?:an? )?{_NUMBER}|{_NUMBER} would (?:need|require|mean|imply|take|have)\b|\bconfidence\b[^,;\n%]*%|{whole_words(WORDS['reasons'])}.*",
    re.DOTALL,
)
"""Matches numbers behind a score that belong to its reason."""
_ORDINAL = re.compile(whole_words(WORDS["ordinals"]))
_LETTER = re.compile(r"[^\W\d_]")
_LIST_ITEM = re.compile(r"^[^\S\n]*(?:#+[^\S\n]*)?(\d{1,2})(?:[.):]| ?[–—-])[^\S\n]+\S", re.MULTILINE)
_NAMED_NUMBER = re.compile(
    rf"\W*([^\W\d][^\d().,:;=>→–—\n]{{1,60}}?)\s?(?:[:=>→–—]\s?|(?<=\s)-\s|(\())(\d{{1,4}})(?(2)\))(?=\s*(?:$|[.,;:]|[–—-]\s|{whole_words(WORDS['reasons'])}))"
)
"""Matches words with a number behind them: "Moderately introverted (2)", "Moderately introverted – 2"."""
_LINE_LEAD = re.compile(r"\s*(?:#{1,6}|[•·▪]|[-*+](?=\s\d{1,4}[).:]\s?[^\W\d]))\s*")
_BARE = re.compile(
    rf"[\s'(\[{{]{{0,8}}({_NUMBER}){_UNIT}{_NOT_AFTER}([\s'\]}}]*)(\)?[.:;!)](?!\d)|,(?!\s?\d)|[–—=-](?!\s?\d)|\(|\n|$|(?={whole_words(WORDS['reasons'])}|on an? ))?"
)


_LONGEST_OPTION = 150
_AROUND_OPTION = 20
"""Characters of the number and signs around an option's words."""
_LONGEST_NUMBER = 20
"""Characters of an option's number with signs around it."""
_OPTION_TEXT = re.compile(rf"(?:{_NUMBER}(?:\s?/\s?\d+)?)?\s?[).:-]?\s*(.*)")
_HEAD_OF_THOUGHTS = re.compile(r"think\w*|thought\w*")
_MOST_WORDS_OF_NAME = 6
_LONGEST_TITLE = 80
_MOST_NAMES, _LONGEST_NAME = 200, 40
"""Names of fields that are remembered, and characters of one."""
_QUALITY_WORDS = whole_words(all_words("qualities"))
_SUBJECTS = [*WORDS["subjects"], *WORDS["criteria"], *WORDS["parts"]]
_QUALITY = rf"(?:{whole_words(_SUBJECTS)}[ :=–—-]*)?{_QUALITY_WORDS}(?: (?:and|&|und|et|y|e|и|和|と|및) {_QUALITY_WORDS})?"
_SIDE_TITLE = re.compile(
    rf"(?:{_QUALITY}|{whole_words(WORDS['side_fields'])})(?:[ :-]*{whole_words(WORDS['titles'])})?(?: {whole_words(WORDS['titled_texts'])})?"
)
"""Matches the title of a score that is not the asked one: "Confidence", "Criterion: grammar"."""
_CRITERION = re.compile(rf"{whole_words(WORDS['criteria'])} ?[:=–—-] ?([^\W\d]+)")
"""Matches a line that names what is scored by one word; more words are a reason."""
_QUALITY_LEAD = re.compile(
    rf"{_QUALITY}(?:\s*:\s*(?!(?:the|this) {whole_words(WORDS['persons'])})(?:{'|'.join(WORDS['judged_subjects'])}) (?:is|reads)\b[^\d\n]*)?"
)
"""Matches what stands before a score on its line: "Clarity", "Clarity: the text is easy to read"; else it heads a reason."""
_SHORT_STRING = re.compile(r"""["'<]([^"'<>\n]{1,40})["'>]""")
_INITIALS = frozenset("ocean")
"""Names of the dimensions by one letter."""
_QUALITY_FIELD = re.compile(
    rf"""["'<]{one_of(_SUBJECTS)}(?:["']\s*:\s*["']|>\s*){_QUALITY_WORDS}\s*(?:["']|</)"""
)
"""Matches a field or a tag with a quality's name: ``"criterion": "grammar"``."""
_OF_QUALITY = re.compile(
    rf"\b(?:for(?! clarity)|{one_of(WORDS['regarding'])}) (?:the )?{_QUALITY_WORDS}|[(\[]\s*{_QUALITY_WORDS}\s*[)\]]"
)
"""Matches words that limit a statement to a quality: "in terms of grammar"."""
_LEAD_END = re.compile(r"[.;|] |,\s| [-–—] (?=[^.;–—-]*$)")
_OPTION = re.compile(
    r"[*_\"'`]*(?:(\d{1,4})[*_]*(?:\)[.:]?|[.:]|(?=[*_\"'`]*$)))?\s*((?:[^\W\d][^\d]*?)?)(?:\s*\((\d{1,4})\))?\.?[*_\"'`]*"
)


@dataclass(frozen=True)
class Reader:
    """Finds claims in replies about one dimension or rubric.

    Attributes:
        labels: The options' words by number, plain and in lower case.
        poles: Words for the lower and the upper end of the scale, such as "introverted".
        head: What announces a value on a labelled line or in a sentence.
        label_words: The longest word of each option.
        longest_option: Characters of the longest option with its number.
        legend: Matches an explanation of the scale by its ends: "1 means very introverted and 5 very extroverted".
        names: Fields' names that were looked up, and whether they are like a score's.
        trait: Matches the words by which judges call the dimension.
        quoted: Matches a dimension's or a quality's name in quotation marks.
    """

    labels: dict[int, str]
    head: re.Pattern[str]
    heading: re.Pattern[str]
    any_label: re.Pattern[str]
    first_option: re.Pattern[str]
    poles: tuple[Phrases | None, Phrases | None]
    not_applicable: int
    echo: str
    ends: Ends | None
    label_words: tuple[str, ...]
    longest_option: int
    legend: re.Pattern[str] | None
    elsewhere: Elsewhere | None
    off_topic: OffTopic
    names: dict[str, bool]
    trait: re.Pattern[str]
    quoted: re.Pattern[str]

    def unquoted(self, text: str) -> str:
        """Strip the quotation marks around names of dimensions and qualities in a plain text; a JSON object keeps its own."""
        return self.quoted.sub(r"\2", text) if ("'" in text or '"' in text) and "{" not in text else text

    def is_name(self, key: str) -> bool:
        """Tell whether a field or a tag is named like a score."""
        known = self.names.get(key)
        if known is not None:
            return known
        words = re.sub(r"[\s_-]+", " ", re.sub(r"^(?:final|overall|total)", r"\g<0> ", key)).strip()
        is_name = self.heading.fullmatch(words) is not None
        if len(self.names) < _MOST_NAMES and len(key) <= _LONGEST_NAME:
            self.names[key] = is_name
        return is_name

    def may_lead(self, words: str) -> bool:
        """Tell whether words before an option that is not a number are a score's name or say nothing."""
        words = words.strip(" :\n").removesuffix(" is")
        return not words or self.is_name(words) or _LEADING.fullmatch(words) is not None

    def has_label(self, text: str) -> bool:
        """Tell whether a text may use an option's words; a tenth of the time of a search for them."""
        return has_any(text, self.label_words)

    def is_value(self, content: str) -> bool:
        """Tell whether a text is a number, an option's words, or both."""
        content = content.strip(" .*_\n")
        if len(content) > 120:  # noqa: PLR2004 - no option's words are longer
            return False
        if not content or not (
            content[0] in "+-"
            or content[0].isdecimal()
            or self.has_label(content)
            or _NOT_APPLICABLE.may_be_in(content)
        ):
            return False
        found = _OPTION_TEXT.fullmatch(content)
        return found is not None and (not found[1] or self.option_of(found[1]) is not None)

    def option_of(self, words: str) -> int | None:
        """Return the option whose words these are."""
        words = _same(words)
        if words in self.labels.values():
            return next(number for number, label in self.labels.items() if label == words)
        return self.not_applicable if _ONLY_NOT_APPLICABLE.fullmatch(words) else None

    def bare_option(self, text: str) -> str | None:
        """Return the number of a plain reply that is one option and nothing else: its number, its words, or both of them."""
        if len(text) > self.longest_option or (
            len(text) > _LONGEST_NUMBER and not (self.has_label(text) or _NOT_APPLICABLE.may_be_in(text))
        ):
            return None
        found = _OPTION.fullmatch(text)
        if found is None:
            return None
        if not found[2]:
            return found[1]
        number = found[1] or found[3]
        option = self.option_of(found[2])
        return str(option) if option is not None and number in {None, str(option)} else None

    def end_of_option(self, text: str) -> int:
        """Return where an option's number and words end with which a plain reply begins, or 0."""
        found = self.first_option.match(text)
        return found.end() if found is not None and self.option_of(found[2]) == int(found[1]) else 0

    def rewritten(self, text: str) -> str:
        """Rewrite a plain reply into labelled lines, the first of which is empty; leave out a copy of the options."""
        if self.echo and self.echo in text:
            text = text.replace(self.echo, "\n")
        if self.legend is not None and self.has_label(text):
            text = self.legend.sub(SCALE_MARK, text)
        denied = DENIED if self._has_other_field(text) else ""
        return f"\n{labelled(text, self.is_name, self.is_value, self._tells_end, self.is_other_name)}{denied}"

    def _has_other_field(self, text: str) -> bool:
        if not ("<" in text or ("{" in text and ":" in text)):
            return False
        if _QUALITY_FIELD.search(text) and not any(
            self.is_name(each) and self.trait.search(each)
            for each in _SHORT_STRING.findall(text.replace("_", " "))
        ):
            return True
        return self.elsewhere is not None and self.elsewhere.field.search(text) is not None

    def is_other_name(self, key: str) -> bool:
        """Tell whether a field's name says that the scores in its object are those of another dimension or of a quality."""
        words = re.sub(r"[\s_-]+", " ", key[:_LONGEST_TITLE])
        if self.is_name(key) or self.trait.search(words):
            return False
        return _SIDE_TITLE.fullmatch(words) is not None or (
            self.elsewhere is not None
            and (words in _INITIALS or self.elsewhere.named.search(words) is not None)
        )

    def _tells_end(self, text: str) -> bool:
        return (
            self.ends is not None
            and self.ends.may_name(text)
            and any(signs.in_("\n" + text) for signs in self.ends.signs)
        ) or self.off_topic.is_stated_in(text)

    def claims(self, text: str, *, signed: bool) -> list[Claim]:
        """Return every place where a rewritten reply states its score, in their order."""
        lines = list(_lines(text))
        lines = [line for n, line in enumerate(lines) if n == 0 or not _announces(lines[n - 1].text)]
        if not lines:
            return []
        stated = islice(self._stated(text, lines, signed=signed), MOST_CLAIMS + 1)
        claims = {*self._named(lines), *self._bare(text, lines), *stated}
        return sorted(claims, key=lambda claim: (claim.end, not claim.firm))[: MOST_CLAIMS + 1]

    def _bare(self, text: str, lines: list["_Line"]) -> Iterator[Claim]:
        """Numbers that begin the reply or its last line, or are a line's only content."""
        lines = lines if len(lines) <= 2 * MOST_CLAIMS else [*lines[:MOST_CLAIMS], *lines[-MOST_CLAIMS:]]
        for n, start, line in ((n, each.start, each.text) for n, each in enumerate(lines) if each.has_digit):
            lead = _LINE_LEAD.match(line)
            found = _BARE.match(line, lead.end() if lead else 0)
            if found is None:
                continue
            rest = line[found.end() :].strip(" .)")
            alone = not rest
            if alone and any(self._is_other_name(each) for each in _named_by(lines, n)):
                yield Claim(found[1], "", start + found.end(), firm=False)
                continue
            labelled_ = bool(rest) and self._fits(rest, found[1])
            if lead and lead[0].strip() in {"-", "*", "+"} and not labelled_:
                continue
            heading = found[3] is None or (
                found[3] in {".", ")", ")."} and len(lines) > 1 and rest[-1:] not in ".!?"
            )
            if not (alone or labelled_) and (heading or len(set(_LIST_ITEM.findall(text))) > 1):
                continue
            if not (alone or n == 0 or (labelled_ and n == len(lines) - 1)):
                continue
            prose = not labelled_ and rest[:1].isalpha() and (found[3] or "")[:1] in {".", ")", "\n"}
            if rest and not labelled_ and self._is_item(found, rest, prose=prose):
                continue
            if _DOUBTED.match(line, found.end(1)) and not labelled_:
                yield Claim(None, "", start + found.end(), firm=False)
                continue
            reason = line[found.end(1) :] if _REASON.match(line, found.end()) else rest
            if not prose and _other_number(_SENTENCE_END.split(reason)[0], found[1]):
                yield Claim(None, "", start + found.end(), firm=False)
                continue
            yield Claim(found[1], rest, start + found.end())

    def _is_other_name(self, line: str) -> bool:
        """Tell whether a line before a number is a name, but not a score's ("Confidence")."""
        words = line.strip(" #|-")
        return (
            0 < len(words) <= _LONGEST_NAME
            and words[-1].isalpha()
            and len(words.split()) <= _MOST_WORDS_OF_NAME
            and not self.has_label(words)
            and not (
                self._is_heading(line)
                or _LEADING.fullmatch(words)
                or _HEAD_OF_THOUGHTS.fullmatch(words)
                or _TITLE.fullmatch(self.trait.sub("", words).strip())
            )
        )

    def _is_item(self, found: re.Match[str], rest: str, *, prose: bool) -> bool:
        """Tell whether a number that prose follows counts a list's items; beside options it needs a reason or their words."""
        sign = (found[3] or "").strip()
        if (
            found[1] != str(self.not_applicable)
            and len(self.labels) > 1
            and rest[:1].isalpha()
            and sign not in {"", ","}
        ):
            first = sign[0] in ".)" or found[1] == "1"
            return _REASON.match(rest) is None and (first or _PERSON.match(rest) is None)
        item = found[1] == "1" and sign.strip(".:") in {"", ")"}
        return item or (prose and _ORDINAL.match(rest) is not None)

    def _named(self, lines: list["_Line"]) -> Iterator[Claim]:
        """Numbers behind an option's words at the beginning of the first or the last line, unless other lines list others."""
        for line in {lines[0], lines[-1]}:
            found = self._named_number(line, 0)
            if found is not None and not _CONDITIONAL.match(line.text, found.end()):
                listed = (
                    self._named_number(each, at) for each in lines for at in (0, each.text.find(":") + 1)
                )
                firm = {each[3] for each in listed if each is not None} == {found[3]}
                firm = firm and not _other_number(line.text[found.end() :], found[3])
                yield Claim(found[3], "", line.start + found.end(), firm)

    def _named_number(self, line: _Line, at: int) -> re.Match[str] | None:
        found = _NAMED_NUMBER.match(line.text, at) if line.has_digit else None
        return found if found and self._names(found[1], found[3]) else None

    def _names(self, words: str, number: str) -> bool:
        """Tell whether words are an option's, or a degree and an end of the scale that fit the number."""
        option = self.option_of(words)
        if option is None:
            named = [each for each, label in self.labels.items() if label.startswith(_same(words) + " ")]
            option = named[0] if len(named) == 1 else None
        if option == int(number):
            return True
        return (
            self.ends is not None and self.ends.may_name(words) and self.ends.name(_same(words), int(number))
        )

    def _fits(self, words: str, number: str) -> bool:
        """Tell whether words begin with the label of an option."""
        label = self.labels.get(int(number), "") if _PLAIN_NUMBER.fullmatch(number) else ""
        words = words.lstrip(" .):-–—(")
        first = _same(_LABEL_END.split(words, maxsplit=1)[0])
        if label and first:
            if first.startswith(label) or (label.startswith(first) and len(first) >= _SHORTEST_LABEL):
                return True
            if self.ends is not None and self.ends.name(first, int(number)):
                return True
        return self.has_label(words) and self.any_label.match(_same(words)) is not None

    def _stated(self, text: str, lines: list["_Line"], *, signed: bool) -> Iterator[Claim]:
        signs = _NOT_APPLICABLE.may_be_in(text) or self.has_label(text)
        spelled = has_any(text, _SPELLED_WORDS)
        for index, line in enumerate(lines):
            after = lines[index + 1] if index + 1 < len(lines) else None
            worded = signs or (spelled and has_any(f"\n{line.text}", _SPELLED_WORDS))
            if not (worded or line.has_digit) and not (
                after.has_digit if after is not None else _dangles(line.text)
            ):
                continue
            bullet = _BULLET.match(line.text)
            offset = line.start + (bullet.end() if bullet else 0)
            content = text[offset : line.end]
            if _LETTER.search(content) is None:
                continue
            if after is not None and self._is_heading(content):
                bare = _VALUE.match(after.text.strip(" |"))
                if bare and not after.text.strip(" |")[bare.end() :].strip(" .)]"):
                    yield Claim(bare[1], "", after.end)
                continue
            yield from self._in_line(content, offset, worded=worded, signed=signed, last=after is None)

    def _is_heading(self, content: str) -> bool:
        """Tell whether a line is a score's name, maybe with the scale in brackets."""
        return ("(" in content or not has_digit(content)) and bool(
            self.heading.fullmatch(content.strip(" #*:.|"))
        )

    def _in_line(
        self, content: str, offset: int, *, worded: bool, signed: bool, last: bool
    ) -> Iterator[Claim]:
        begin, length = 0, len(content.rstrip())
        for end in [*(found.end() for found in _SENTENCE_END.finditer(content)), len(content)]:
            sentence = content[begin:end]
            ends = last and end >= length
            if 0 < len(sentence) <= _LONGEST_SENTENCE and (
                has_digit(sentence)
                or (worded and self._has_words(sentence, last=ends))
                or (ends and _dangles(sentence))
            ):
                yield from self._in_sentence(
                    sentence, content[end : end + 200], offset + begin, signed=signed, last=ends
                )
            begin = end
        alone = _LAST_NUMBER.search(content) if last and content.rstrip()[-1:].isdecimal() else None
        if alone is not None and not has_digit(content[: alone.start()]):
            yield Claim(alone[1], "", offset + alone.end(1))

    def _has_words(self, sentence: str, *, last: bool) -> bool:
        """Tell whether a sentence has words that may stand in the place of a number."""
        return bool(
            _SPELLED.search("\n" + sentence)
            or (self.has_label(sentence) and self.any_label.search(sentence))
            or (_ONLY_NOT_APPLICABLE if last else _NOT_APPLICABLE_LINE).search(sentence)
        )

    def _in_sentence(
        self, sentence: str, rest: str, offset: int, *, signed: bool, last: bool
    ) -> Iterator[Claim]:
        lead = len(sentence) - len(sentence.lstrip())
        clause = _CLAUSE if sentence.isascii() else _FOREIGN_CLAUSE
        starts = [lead, *(found.end() for found in clause.finditer(sentence))]
        done = -1
        for start in starts:
            if start < done or (clause is _CLAUSE and sentence[start : start + 1].isdecimal()):
                continue
            leading = _LEADING.match(sentence, start)
            concluded = leading is not None and leading[1] is not None
            head = self.head.match(sentence, leading.end() if leading else start)
            head = head or (self.head.match(sentence, start) if leading else None)
            if head is None:
                bare = _VALUE.match(sentence, leading.end()) if leading and concluded and last else None
                if bare and not sentence[bare.end() :].strip(" .!)]'"):
                    yield Claim(bare[1], "", offset + bare.end())
                continue
            if (signed and _MINUS.search(head[0])) or (
                len(self.labels) == 1 and self._is_solution(head[0], last)
            ):
                continue
            done = head.end()
            before = sentence[:start].rstrip()
            announced = before.endswith(":")
            if (leading is None or announced) and _somebody_else(before):
                continue
            concluded = concluded and _UNCONCLUDED.search(before) is None
            claim = self._claim(sentence, rest, head, offset, concluded=concluded, last=last)
            if claim is not None and announced and not self._is_own_lead(before[:-1]):
                claim = claim._replace(firm=False)
            if claim is not None:
                yield claim

    @staticmethod
    def _is_solution(head: str, last: bool) -> bool:
        """Tell whether a critique states the task's solution, not its score."""
        return _REFERENCE.search(head) is not None or (not last and _SOLUTION.search(head) is not None)

    def _is_own_lead(self, lead: str) -> bool:
        """Tell whether words before a colon and a statement are the judge's: a score's name, an option or a reason's heading."""
        words = _SEGMENT.split(lead)[-1].strip(" ('[")
        leading = _LEADING.match(words + ":")
        words = words[leading.end() :] if leading else words
        return bool(
            not words
            or (self.head.fullmatch(words + ":") and not _REMARK.fullmatch(words + ":"))
            or _HEADING.fullmatch(words)
            or _FIRST_PERSON.match(words)
            or (_GIVEN_LEAD.match(words) and _ATTRIBUTED.search(words + ":") is None)
            or self.any_label.fullmatch(words)
        )

    def _claim(  # noqa: PLR0911 - one return for each thing that keeps a statement from being read
        self,
        sentence: str,
        rest: str,
        head: re.Match[str],
        offset: int,
        *,
        concluded: bool,
        last: bool,
    ) -> Claim | None:
        prefix, value = sentence[: head.start()], _VALUE.match(sentence, head.end())
        if head["alone"] is not None and (
            value is None
            or (
                sentence[value.end() :].strip(" .)]:!*") and not self._fits(sentence[value.end() :], value[1])
            )
        ):
            return None
        if value is None or not _TAIL.match(sentence, value.end()):
            return self._worded_claim(sentence, head, value, offset, last=last)
        if sentence.rstrip().endswith("?") or (not concluded and self._is_hypothetical(prefix, head[0])):
            return None
        tail = sentence[value.end() :]
        if self._limits_to_other(prefix + head[0]) or (self.elsewhere and self.elsewhere.behind.match(tail)):
            return None
        if not sentence[value.end(1) :].strip():
            return Claim(value[1], rest, offset + value.end())
        if _CONDITIONAL.match(tail):
            return None
        if (
            _DOUBTED.match(sentence, value.end(1))
            and not self._fits(tail, value[1])
            and not self._fits(rest, value[1])
        ):
            return Claim(None, "", offset + value.end(), firm=False)
        if _other_number(tail, value[1]):
            return Claim(value[1], "", offset + value.end(), firm=False)
        return Claim(value[1], tail if tail.strip(" .)") else rest, offset + value.end())

    def _limits_to_other(self, lead: str) -> bool:
        """Tell whether words before a value limit it to another dimension or a quality: "in terms of grammar"."""
        return (_OF_QUALITY.search(lead) is not None and self.trait.search(lead) is None) or (
            self.elsewhere is not None and self.elsewhere.before.search(lead) is not None
        )

    def _worded_claim(
        self, sentence: str, head: re.Match[str], value: re.Match[str] | None, offset: int, *, last: bool
    ) -> Claim | None:
        """Read a statement without a number, or with more than one."""
        words = _same(sentence[head.end() :].strip(" .'"))
        if self.option_of(words) is not None and not sentence[: head.start()].strip():
            return Claim(str(self.option_of(words)), words, offset + len(sentence))
        if (
            (" would " in head[0] and _CONDITION.match(sentence, value.end()))
            if value
            else _REMARK.fullmatch(head[0])
        ):
            return None
        following = sentence[head.end() : head.end() + 60]
        if _DURATION.match(following):
            return None
        cut_off = last and not following.strip(" .…*'") and _DANGLING.search(head[0])
        if cut_off or _SPELLED.search(" " + following):
            return Claim(None, "", offset + (len(sentence) if value else head.end()), firm=False)
        return None

    @staticmethod
    def _is_hypothetical(prefix: str, head: str) -> bool:
        """Tell whether the words before a statement, or its verb, make it hypothetical."""
        if _HYPOTHETICAL.in_("; " + prefix.lstrip()):
            return True
        if _LIMITING.match(prefix) and not _UNLIMITING.match(prefix):
            return True
        other = " would " in f" {head} " and not head.lstrip().startswith("i ")
        return other and bool(prefix.strip()) and not _GIVEN.match(prefix)

    def names_only(self, text: str, number: int) -> bool:
        """Tell whether a text's only words for the scale are the number's own label, directly behind the number."""
        before, label, after = text.partition(self.labels.get(number, "\n"))
        begun = before.rstrip(" .):–—-(")
        return (
            bool(label)
            and begun.endswith(str(number))
            and not begun[-2:-1].isdecimal()
            and not after[:1].isalnum()
            and not any(self.has_label(part) for part in (before, after))
            and not (self.ends is None or self.ends.may_name(before) or self.ends.may_name(after))
        )

    def misnames(self, words: str, number: int) -> bool:
        """Tell whether the words directly behind a number resemble the label of other options more than its own."""
        sentence = _CLAIM_END.split(words.lstrip(" .):-–—(!,=['"), maxsplit=1)[0]
        if (
            self.ends is not None
            and len(sentence) <= _LONGEST_OPTION
            and self.ends.contradict(sentence, number)
        ):
            return True
        words = _same(_LABEL_OR_REASON_END.split(words.lstrip(" .):-–—(!"), maxsplit=1)[0])
        said = set(words.split())
        if not said or len(said) > 8:  # noqa: PLR2004 - a sentence, no label
            return False
        likeness = {
            n: len(said & set(label.split())) / len(said | set(label.split()))
            for n, label in self.labels.items()
        }
        most = max(likeness.values())
        if most >= 0.5:  # noqa: PLR2004 - half of the words
            return likeness.get(number, 0.0) < most
        return (
            self.ends is None
            and _DENIED.search(words) is not None
            and any(pole and pole.in_("\n" + words) for pole in self.poles)
        )

    def is_about_other(self, text: str, score: int | None = None) -> bool:
        """Tell whether a title, the first line or the one before the score, names something else than the asked dimension.

        Args:
            text: The text.
            score: Where the score ends in it, if it has one.
        """
        before = _titles(text[:score])
        found = [*filter(_SIDE_TITLE.fullmatch, before[-2:])]
        line = text[:score].rstrip().rpartition("\n")[2]
        lead = _bare_title(_LEAD_END.split(line, maxsplit=1)[0])
        found += [line] if score is not None and _QUALITY_LEAD.fullmatch(lead) else []
        if self.elsewhere is not None:
            found += filter(self.elsewhere.end.fullmatch, before)
            found += filter(self.elsewhere.title.fullmatch, before if score is None else _titles(text))
            found += filter(self.elsewhere.lead.fullmatch, [lead])
            found += (
                each[1] for each in map(_CRITERION.fullmatch, before) if each and not self._is_own(each[1])
            )
        return not all(map(self.trait.search, found))

    def _is_own(self, words: str) -> bool:
        """Tell whether words may name the score, an option or an end of the scale."""
        return (
            self.is_name(words)
            or self.has_label(words)
            or (self.ends is not None and self.ends.may_name(words))
        )

    def is_on_other(self, text: str) -> bool:
        """Tell whether a sentence says that the judged text is about another dimension, and nothing names the asked one."""
        other = self.elsewhere
        if other is None or not other.stems.may_be_in(text) or other.topic.search("\n" + text) is None:
            return False
        rest = other.instead.sub(" ", text)
        return other.own.search(rest) is None and not (
            self.ends is not None
            and self.ends.may_name(rest)
            and any(signs.in_("\n" + rest) for signs in self.ends.signs)
        )

    def states_nothing(self, text: str) -> bool:
        """Tell whether a plain text surely states no score and names no option."""
        return not (
            has_any(text, _LOUD)
            or self.has_label(text)
            or _NOT_APPLICABLE.may_be_in(text)
            or _dangles(text)
            or _announces(text)
            or self.is_about_other(text, len(text))
            or (":" in text and with_denials(text, self.is_name) != text)
        )

    def fits(self, text: str, side: int) -> bool:
        """Tell whether what a text without options says of the scale surely fits a number on a side of it; see `contradicts`."""
        if self.ends is None:
            return len(self.labels) == 1
        if side and self.off_topic.is_stated_in(text):
            return abs(side) > 1
        return not self.ends.may_name(text) or (abs(side) == 1 and not self.contradicts(text, side))

    def contradicts(self, text: str, side: int) -> bool:
        """Tell whether the text denies the end of the scale on which its number lies, or asserts only the other one.

        Args:
            text: The rewritten reply.
            side: -1 for a number of the lower half, 1 for one of the upper half.
        """
        own, other = self.poles[::-side]
        if own is None or other is None or not (self.ends is None or self.ends.may_name(text)):
            return False
        if any(
            _DIRECTLY_DENIED.search(text, max(0, m.start() - 20), m.start() + 1) for m in own.found_in(text)
        ):
            return True
        if self.ends is not None:
            own, other = self.ends.signs[::-side]
        return not own.in_(text) and any(
            _ASSERTED.search(text, max(0, m.start() - 50), m.start() + 1) for m in other.found_in(text)
        )

    def mentions(self, text: str) -> Iterator[tuple[int | None, int, bool, int]]:
        """Yield the options whose words a text uses: the number before them, the option, whether it is denied, and where."""
        if not self.has_label(text):
            return
        for found in self.any_label.finditer(text):
            option = self.option_of(found[2])
            if option is not None:
                before = _ANY_END.split(text[max(0, found.start() - 60) : found.start()])[-1]
                yield (
                    int(found[1]) if found[1] else None,
                    option,
                    _DENIED.search(before) is not None,
                    found.start(),
                )


_PLAIN_NUMBER = re.compile(r"[+-]?\d{1,4}")
_LABEL_END = re.compile(r"[.;:\n(,]")
_LABEL_OR_REASON_END = re.compile(r"[.;:\n(,]| because | since ")
_CLAIM_END = re.compile(r"[.;\n]")
_ANY_END = re.compile(r"[.!?;\n]")
_DENIED = re.compile(rf"n't\b|\b(?:{'|'.join(WORDS['label_denials'])})\b")


_DIRECTLY_DENIED = re.compile(r"(?:\bnot|n't|\bnever) (?:an? |the |at all |really )?$")
_ASSERTED = re.compile(
    rf"\b(?:{'|'.join(WORDS['assertions'])})\b"
    rf"(?:(?!{_DENIED.pattern}|less\b)[^.;!?\n])*$"
)


def _titles(text: str) -> list[str]:
    """Return the first line and the last two without mark-up; empty where a line is too long for a title."""
    lines = [line for line in text.split("\n") if line.strip()]
    return [_bare_title(line) for line in (*lines[:1], *lines[-2:])]


def _bare_title(line: str) -> str:
    return line.replace("*", "").strip("#_:.! ") if len(line) <= _LONGEST_TITLE else ""


def _dangles(sentence: str) -> bool:
    """Tell whether a sentence ends where a value should stand."""
    sentence = sentence.rstrip(" .…*'")
    return _DANGLING.search(sentence, max(0, len(sentence) - 10)) is not None


def _announces(text: str) -> bool:
    """Tell whether a text ends with words that attribute the next line to somebody else ("The post says")."""
    text = text.rstrip(" *")
    if text.endswith(":") and _is_no_answer(text):
        return True
    return (
        text[-1:].isalpha() and _ANNOUNCING.search(text, max(0, len(text) - _LONGEST_ATTRIBUTION)) is not None
    )


def _is_no_answer(text: str) -> bool:
    """Tell whether a text ends with a name that marks what follows as no answer ("Example:")."""
    return _NO_ANSWER.search(text, max(0, len(text) - _LONGEST_ATTRIBUTION)) is not None


def _somebody_else(prefix: str) -> bool:
    """Tell whether the words before a statement attribute it to somebody else."""
    if prefix[-1:] in ",:" and _is_no_answer(prefix):
        return True
    ends = prefix.endswith((",", ":", " that"))
    verb = _ATTRIBUTED.search(prefix, max(0, len(prefix) - _LONGEST_ATTRIBUTION)) if ends else None
    return verb is not None and _FIRST_PERSON.search(prefix, 0, verb.start()) is None


def leads_elsewhere(before: str) -> bool:
    """Tell whether the line before scores marks them as an example, hypothetical or somebody else's ("The text demands:")."""
    line = spelled_out(before.rstrip(" \n*_`'\"[{(").rpartition("\n")[2].lower())
    if not line.endswith(":"):
        return _announces(line)
    return (
        (_somebody_else(line) and (_is_no_answer(line) or _ASKED.search(line) is None))
        or _HYPOTHETICAL.in_("; " + line.lstrip())
        or _FOREIGN_LEAD.search(line) is not None
    )


_ASKED = re.compile(r"\b(?:you|as|following|format)\b")
"""Matches what attributes the form of an answer, not the answer: "As requested:", "The scores that you asked for:"."""
_FOREIGN_LEAD = re.compile(
    rf"(?:^|\bthe )(?:{FOREIGN.pattern})(?: [^\W\d]+){{0,2}}? {whole_words(all_words('scores'))}"
)


def _other_number(tail: str, number: str) -> bool:
    """Tell whether a number beside the stated one follows it, before any reason."""
    return has_digit(tail) and any(
        other != number for other in _ANY_NUMBER.findall(_RULED_OUT_BEHIND.sub("", tail))
    )


def denies(text: str, number: str) -> bool:
    """Tell whether a reply denies the score that it states, or one that it quotes."""
    ends = [found.end() for found in _DENIAL.found_in(text)]
    if "n't" in text:
        ends += [found.end() for found in _NOT.finditer(text)]
    return any(
        (found[2] or found[1] == number) and _SCORE_NAME.search(text, max(0, end - _LONGEST_NAME), end)
        for end in ends
        if (found := _NUMBER_BEHIND.match(text, end)) is not None
    )


def takes_nothing_back(reason: str) -> bool:
    """Tell whether a reason behind a score, without numbers, does not take it back."""
    return _LIMITED.match(reason) is None and not _is_retracting(reason)


def taken_back(text: str, end: int, score: int, numbers: frozenset[str]) -> bool:
    """Tell whether what follows a reply's last claim takes it back or speaks of another score."""
    rest = text[end:]
    if not rest.strip(" .*"):
        return False
    if _LIMITED.match(rest):
        return True
    if _is_retracting(rest):
        rest = _FAULT.sub("", rest)
        if _is_retracting(rest):
            return True
    if not has_digit(rest):
        return False
    for sentence in _SENTENCE_BREAK.split(rest):
        found = [
            number
            for number in _ANY_NUMBER.findall(_CONCEDED.sub("", sentence[:_LONGEST_SENTENCE]))
            if number in numbers and number != str(score)
        ]
        if found and (_CHANGES.search(sentence) or _SCORE_LINE.match(sentence)):
            return True
    return False


def _is_retracting(rest: str) -> bool:
    rest = "\n" + rest.lstrip(" :")
    return (
        _RETRACTED.in_(rest)
        or _RETRACTING.search(rest) is not None
        or ((" i" in rest or "\ni" in rest) and _REMARK_ON_OWN.search(rest) is not None)
    )


def _same(words: str) -> str:
    """Return words in the form in which labels are compared."""
    words = words.lower()
    words = _NOR.sub("or", words) if "nor" in words else words
    return " ".join(words.replace("-", " ").split()).strip(" .,;:!)(*'\"")


_NOR = re.compile(r"\bnor\b")


@lru_cache(maxsize=256)
def reader(asked: Dimension | Scale) -> Reader:
    """Return the reader of replies about a dimension, or about a rubric without labels."""
    dimension = asked if isinstance(asked, Dimension) else None
    scale = asked.scale if isinstance(asked, Dimension) else asked
    found = dimension.option_labels if dimension else {}
    labels = {number: _same(label) for number, label in found.items() if label}
    labels.setdefault(scale.not_applicable, "none of the above")
    names = (
        _names(dimension)
        if dimension
        else frozenset(WORDS["dimensions"]).union(*WORDS["dimensions"].values())
    )
    poles = _poles(labels, scale)
    head, heading = _head(names, poles[1], dimension.id.lower() if dimension else "")
    words = [
        re.sub(
            r"\\?[\s-]+", r"[\\s-]+", re.sub(r"\bor\b", "(?:or|nor)", re.escape(label).replace("\\ ", " "))
        )
        for label in labels.values()
    ]
    any_label = re.compile(rf"(?:(?<![\w.])(\d{{1,4}})\s?[).:–—-]\s?)?(?<!\w)({one_of(words)})(?!\w)")
    echo = re.sub(r"\s+", " ", dimension.options.lower()) if dimension else ""
    return Reader(
        labels,
        head,
        heading,
        any_label,
        re.compile(rf"(\d{{1,4}})\s?[).:–—-]\s?({one_of(words)})(?=[.,;]|\s+[–—-]\s|\s+{_REASON_WORD})"),
        (_whole(poles[0]), _whole(poles[1])),
        scale.not_applicable,
        echo,
        ends_of(names, scale) if dimension else None,
        tuple({max(label.split(), key=len) for label in labels.values() if label}),
        max(map(len, [*labels.values(), *WORDS["not_applicable"]])) + _AROUND_OPTION,
        _legend(labels, scale),
        _elsewhere(names) if dimension and names & WORDS["dimensions"].keys() else None,
        off_topic(names if dimension else frozenset(), scale.not_applicable),
        {},
        re.compile(whole_words(map(re.escape, names)) if names else "(?!)"),
        re.compile(
            rf"""(?<!\w)(["'])({whole_words([*map(re.escape, names), *_ALL_TRAITS])}(?: {_TITLE_WORDS})?|{_QUALITY_WORDS})\1(?!\w)"""
        ),
    )


_ALL_TRAITS = [
    *(name for first, more in WORDS["dimensions"].items() for name in (first, *more)),
    *(name for each in WORDS["poles"].values() for name in (*each["low_trait"], *each["high_trait"])),
]


def _elsewhere(names: frozenset[str]) -> Elsewhere:
    groups = [{name, *more} for name, more in WORDS["dimensions"].items() if name not in names]
    poles = [each for name, each in WORDS["poles"].items() if name not in names]
    asked = next(each for name, each in WORDS["poles"].items() if name in names)
    named, own = [word for group in groups for word in group], whole_words(map(re.escape, names))
    all_named = [*named, *(word for each in poles for word in (*each["low_trait"], *each["high_trait"]))]
    traits = whole_words(all_named)
    words, titles = whole_words(WORDS["subject_words"]), whole_words([*WORDS["titles"], *WORDS["subjects"]])
    title = rf"(?:(?:{words} )*{titles}(?: [^\W\d]+)?(?: {words})*[ :=-]*)?{traits}(?: ?\({traits}\)|[ :-]*{titles})?(?: {words})*"
    about = rf"(?:\b(?:for|on|für|pour|para|per|для|{one_of(WORDS['regarding'])}) (?:the )?|[(\[]\s*){whole_words(named)}"
    stems = [re.sub("[яь]$", r"\\w*", re.escape(word)) for word in named]
    topics = [each.replace("<trait>", f"(?:{'|'.join(stems)})") for each in all_words("topics")]
    return Elsewhere(
        re.compile(rf"{about}(?!.*{own})"),
        re.compile(rf"\W*{about}"),
        re.compile(title),
        re.compile(whole_words(word for each in poles for word in (*each["low"], *each["high"]))),
        re.compile(
            rf"""["'<](?:{one_of(WORDS["subject_words"])}[_ ]){{0,2}}{one_of(_SUBJECTS)}(?:["']\s*:\s*["'\\]+|>\s*){traits}\s*(?:["'\\]+|</)"""
        ),
        re.compile(rf"(?:{words} )*{titles}(?: [^\W\d]+)?(?: {words})*[ :=-]+{traits}"),
        re.compile(rf"[.!?;:\n]\W{{0,9}}(?:{'|'.join(topics)})(?=\W|$)"),
        Stems(stems),
        re.compile(rf"(?:{whole_words([*WORDS['denials'], *WORDS['instead']])})(?: [^\W\d]+){{0,2}}? ?{own}"),
        re.compile(whole_words([*all_named, *asked["low_trait"]])),
        re.compile(whole_words([*map(re.escape, names), *asked["low_trait"], *asked["high_trait"]])),
    )


def _legend(labels: dict[int, str], scale: Scale) -> re.Pattern[str] | None:
    ends = [(number, labels.get(number, "")) for number in (scale.minimum, scale.maximum)]
    parts = [
        rf"(?<![\w.]){number} ?(?:=|:|is|being|means|meaning|for|stands for|represents|indicates)? ?[\"']?{re.escape(label)}\b[\"']?"
        for number, label in ends
        if label
    ]
    return re.compile(r"[^.!?\n]{0,60}?".join(parts)) if len(parts) == len(ends) else None


def _poles(labels: dict[int, str], scale: Scale) -> tuple[str, str]:
    """Return what distinguishes the labels of the lowest and the highest score: "very introverted", "very extroverted"."""
    low, high = labels.get(scale.minimum, "").split(), labels.get(scale.maximum, "").split()
    same = next((n for n, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), 0)
    return " ".join(low[same:]), " ".join(high[same:])


def _whole(phrase: str) -> Phrases | None:
    return Phrases([r"[\s-]+".join(map(re.escape, phrase.split()))]) if phrase else None


def _names(dimension: Dimension) -> frozenset[str]:
    """Return the words by which judges call a dimension."""
    own = {dimension.name.lower(), dimension.display_name.lower()}
    known = {name: {name, *others} for name, others in WORDS["dimensions"].items()}
    return frozenset(own.union(*(others for name, others in known.items() if own & others)))


@lru_cache(maxsize=256)
def _head(names: frozenset[str], pole: str, short: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    dimension = one_of(map(re.escape, names)) if names else "(?!)"
    trait = one_of(map(re.escape, [*names, *({pole, pole.replace(" ", "-")} if pole else ())]))
    adjectives, nouns = one_of(all_words("adjectives")), one_of(all_words("scores"))
    people = one_of(WORDS["judged"])
    judged = one_of(
        [*WORDS["objects"], *map(re.escape, names), f"{SCALE_MARK} (?:{'|'.join(WORDS['scales'])})"]
    )
    of_what = rf"(?:\s*[(\[][^()\[\]\n]{{0,40}}[)\]]|\s?{judged}(?![^\W_])){{0,10}}?"
    name = rf"(?:{adjectives}[ -]?){{0,5}}(?:(?:(?:{people}'s )?{trait}[ -]?)?{nouns}|(?:{people}'s )?{dimension}(?: (?:score|rating|level))?)(?:[ -]{adjectives}){{0,2}}"
    field = rf"|(?<![(\[]){re.escape(short)}(?=\s*[:=])" if short else ""
    unspaced = r"(?![a-z\u00c0-\u04ff0-9])"
    unspaced_word = r"(?![a-z\u00c0-\u04ff])"
    separator = r"\s*(?::+|=>?|->|→|–|—|-(?=\s)|\|)\s*"
    copula = rf"\s?{one_of(all_words('copulas'))}{unspaced_word}\s*:?\s*(?:{whole_words(all_words('conclusions'))}\s*)?"
    statements = [
        form.replace("<adverb>", _ADVERB)
        .replace("<object>", rf"{judged}(?:\s?{judged}){{0,9}}")
        .replace("<judged>", people)
        .replace("<name>", name)
        .replace("<score>", "(?:score|rating|grade|level)")
        for form in all_words("statements")
    ]
    own = r"(?:,? (?:that )?i (?:would |will |'d )?(?:give|assign|choose|select|award)(?: (?:to )?(?:it|this(?: response| sentence| text)?|the response))?)?"
    head = (
        rf"(?:{whole_words(WORDS['opinions'])}\s*)?(?:(?:{name}{field}){unspaced}{of_what}{own}(?:{separator}|{copula})"
        rf"|{one_of(statements)}{unspaced_word}(?:\s*:)?\s*"
        rf"|(?P<alone>(?:(?:the|my|final|overall) ){{0,3}}(?:option|answer|score|rating|choice)\s))"
    )
    return re.compile(head), re.compile(
        rf"(?:{name}|{re.escape(short) or '(?!)'})(?:\s*\([^()\n]{{0,40}}\))?"
    )
