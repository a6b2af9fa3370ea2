"""Panels that ask for metrics or labels which nobody exports would stay empty."""

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from app.db.ops_metrics import ActiveJob, OperatingFigures, WaitingMessages
from app.services.ops_metrics import figures_of
from app.telemetry.exposition import render, snapshot
from app.telemetry.metrics import (
    READER_ENDS,
    REGISTRY,
    calls_of,
    count_pause,
    count_request,
    count_webhook_attempt,
    show_limit,
)
from tests.unit.test_alarms import exported

ROOT = Path(__file__).parents[2]
BOARD: dict[str, Any] = json.loads((ROOT / "deploy" / "grafana" / "persona-assay.json").read_text("utf-8"))
PANELS = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
OF_SCRAPING = {"job", "instance", "exported_job"}
"""Labels that Prometheus gives; its own `job` moves ours aside."""
LEFT_OUT = {
    "assay_call_seconds",
    "assay_wait_seconds",
    "assay_job_open_responses",
    "assay_job_cost_usd",
    "assay_uploads",
    "assay_upload_bytes",
    "assay_upload_records",
} | {*("assay_webhook_oldest_seconds", "assay_webhook_overdue_seconds")}
"""Histograms by their family's name, what other panels or alarms say already, and what tells only of disk space."""


def metrics_in(expression: str) -> set[str]:
    return set(re.findall(r"\bassay_[a-z_]+", expression))


def labels_of_all() -> set[str]:
    """The labels of all series, once each has been counted under."""
    calls = calls_of("dashboard", "model")
    calls.ended("judging", "ok", 1.0, 1.0)
    calls.waited("rate", 1.0)
    count_pause("dashboard", "model")
    show_limit("requests", "dashboard", "model", 1.0)
    count_request("GET", 200)
    count_webhook_attempt("delivered")
    READER_ENDS.labels("crash").inc(0)
    found = OperatingFigures(
        {}, {"x": 1}, 0, 0, [ActiveJob("job_1", 1, 1, 0.0)], WaitingMessages(0, 0.0, 0.0), {}
    )
    text = render({"worker@host:1": snapshot(REGISTRY)}, figures_of(found, [], 0)).decode()
    return {
        label
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        for label in sample.labels
    }


class TestPanels:
    @pytest.mark.parametrize("expression", EXPRESSIONS)
    def test_ask_for_metrics_that_are_exported(self, expression: str) -> None:
        named = metrics_in(expression)
        assert named
        assert named <= exported()

    def test_ask_for_labels_that_are_exported(self) -> None:
        text = " ".join(EXPRESSIONS)
        grouped = {
            label
            for labels in re.findall(r"(?:by|without) \(([^)]+)\)", text)
            for label in labels.split(", ")
        }
        matched = {
            label for labels in re.findall(r"\{([^}]+)\}", text) for label in re.findall(r"(\w+)[=!]", labels)
        }
        legends = {
            label
            for panel in PANELS
            for target in panel["targets"]
            for label in re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
        }
        assert grouped | matched | legends <= labels_of_all() | OF_SCRAPING

    def test_show_each_metric_that_there_is(self) -> None:
        shown = set().union(*map(metrics_in, EXPRESSIONS))
        shown |= {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
        counters = {re.sub(r"_total$", "", name) for name in shown}
        assert (
            exported()
            - shown
            - counters
            - LEFT_OUT
            - {f"{name}_{part}" for name in LEFT_OUT for part in ("bucket", "count", "sum")}
            == set()
        )

    def test_add_up_counters_once_however_many_apis_show_them(self) -> None:
        for expression in EXPRESSIONS:
            rates = re.findall(r"(max without \(instance\) \()?(?:rate|increase)\(", expression)
            assert all(rates), expression

    def test_a_legend_names_what_tells_the_lines_apart(self) -> None:
        for panel in PANELS:
            if panel["type"] == "timeseries":
                for target in panel["targets"]:
                    [*by] = re.findall(r"(?:sum|max|min) by \(([^)]+)\)", target["expr"])[:1]
                    apart = {label for labels in by for label in labels.split(", ")} - {"le"}
                    assert apart <= set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])), panel["title"]

    def test_lie_beside_one_another(self) -> None:
        taken: set[tuple[int, int]] = set()
        for panel in BOARD["panels"]:
            place = panel["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken, panel["title"]
            assert place["x"] + place["w"] <= 24
            taken |= cells
        assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])

    @pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Prometheus's promtool")
    def test_are_understood_by_prometheus(self, tmp_path: Path) -> None:
        plain = [
            re.sub(
                r"\$__rate_interval|\$__range", "5m", re.sub(r"\$(job|connection|model)\b", ".*", expression)
            )
            for expression in EXPRESSIONS
        ]
        rules = [{"record": f"panel:{number}", "expr": each} for number, each in enumerate(plain)]
        file = tmp_path / "rules.yaml"
        file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
        run = subprocess.run(
            ["promtool", "check", "rules", str(file)], capture_output=True, text=True, check=False, timeout=60
        )
        assert run.returncode == 0, run.stdout + run.stderr


class TestVariables:
    def test_are_all_that_is_used_and_are_used(self) -> None:
        made = {variable["name"] for variable in BOARD["templating"]["list"]}
        text = json.dumps(BOARD)
        used = set(re.findall(r"\$\{?(?!__)(\w+)", text))
        assert used == made

    def test_ask_for_series_that_are_exported(self) -> None:
        queries = [
            variable["definition"] for variable in BOARD["templating"]["list"] if "definition" in variable
        ]
        assert len(queries) == 3
        assert all(metrics_in(query) <= exported() for query in queries)
