"""DeepEval's test runs: `.deepeval/.latest_test_run.json`, and files of `DEEPEVAL_RESULTS_FOLDER`."""

from collections.abc import Iterator
from typing import Any

from app.importers.messages import read_messages, turns
from app.importers.records import (
    Record,
    Refused,
    Said,
    WrongRecordError,
    number_or_none,
    optional,
    text_or_none,
)

SINGLE, CONVERSATIONS = "testCases", "conversationalTestCases"


def is_run(first: dict[str, Any]) -> bool:
    """Whether a record is a test run."""
    run = first.get("testRunData", first)
    return isinstance(optional(run, SINGLE), list) or isinstance(optional(run, CONVERSATIONS), list)


def read_run(place: str, record: dict[str, Any]) -> Iterator[Record]:
    """The text of each test case, and of each of the assistant's turns of a conversation."""
    run = record.get("testRunData", record)
    at = f"{place}/testRunData" if "testRunData" in record else place
    found = False
    for name in (SINGLE, CONVERSATIONS):
        cases = optional(run, name)
        for n, case in enumerate(cases if isinstance(cases, list) else ()):
            found = True
            try:
                yield from _read_case(f"{at}/{name}/{n}", case, _model(run))
            except WrongRecordError as error:
                yield Refused(f"{at}/{name}/{n}{error.field}", error.reason)
    if not found:
        raise WrongRecordError("", "the test run has no test cases")


def _model(run: Any) -> str | None:
    """The model, where the run's hyperparameters name it."""
    return text_or_none(optional(run, "hyperparameters", "model"))


def _read_case(place: str, case: Any, model: str | None) -> Iterator[Record]:
    if not isinstance(case, dict):
        raise WrongRecordError("", "must be an object")
    scores = _scores(case.get("metricsData"))
    if "turns" in case:
        persona = text_or_none(case.get("chatbotRole"))
        try:
            messages = read_messages(case["turns"], f"{place}/turns")
        except WrongRecordError as error:
            raise WrongRecordError(f"/turns{error.field}", error.reason) from error
        if persona is not None:
            messages = [*read_messages([{"role": "system", "content": persona}], ""), *messages]
        yield from turns(messages, place, model, scores)
        return
    text = case.get("actualOutput")
    if not isinstance(text, str):
        raise WrongRecordError("/actualOutput", "is missing" if text is None else "must be a text")
    yield Said(place, text, None, text_or_none(case.get("input")), model, scores=scores)


def _scores(metrics: Any) -> dict[str, float]:
    found = {}
    for each in metrics if isinstance(metrics, list) else ():
        name, score = text_or_none(optional(each, "name")), number_or_none(optional(each, "score"))
        if name is not None and score is not None:
            found[name] = score
    return found
