"""Stored results are read as the model that they were written from, whatever their length."""

import json
import threading
import time
import tracemalloc
from itertools import repeat

import pytest

from app.domain.judging import stepwise_json
from app.domain.metrics.metric import NOT_COMPUTED
from app.domain.results import contract
from app.domain.results.contract import Results
from tests.unit.gym_sample import graded_response, gym_results_of
from tests.unit.reports.sample import sample
from tests.unit.results_sample import CELL, read


def test_a_metric_that_they_are_older_than_is_not_there_and_says_why() -> None:
    (cell,) = read({"cells": [CELL]}).cells
    assert "rc_atom_corrected" not in cell.metrics
    assert cell.metrics["rc_atom_corrected"].reason == NOT_COMPUTED.reason
    assert json.loads(cell.model_dump_json(exclude_unset=True)) == CELL


def test_a_long_document_says_what_a_short_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    graded = [graded_response(4, persona=f"gym-{n}") for n in range(30)]
    short = read(sample(1, 1).results | gym_results_of(graded))
    text = short.document()
    monkeypatch.setattr(contract, "SHORT_CHARACTERS", 10)
    monkeypatch.setattr(stepwise_json, "SHORT_CHARACTERS", 10)
    assert Results.read(text) == short
    assert Results.read(text).document() == text


def test_a_long_document_is_not_held_as_json_and_as_results_at_once() -> None:
    results = sample(1, 1).results
    text = read(results | {"cells": results["cells"] * 4}).document()
    assert len(text) > stepwise_json.SHORT_CHARACTERS
    Results.read(text)  # what is made once and kept
    tracemalloc.start()
    try:
        found = Results.read(text)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.cells
    assert most < 1.1 * held


def test_others_have_their_turn_while_a_long_document_is_read() -> None:
    cells = json.dumps(sample(1, 1).results["cells"])[1:-1]
    text = json.dumps(read({}).model_dump(mode="json"))
    text = text.replace('"cells": []', f'"cells": [{",".join(repeat(cells, 40))}]')
    assert len(text) > 8_000_000
    turns, over = [], threading.Event()

    def look() -> None:
        while not over.wait(0.001):
            turns.append(time.thread_time())

    watcher = threading.Thread(target=look)
    watcher.start()
    Results.read(text)
    over.set()
    watcher.join()
    assert len(turns) > 20
