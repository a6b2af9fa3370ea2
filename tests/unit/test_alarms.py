"""Alarms that name metrics which nobody exports would never ring."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from app.db.ops_metrics import ActiveJob, OperatingFigures, WaitingMessages
from app.services.ops_metrics import figures_of
from app.telemetry.exposition import render, snapshot
from app.telemetry.metrics import REGISTRY

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text("utf-8")
[RULES] = re.findall(r"^```yaml\n(groups:.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def exported() -> set[str]:
    """The names of all series."""
    found = OperatingFigures({}, {}, 0, 0, [ActiveJob("job_1", 1, 1, 0.0)], WaitingMessages(0, 0.0, 0.0), {})
    text = render({"worker@host:1": snapshot(REGISTRY)}, figures_of(found, [], 0)).decode()
    kinds = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    parts = {
        f"{name}{part}"
        for name, kind in kinds
        if kind == "histogram"
        for part in ("_bucket", "_count", "_sum")
    }
    return {name for name, _ in kinds} | parts


class TestPage:
    def test_names_only_metrics_that_are_exported(self) -> None:
        roles_and_a_cookie = {"assay_tenant", "assay_service", "assay_service_tenant", "assay_session"}
        named = set(re.findall(r"\bassay_[a-z_]+\b", PAGE)) - roles_and_a_cookie
        assert len(named) > 10
        assert named <= exported()

    def test_explains_every_alarm_of_its_rules(self) -> None:
        alarms = [rule["alert"] for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"]]
        assert alarms
        assert [alarm for alarm in alarms if f"| `{alarm}` |" not in PAGE] == []

    def test_names_only_events_that_are_logged(self) -> None:
        table = PAGE.partition("## Logs\n")[2].partition("\n## ")[0]
        cells = re.findall(r"^\| (`[^|]+`[^|]*) \|", table, re.MULTILINE)
        events = {event.removesuffix("; …") for cell in cells for event in re.findall(r"`([^`]+)`", cell)}
        assert len(events) > 30
        files = [*(ROOT / "app").rglob("*.py"), *(ROOT / "workers").rglob("*.py")]
        code = "".join(path.read_text("utf-8") for path in files)
        assert {event for event in events if f'"{event}' not in code} == set()


def is_held_back(tmp_path: Path, pauses_a_minute: int) -> bool:
    """Whether the alarm rings, by promtool, where two APIs both show a worker's pauses."""
    (tmp_path / "rules.yaml").write_text(RULES)
    series = 'assay_limiter_pauses_total{process="worker@a:1",connection="c",model="m",instance="%s"}'
    test = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [
                    {"series": series % instance, "values": f"0+{pauses_a_minute}x60"}
                    for instance in ("api-1:8321", "api-2:8321")
                ],
                "alert_rule_test": [{"eval_time": "40m", "alertname": "AssayHeldBack", "exp_alerts": []}],
            }
        ],
    }
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    command = ["promtool", "test", "rules", str(tmp_path / "test.yaml")]
    return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode != 0


class TestSeveralApis:
    def test_counters_are_added_up_once_however_many_show_them(self) -> None:
        summed = re.findall(r"sum(?: by \([^)]*\))? \(?\(?(\S+ \S+)", RULES)
        assert summed
        assert {words for words in summed if "rate(" in words} == set()

    @pytest.mark.skipif(shutil.which("promtool") is None, reason="needs Prometheus's promtool")
    def test_by_prometheus_itself_the_rate_is_that_of_one(self, tmp_path: Path) -> None:
        assert not is_held_back(tmp_path, 4)  # 0.07 a second, which two would make 0.13
        assert is_held_back(tmp_path, 8)
