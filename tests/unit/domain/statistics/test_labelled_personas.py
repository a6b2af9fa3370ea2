"""Variances of scores that people calibrate: two answers of a persona tell what differs within it, single ones do not."""

import numpy as np
import pytest

from app.domain.statistics.labelled_personas import JudgedTask, calibrated_score

KIND = np.array([-1.5, -0.9, -0.3, 0.3, 0.9, 1.5])
"""How far the judges are from people, persona by persona."""


def task(each: int, within: float) -> JudgedTask:
    """Of six personas with four answers each, all of whom are drawn with so many."""
    personas = np.repeat(np.arange(6), each)
    n = len(personas)
    beside = within * np.tile([1.0, -1.0], n)[:n]
    return JudgedTask(
        judged=3.0,
        answers=24,
        personas=personas,
        draws=np.arange(n),
        weights=np.full(n, 0.25),
        predicted=np.full(n, 3.0),
        said=3.0 + KIND[personas] + beside,
    )


def test_two_answers_of_each_persona_tell_that_personas_differ_and_answers_do_not() -> None:
    single, double = (calibrated_score(6, [{"t": task(each, 0.1)}]) for each in (1, 2))
    assert single is not None
    assert double is not None
    assert single.half_width > 0.5
    assert double.half_width < 0.1
    # 12 of 24 answers: a variance of 2 · 0.1² within each persona's two, of their means 0.1², half of it drawn anew
    assert double.variance == pytest.approx(0.1**2 / 6 * (1 - 12 / 24), rel=1e-6)


def test_of_personas_that_were_not_all_drawn_the_others_may_be_different() -> None:
    found = calibrated_score(100, [{"t": task(2, 0.1)}])
    assert found is not None
    assert found.half_width > 1
