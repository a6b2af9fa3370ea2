"""Alarms that name metrics which nobody exports would never ring."""

import re
from pathlib import Path

import yaml

from app.db.operating import ActiveJob, OperatingFigures, WaitingMessages
from app.services.read_metrics import figures_of
from app.telemetry.exposition import render, snapshot
from app.telemetry.metrics import REGISTRY

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")
[RULES] = re.findall(r"^```yaml\n(groups:.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def exported() -> set[str]:
    """The names of all series."""
    found = OperatingFigures({}, {}, 0, 0, [ActiveJob("job_1", 1, 1, 0.0)], WaitingMessages(0, 0.0, 0.0))
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
        named = set(re.findall(r"\bassay_[a-z_]+\b", PAGE)) - {
            "assay_tenant",
            "assay_session",
        }  # a role in Postgres and a cookie
        assert len(named) > 10
        assert named <= exported()

    def test_explains_every_alarm_of_its_rules(self) -> None:
        alarms = [rule["alert"] for group in yaml.safe_load(RULES)["groups"] for rule in group["rules"]]
        assert alarms
        assert [alarm for alarm in alarms if f"| `{alarm}` |" not in PAGE] == []
