"""Gates: a figure passes only with its whole interval."""

from typing import Any, ClassVar
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from app.domain.labels.contract import CalibratedFigure, DimensionCalibration, JobCalibration
from app.domain.metrics.interval import Interval
from app.domain.metrics.metric import Metric
from app.domain.metrics.rc_atom import RC_ATOM
from app.domain.personagym.scores import GymResponses
from app.domain.results.calibrated_totals import NOT_LABELLED
from app.domain.results.gate import Gate, ReferenceJob, judge_gate, parse_threshold
from app.reports.junit import junit
from benchmarks.inference.gates import MARGIN, bounds, not_worse
from tests.unit.results_sample import CELL, NO_RESPONSES, NO_UNITS, TOTAL, read

KEYS = {"model": "m", "task": "essay", "level": "low"}


def results(
    value: float | None = 0.8,
    ci95: list[float] | None = None,
    *,
    completeness: str = "full",
    model: str = "m",
    counted: int = 100,
) -> dict[str, Any]:
    metric: dict[str, Any] = {"value": value, "n": 9, "ci95": ci95, "ci95_runs": [0.79, 0.81]}
    if value is None:
        metric = {"value": None, "n": 0, "reason": "no_cell: no cell of the group has the metric"}
    elif ci95 is None:
        metric["ci95_reason"] = "too_few_personas: 2 personas; an interval needs 5"
    score = metric | {"sd": 0.1}
    responses = GymResponses.of().model_dump()
    keys = KEYS | {"model": model}
    coverage = {"share": counted / 100, "counted": counted, "refused": 100 - counted, "planned": 100}
    missing = TOTAL | {
        "cells": 9,
        "coverage": coverage,
        "corrected": {"acc_atom_composite": metric, "acc_atom_bounds": [0, 1]},
        "metrics": {"acc_atom": metric},
    }
    groupings = (("model",), ("model", "task"), ("model", "task", "level"))
    return {
        "job": "job_x",
        "completeness": completeness,
        "totals": [{"by": list(by), **{key: keys[key] for key in by}, **missing} for by in groupings],
        "persona_score_totals": [
            {
                "model": model,
                "persona_score": score,
                "refusal_rate": metric,
                "tasks": {"expected_action": score | {"coverage": coverage}},
                "responses": responses,
                "grades": NO_UNITS,
                "coverage": coverage,
                "corrected": {"persona_score_bounds": [0, 1]},
            }
        ],
    }


def verdict(document: dict[str, Any], *thresholds: str, interval: Any = "personas") -> str:
    return judge_gate(read(document), [parse_threshold(text) for text in thresholds], interval).verdict


class TestThresholds:
    @pytest.mark.parametrize("sign", [">=", ":gte:"])
    def test_are_metric_sign_and_limit(self, sign: str) -> None:
        found = parse_threshold(f" acc_atom@task=essay,level=low{sign}0.8")
        assert (found.metric, found.where, found.at_least, found.limit) == (
            "acc_atom", {"task": "essay", "level": "low"}, True, 0.8,
        )  # fmt: skip

    def test_a_limit_may_be_negative(self) -> None:
        assert parse_threshold("rc_atom<=-0.5").limit == -0.5

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("acc_atom>0.8", "write it like"),
            ("acc_atom>=high", "write it like"),
            ("acc_atom>=nan", "write it like"),
            ("acc_atom>=1e9", "write it like"),
            ("", "write it like"),
            ("speed>=1", "unknown metric 'speed'"),
            ("acc_atom@colour=red>=1", "'colour=red' must be one of"),
            ("acc_atom@task=a,task=b>=1", "each at most once"),
            ("acc_atom@task=a,persona=b>=1", "no totals by task, persona together"),
            ("persona_score@level=low>=4", "persona_score exists by model and task only"),
            ("refusal_rate@task=essay<=0.1", "refusal_rate exists by model only"),
            ("acc_atom>=0.8 over planets", "write it like"),
            ("rc_atom>=0.8 calibrated", "rc_atom has no calibrated figure.*how a text's scores are spread"),
            ("refusal_rate<=0.1 calibrated", "refusal_rate has no calibrated figure"),
            ("acc_atom@task=essay,level=low>=0.8 calibrated", "no calibrated figures by task, level"),
            ("acc_atom not worse than job_1 by 0.1 calibrated", "write it like"),
            ("acc_atom not worse than job_1", "write it like"),
            ("acc_atom not worse than job_1 by -0.1", "write it like"),
            ("mean not worse than job_1 by 0.1", "'mean' can't be compared by a gate"),
            ("refusal_rate not worse than job_1 by 0.1", "can't be compared"),
            ("persona_score@level=low not worse than job_1 by 0.1", "by model and task only"),
        ],
    )
    def test_others_are_refused_with_the_reason(self, text: str, message: str) -> None:
        with pytest.raises(ValueError, match=message):
            parse_threshold(text)

    def test_may_name_the_population_that_decides(self) -> None:
        document = results(ci95=[0.6, 0.9])  # over its runs [0.79, 0.81]
        assert verdict(document, "acc_atom>=0.78 over personas like these", interval="runs") == "inconclusive"
        assert verdict(document, "acc_atom>=0.78 over these personas") == "pass"

    @pytest.mark.parametrize("model", ["openai/gpt:2", "our bot v3", "worse by 1"])
    def test_may_name_another_job_and_its_model(self, model: str) -> None:
        found = parse_threshold(f"acc_atom@task=essay not worse than job_1x:{model} by 0.03")
        assert (found.reference, found.limit, found.where) == (("job_1x", model), 0.03, {"task": "essay"})


class TestGate:
    @pytest.mark.parametrize(
        ("ci95", "at_least", "at_most"),
        [
            ([0.7, 0.79], "fail", "pass"),
            ([0.8, 0.9], "pass", "inconclusive"),  # the limit itself meets both
            ([0.81, 0.9], "pass", "fail"),
            ([0.75, 0.85], "inconclusive", "inconclusive"),
        ],
    )
    def test_an_interval_decides(self, ci95: list[float], at_least: str, at_most: str) -> None:
        assert verdict(results(ci95=ci95), "acc_atom>=0.8") == at_least
        assert verdict(results(ci95=ci95), "acc_atom<=0.8") == at_most

    def test_what_is_missing_never_passes(self) -> None:
        sure = [0.9, 0.99]
        assert verdict(results(None), "acc_atom>=0") == "inconclusive"
        assert verdict(results(), "acc_atom>=0") == "inconclusive"
        assert verdict(results(ci95=sure, completeness="partial"), "acc_atom>=0") == "inconclusive"
        assert verdict(results(ci95=sure), "acc_atom@model=nobody>=0") == "inconclusive"
        assert verdict(results(ci95=sure) | {"totals": []}, "acc_atom>=0") == "inconclusive"

    @pytest.mark.parametrize(
        ("about", "inconclusive"),
        [
            ({"judges": ["a/judge"], "of": "sentences"}, {"acc_atom>=0.8"}),
            ({"judges": ["a/judge"], "of": "grades"}, {"persona_score>=4"}),
            ({"judges": ["a/judge"], "of": "all"}, {"acc_atom>=0.8", "persona_score>=4"}),
            ({"model": "m", "of": "all"}, set()),  # about no judge
        ],
    )
    def test_judges_that_cannot_be_trusted_decide_nothing(
        self, about: dict[str, Any], inconclusive: set[str]
    ) -> None:
        sure = results(4.4, [4.3, 4.5])
        message = "a/judge gives the score 5 to 94 % of 273 sentences on extraversion."
        warning = {"code": "one_score", "message": message, "value": 0.94, "n": 273, "limit": 0.9} | about
        doubtful = read(sure | {"warnings": [warning]})
        assert verdict(sure, "acc_atom>=0.8", "persona_score>=4") == "pass"
        for threshold in ("acc_atom>=0.8", "persona_score>=4", "refusal_rate<=5"):
            found = judge_gate(doubtful, [parse_threshold(threshold)], "personas")
            assert found.verdict == ("inconclusive" if threshold in inconclusive else "pass")
            assert (message.rstrip(".") in found.checks[0].reason) is (threshold in inconclusive)
        # Who fails, fails by judges that cannot be trusted: that decides nothing either.
        assert judge_gate(doubtful, [parse_threshold("acc_atom>=4.6")], "personas").verdict == (
            "inconclusive" if "acc_atom>=0.8" in inconclusive else "fail"
        )

    def test_one_failure_fails_all(self) -> None:
        document = results(ci95=[0.75, 0.85])
        assert verdict(document, "acc_atom>=0.5", "acc_atom>=0.8", "acc_atom>=0.9") == "fail"
        assert verdict(document, "acc_atom>=0.5", "acc_atom>=0.8") == "inconclusive"

    def test_every_model_is_held_to_a_threshold_that_names_none(self) -> None:
        document = results(ci95=[0.75, 0.85])
        document["totals"] += results(ci95=[0.1, 0.2], model="other")["totals"]
        assert verdict(document, "acc_atom>=0.7") == "fail"
        assert verdict(document, "acc_atom@model=m>=0.7") == "pass"

    def test_the_runs_interval_decides_if_asked_for(self) -> None:
        found = judge_gate(read(results()), [parse_threshold("acc_atom>=0.78")], "personas")
        assert "interval=runs" in found.checks[0].reason
        assert verdict(results(), "acc_atom>=0.78", interval="runs") == "pass"

    def test_persona_scores_and_refusals_have_gates_too(self) -> None:
        document = results(4.4, [4.3, 4.5])
        assert verdict(document, "persona_score>=4", "persona_score@task=expected_action>=4") == "pass"
        assert verdict(document, "refusal_rate<=0.05") == "fail"
        assert verdict(document, "persona_score@task=chess>=1") == "inconclusive"


class TestMinimumCoverage:
    SURE: ClassVar = [0.9, 0.99]

    @pytest.mark.parametrize(("counted", "said"), [(95, "pass"), (94, "inconclusive")])
    def test_is_95_percent_unless_another_is_asked_for(self, counted: int, said: str) -> None:
        document = results(0.95, self.SURE, counted=counted)
        wanted = [
            parse_threshold(text) for text in ("acc_atom>=0.8", "persona_score@task=expected_action>=0.8")
        ]
        assert judge_gate(read(document), wanted, "personas").verdict == said
        assert judge_gate(read(document), wanted, "personas", 0.9).verdict == "pass"

    def test_is_asked_of_failures_too_and_told_with_the_share(self) -> None:
        gate = judge_gate(
            read(results(0.5, [0.4, 0.6], counted=50)), [parse_threshold("acc_atom>=0.8")], "personas"
        )
        (check,) = gate.checks
        assert (gate.minimum_coverage, check.coverage, check.verdict) == (0.95, 0.5, "inconclusive")
        assert check.reason.startswith("coverage is 50.0 %, below the minimum of 95 %; 0.500")

    def test_counts_cells_as_well_as_verdicts(self) -> None:
        document = results(0.95, self.SURE)
        for total in document["totals"]:
            total["cells"] = 12  # the figure is of nine
        (check,) = judge_gate(read(document), [parse_threshold("acc_atom>=0.8")], "personas").checks
        assert (check.coverage, check.verdict) == (0.75, "inconclusive")

    def test_is_met_by_refusals_where_they_count_as_out_of_character(self) -> None:
        document = results(0.95, self.SURE, counted=50)
        assert verdict(document, "acc_atom_composite>=0.8") == "pass"
        assert verdict(document, "acc_atom>=0.8") == "inconclusive"

    def test_of_one_model_is_not_failed_by_anothers_empty_cells(self) -> None:
        document = results(0.95, self.SURE, completeness="partial")
        empty = "cells_without_figure: 1 of 9 cells have no scored sentence"
        assert verdict(document | {"completeness_reasons": [empty]}, "acc_atom>=0.8") == "pass"
        calls = "calls_missing: planned responses or verdicts are missing"
        assert verdict(document | {"completeness_reasons": [calls, empty]}, "acc_atom>=0.8") == "inconclusive"

    def test_is_of_the_personas_whatever_the_control_arm_lacks(self) -> None:
        reason = "control_calls_missing: the control arm lacks planned responses or verdicts"
        document = results(0.95, self.SURE, completeness="partial") | {"completeness_reasons": [reason]}
        assert verdict(document, "acc_atom>=0.8") == "pass"


def compared_cell(persona: int, value: float | None, model: str = "m", scored: int = 300) -> dict[str, Any]:
    """A cell of 30 runs by one judge, with so many scored sentences."""
    metric = {"value": value, "n": 30} if value is not None else {"value": None, "n": 0, "reason": "x: lost"}
    parts = {f"{part}{n}": 0 if n else None for part in RC_ATOM.parts for n in ("", "_n")}
    judged = {
        "metrics": {"acc_atom": metric, "rc_atom": metric | parts},
        "units": NO_UNITS | {"scored": scored},
    }
    own = {name: CELL[name] for name in ("responses", "runs_used")} | judged
    return CELL | judged | {"model": model, "persona": f"p{persona:02}", "by_judge": {"judge": own}}


class TestMatchedCells:
    def test_a_figure_that_lacks_a_cell_that_another_model_has_decides_nothing(self) -> None:
        document = results(0.95, [0.9, 0.99]) | {
            "cells": [compared_cell(1, 0.9), compared_cell(2, None), compared_cell(2, 0.9, "other")]
        }
        document["totals"] += results(0.95, [0.9, 0.99], model="other")["totals"]
        checks = judge_gate(read(document), [parse_threshold("acc_atom>=0.8")], "personas").checks
        assert {check.of["model"]: check.verdict for check in checks} == {
            "m": "inconclusive",
            "other": "pass",
        }
        assert checks[0].reason.startswith("1 cell of which other models have it is missing; 0.950")
        assert judge_gate(read(document), [parse_threshold("acc_atom>=0.8")], "personas", 0).verdict == "pass"

    def test_a_cell_that_no_model_has_favours_none(self) -> None:
        document = results(0.95, [0.9, 0.99]) | {
            "cells": [compared_cell(1, 0.9), compared_cell(2, None), compared_cell(2, None, "other")]
        }
        assert verdict(document, "acc_atom>=0.8") == "pass"


class TestFewRuns:
    def checks(self, runs: list[int], metric: str, of: str = "") -> Any:
        sure = {"value": 0.9, "n": 30, "ci95": [0.88, 0.92], "ci95_runs": [0.88, 0.92]}
        parts = {f"{part}{n}": 0 if n else None for part in RC_ATOM.parts for n in ("", "_n")}
        ceiling = {"ceiling": None, "ceiling_n": 0}
        metrics = dict.fromkeys(("rc", "rc_corrected", "acc_atom"), sure)
        metrics |= {"rc_atom": sure | parts, "rc_atom_corrected": sure | ceiling}
        document = results(0.9, [0.88, 0.92])
        document["cells"] = [
            CELL
            | {"persona": f"p{n}", "metrics": metrics, "runs_used": used, "task": ("essay", "post")[n % 2]}
            for n, used in enumerate(runs)
        ]
        for total in document["totals"]:
            total["metrics"] = metrics
        return judge_gate(read(document), [parse_threshold(f"{metric}{of}>=0.8")], "runs").checks

    def test_do_not_tell_how_far_runs_are_apart(self) -> None:
        (check,) = self.checks([30, 4, 2, 5], "rc")
        assert (check.verdict, check.value) == ("inconclusive", 0.9)
        assert check.reason.startswith("2 cells have under 5 runs with a score, on whose number RC depends")
        assert self.checks([30, 5], "rc")[0].verdict == "pass"

    @pytest.mark.parametrize("metric", ["acc_atom", "rc_corrected", "rc_atom", "rc_atom_corrected"])
    def test_tell_what_does_not_depend_on_their_number(self, metric: str) -> None:
        assert self.checks([30, 4, 2, 5], metric)[0].verdict == "pass"

    def test_of_another_task_do_not_matter(self) -> None:
        assert self.checks([30, 2], "rc", "@task=essay")[0].verdict == "pass"


class TestNotWorse:
    def document(
        self,
        values: list[float | None],
        counted: int = 100,
        scored: int = 300,
        models: tuple[str, ...] = ("m",),
    ) -> dict[str, Any]:
        cells = [compared_cell(n, value, model, scored) for model in models for n, value in enumerate(values)]
        return results(0.8, [0.7, 0.9], counted=counted) | {"cells": cells, "persona_scores": []}

    def check(self, one: dict[str, Any], other: dict[str, Any], text: str = "acc_atom") -> Any:
        threshold = parse_threshold(f"{text} not worse than job_1 by 0.03")
        gate = judge_gate(read(one), [threshold], "personas", references={"job_1": ReferenceJob(read(other))})
        return gate.checks[0]

    def test_other_judges_and_other_wordings_decide_nothing(self) -> None:
        values: list[float | None] = [0.5 + n / 40 for n in range(12)]
        better: list[float | None] = [0.6 + n / 39 for n in range(12)]
        wanted = [parse_threshold("acc_atom not worse than job_1 by 0.03")]
        for other, why in (
            (
                ReferenceJob(read(self.document(values)), doubts=("the judges differ",)),
                "the judges differ; 0.1",
            ),
            (ReferenceJob(read(self.document(values)), frozenset({"p03"})), "coverage is 91.7 %"),
        ):
            gate = judge_gate(read(self.document(better)), wanted, "personas", references={"job_1": other})
            assert gate.verdict == "inconclusive"
            assert gate.checks[0].reason.startswith(why)

    def test_what_touches_grades_alone_or_is_only_told_decides_figures_from_verdicts(self) -> None:
        values: list[float | None] = [0.5 + n / 40 for n in range(12)]
        better: list[float | None] = [0.6 + n / 39 for n in range(12)]
        wanted = [parse_threshold("acc_atom not worse than job_1 by 0.03")]
        dates = "judged at different dates (this job 2026-11-24; job_1 2026-11-01)"
        other = ReferenceJob(
            read(self.document(values)), doubts_of_grades=("the exemplars differ",), remarks=(dates,)
        )
        gate = judge_gate(read(self.document(better)), wanted, "personas", references={"job_1": other})
        assert gate.verdict == "pass"
        assert gate.checks[0].reason.endswith(f"meets it; {dates}")

    def test_the_interval_of_the_paired_difference_decides(self) -> None:
        base = [0.5 + n / 40 for n in range(12)]
        other = self.document([*base])
        small = [value + (0.005 if n % 2 else -0.005) for n, value in enumerate(base)]
        same = self.check(self.document([*small]), other)
        assert (same.verdict, same.of) == ("pass", {"model": "m", "than": "m"})
        assert same.value == pytest.approx(0)
        worse = [value - 0.1 for value in small]
        assert self.check(self.document([*worse]), other).verdict == "fail"
        close = [value - 0.03 for value in small]
        assert self.check(self.document([*close]), other).verdict == "inconclusive"

    def test_too_little_coverage_of_either_decides_nothing(self) -> None:
        values: list[float | None] = [0.5 + n / 40 for n in range(12)]
        better: list[float | None] = [0.6 + n / 39 for n in range(12)]
        assert self.check(self.document(better), self.document(values)).verdict == "pass"
        for one, other in ((100, 90), (90, 100)):
            found = self.check(self.document(better, one), self.document(values, other))
            assert (found.verdict, found.coverage) == ("inconclusive", 0.9)
        alone = self.check(self.document([None, *better[1:]]), self.document(values))
        assert (alone.verdict, alone.coverage) == ("inconclusive", pytest.approx(11 / 12))

    def test_texts_of_different_length_decide_nothing_about_rc_atom(self) -> None:
        values: list[float | None] = [0.5 + n / 40 for n in range(12)]
        better: list[float | None] = [0.6 + n / 39 for n in range(12)]
        one, other = self.document(better, scored=1200), self.document(values)
        assert self.check(one, other).verdict == "pass"
        found = self.check(one, other, "rc_atom")
        assert found.verdict == "inconclusive"
        assert "a has 40.0 scored sentences per run, b 10.0" in found.reason

    def test_of_several_models_the_other_jobs_must_be_named(self) -> None:
        values: list[float | None] = [0.5 + n / 40 for n in range(12)]
        found = self.check(self.document(values), self.document(values, models=("m", "n")))
        assert found.verdict == "inconclusive"
        assert "the other job has several models; name one" in found.reason
        threshold = parse_threshold("acc_atom not worse than job_1:o by 0.03")
        other = {"job_1": ReferenceJob(read(self.document(values)))}
        gate = judge_gate(read(self.document(values)), [threshold], "personas", references=other)
        assert gate.verdict == "inconclusive"
        assert gate.checks[0].reason == "the other job has no figures of that model"


def cell(persona: str, refused: int, dimension: str = "E", model: str = "m") -> dict[str, Any]:
    generation = NO_RESPONSES | {"planned": 10, "answered": 10 - refused, "refused": refused}
    return CELL | {"model": model, "persona": persona, "dimension": dimension, "generation": generation}


class TestRefusalsOfAtomicTasks:
    def refusals(self, *cells: dict[str, Any], gym: bool = False) -> Gate:
        document = results() | {"cells": list(cells)}
        if not gym:
            document["persona_score_totals"] = []
        return judge_gate(read(document), [parse_threshold("refusal_rate<=0.2")], "personas")

    def test_are_counted_once_where_traits_share_a_text(self) -> None:
        six = [cell(f"p{n}", refused=1) for n in range(6)]
        (check,) = self.refusals(*six, cell("p0", refused=1, dimension="A")).checks
        assert check.value == 6 / 60  # 6 texts with 1 refusal among 10 responses each
        assert check.of == {"model": "m", "framework": "atomic"}

    def test_of_these_very_personas_have_the_exact_interval_of_a_share(self) -> None:
        from scipy.stats import binomtest

        none, some = ([cell(f"p{n}", refused=r) for n in range(5)] for r in (0, 2))
        checks = [
            judge_gate(
                read({**results(), "persona_score_totals": [], "cells": cells}),
                [parse_threshold("refusal_rate<=0.4")],
                "runs",
            ).checks[0]
            for cells in (none, some)
        ]
        # 0 of 50: 1 - 0.025^(1/50). 10 of 50: Clopper and Pearson's, as scipy.stats.binomtest has it
        expected = [[0.0, 1 - 0.025 ** (1 / 50)], list(binomtest(10, 50).proportion_ci())]
        assert [check.ci95 for check in checks] == [pytest.approx(ends, abs=1e-6) for ends in expected]
        assert [check.verdict for check in checks] == ["pass", "pass"]

    def test_of_few_personas_have_no_interval_and_never_pass(self) -> None:
        gate = self.refusals(*(cell(f"p{n}", refused=0) for n in range(4)))
        assert gate.verdict == "inconclusive"

    def test_stand_beside_those_of_personagym_and_leave_its_tasks_out(self) -> None:
        atomic = [cell(f"p{n}", refused=10) for n in range(6)]
        both = self.refusals(*atomic, cell("p0", refused=0) | {"task": "expected_action"}, gym=True)
        assert [(check.of["framework"], check.value) for check in both.checks] == [
            ("atomic", 1.0),
            ("personagym", 0.8),
        ]

    def test_of_a_model_that_wrote_nothing_are_missing(self) -> None:
        nothing = cell("p0", refused=0) | {"generation": NO_RESPONSES | {"planned": 10}}
        (check,) = self.refusals(nothing).checks
        assert check.verdict == "inconclusive"
        assert "the model has written no response" in check.reason


class TestJunit:
    def test_neither_a_failure_nor_an_inconclusive_check_counts_as_passed(self) -> None:
        thresholds = [parse_threshold(f"acc_atom>={limit}") for limit in ("0.5", "0.8", "0.9")]
        gate = judge_gate(read(results(ci95=[0.75, 0.85])), thresholds, "personas")
        evil = {"of": {"model": "evil\x00</testcase>\ud800"}}
        gate = gate.model_copy(update={"checks": [check.model_copy(update=evil) for check in gate.checks]})
        suite = ET.fromstring(junit("job_x", gate))[0]
        assert suite.attrib == {"name": "job_x", "tests": "3", "failures": "1", "errors": "1", "skipped": "0"}
        assert [[child.tag for child in case] for case in suite] == [["system-out"], ["error"], ["failure"]]
        assert {case.attrib["classname"] for case in suite} == {"model=evil�</testcase>�"}
        assert gate.verdict == "fail"


def calibrated(value: float, ci95: tuple[float, float], **keys: str) -> CalibratedFigure:
    return CalibratedFigure(
        keys=keys,
        metric="acc_atom",
        judged=0.8,
        calibrated=Metric.of(value, 200).within(Interval(*ci95), ci95_runs=Interval(*ci95)),
        ci95_texts=ci95,
        labels_needed=400,
        labels_needed_at_best=300,
    )


class TestCalibrated:
    CALIBRATION = JobCalibration(
        job="job_x",
        half_width=0.03,
        totals=[
            calibrated(0.6, (0.5, 0.7), model="m"),
            calibrated(0.9, (0.8, 1.0), model="m", task="essay"),
        ],
        differences=[],
        not_calibrated={},
        data=[
            DimensionCalibration(
                dimension="E",
                labels=200,
                totals=[calibrated(0.3, (0.2, 0.4), model="m")],
                differences=[],
                judge_errors=[],
            )
        ],
    )

    def checks(self, text: str, calibration: JobCalibration | None = CALIBRATION) -> Gate:
        return judge_gate(
            read(results(model="m")), [parse_threshold(text)], "personas", 0.0, calibration=calibration
        )

    def test_the_figure_of_the_people_decides(self) -> None:
        assert self.checks("acc_atom>=0.75").checks[0].value == 0.8
        (check,) = self.checks("acc_atom>=0.75 calibrated").checks
        assert (check.verdict, check.value, check.of) == ("fail", 0.6, {"model": "m"})
        assert self.checks("acc_atom@task=essay>=0.75 calibrated").verdict == "pass"
        (check,) = self.checks("acc_atom@dimension=E>=0.1 calibrated over these personas").checks
        assert (check.verdict, check.of) == ("pass", {"model": "m", "dimension": "E"})

    @pytest.mark.parametrize("where", ["@model=other", "@dimension=N", "@task=post", "@level=low"])
    def test_what_nobody_labelled_is_inconclusive(self, where: str) -> None:
        (check,) = self.checks(f"acc_atom{where}>=0.1 calibrated").checks
        assert (check.verdict, check.value, check.reason) == ("inconclusive", None, NOT_LABELLED)

    @pytest.mark.parametrize("kind", ["", " calibrated"])
    def test_a_name_that_the_results_do_not_know_is_called_unknown(self, kind: str) -> None:
        document = results(model="m") | {"cells": [CELL, CELL | {"level": "low", "dimension": "N"}]}
        for where, words in (
            ("level=hihg", "the results have no level 'hihg', only high, low"),
            ("dimension=X", "the results have no dimension 'X', only E, N"),
        ):
            gate = judge_gate(
                read(document),
                [parse_threshold(f"acc_atom@{where}>=0.1{kind}")],
                "personas",
                calibration=self.CALIBRATION,
            )
            assert [(check.verdict, check.reason) for check in gate.checks] == [("inconclusive", words)]

    def test_so_is_a_job_that_is_not_over(self) -> None:
        assert self.checks("acc_atom>=0.1 calibrated", None).verdict == "inconclusive"

    def test_too_little_of_what_was_planned_is_too_little_also_of_the_calibrated(self) -> None:
        gate = judge_gate(
            read(results(model="m", counted=50)),
            [parse_threshold("acc_atom>=0.1 calibrated")],
            "personas",
            calibration=self.CALIBRATION,
        )
        assert gate.checks[0].coverage == 0.5
        assert gate.verdict == "inconclusive"


class TestErrorRates:
    """At the limit itself, and at the margin itself, 2.5 % of gates pass and 2.5 % fail; chance allowed for."""

    @staticmethod
    def most(repetitions: int) -> float:
        return float(0.025 + 2.5 * (0.025 * 0.975 / repetitions) ** 0.5)

    @pytest.mark.parametrize("repetitions", [60, pytest.param(1000, marks=pytest.mark.long)])
    @pytest.mark.parametrize("levels", [("high",), ("low", "neutral", "high")])
    def test_of_bounds(self, levels: tuple[str, ...], repetitions: int) -> None:
        found = bounds(np.random.default_rng(5), levels, 6, repetitions)
        assert max(found[0.0].values()) <= self.most(repetitions)
        assert found[-0.1]["pass"] == found[0.1]["fail"] == 0
        assert found[0.1]["pass"] > 0.2
        assert found[-0.1]["fail"] > 0.2

    @pytest.mark.parametrize("repetitions", [300, pytest.param(2000, marks=pytest.mark.long)])
    @pytest.mark.parametrize("levels", [("high",), ("low", "neutral", "high")])
    def test_of_not_being_worse(self, levels: tuple[str, ...], repetitions: int) -> None:
        worse = not_worse(np.random.default_rng(5), levels, 15, MARGIN, repetitions)
        assert max(worse.values()) <= self.most(repetitions)
        assert not_worse(np.random.default_rng(5), levels, 15, 0.2, 50)["fail"] > 0.9
