"""A sample job's results, report, export, gate, comparison and schema where there is one metric more; prints what it finds.

In a process of its own: what derives from the registry does so when it is imported.
"""

import asyncio
import io
import json
import sys
from typing import Any

from app.domain.metrics import registry
from app.domain.metrics.acc_atom import acc_atom, run_shares
from app.domain.metrics.definition import Estimate, Family, MetricDefinition

NEW = MetricDefinition(
    name="xy_atom",
    label="XY_atom",
    summary="newly measured",
    definition="What nobody has measured before.",
    source="None",
    family=Family.ATOMIC,
    estimate=Estimate.MEAN,
    compute=acc_atom,
    by_run=run_shares,
)


def found() -> dict[str, Any]:
    from rich.console import Console

    from app.domain.results.comparison import compare, figures_of
    from app.domain.results.gate import judge_gate, parse_threshold
    from app.reports.exports.csv import csv_writer
    from app.reports.exports.files import write_table
    from app.reports.figures.files import figure_file
    from app.services.results.baselines import BaselineFilter, baselines
    from persona_assay.terminal.results_tables import results_view
    from tests.reference import openapi
    from tests.unit.reports.page import page_of
    from tests.unit.reports.sample import sample
    from tests.unit.results_sample import read

    job = sample()
    results = job.results
    published = baselines(BaselineFilter())
    models = [figures_of(read(results), model) for model in ("simulated/steady", "simulated/drifting")]
    console = Console(width=160, file=io.StringIO(), record=True)
    console.print(results_view(results, 160))
    drawn = figure_file(read(results), "models", model="", distances=[], file_format="svg", theme=None)
    before = json.loads(json.dumps(results))
    for part in (*before["cells"], *before["totals"]):
        del part["metrics"][NEW.name]
    for name, metrics in (("correlations", "metrics"), ("length_effects", "metric")):
        before[name] = [row for row in before[name] if NEW.name not in row[metrics]]
    return {
        "results": results,
        "gate": judge_gate(read(results), [parse_threshold("xy_atom>=0.1")], "personas").model_dump(),
        "comparison": [row.model_dump() for row in compare(*models).differences],
        "csv": write_table(csv_writer, "cells", read(results)).decode().splitlines()[0].split(","),
        "report": asyncio.run(page_of(job.responses, results)).text,
        "report_of_results_from_before": asyncio.run(page_of(job.responses, before)).text,
        "gate_of_results_from_before": judge_gate(
            read(before), [parse_threshold("xy_atom>=0.1")], "personas"
        ).model_dump(),
        "figure": (drawn or b"").decode(),
        "published": published.cells[0].metrics.model_dump(),
        "schema": openapi()["components"]["schemas"]["CellMetrics"]["properties"],
        "terminal": console.export_text(),
    }


if __name__ == "__main__":
    registry.METRICS += (NEW,)
    registry.BY_NAME[NEW.name], registry.RANGES[NEW.name] = NEW, NEW.range
    sys.stdout.write(json.dumps(found()))
