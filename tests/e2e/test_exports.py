"""A job's verdicts as files: downloaded over HTTP, read by pandas, and the results' figures computed once more from nothing else."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psutil  # type: ignore[import-untyped]  # it comes without types
import pytest

from tests.e2e.stack import Json, Stack
from tests.e2e.truth import Scale, Text, cell_truth
from tests.faults.trial import report

if TYPE_CHECKING:
    import pandas as pd

BODY: Json = {
    "personas": ["E-low", "N-high"],
    "tasks": ["questionnaire", "essay"],
    "models": ["simulated/sim-drifting", "simulated/sim-refusing"],
    "judges": ["simulated/sim-judge"],
    "instructions": [0, 3],
    "iterations": 1,
}
PAPERS: Json = BODY | {
    "personas": ["big-five"],
    "tasks": ["questionnaire", "essay", "social_media_post"],
    "models": ["simulated/sim-drifting"],
    "instructions": "all",
    "iterations": 5,
}
"""One model of the papers' study: 5,400 responses."""
FORMATS = ("csv", "jsonl", "parquet")
CELL = ["model", "persona", "task", "dimension", "level"]
LEVELS = ["low", "neutral", "high"]
MIB = 2**20
GROWTH_MIB = 64
"""What a download may take of the API's memory besides; the longest of the files has a hundred."""


def download(stack: Stack, job_id: str, format_: str, directory: Path) -> Path:
    path = directory / f"verdicts.{format_}"
    query = {"format": format_}
    with (
        path.open("wb") as file,
        stack.api.stream("GET", f"/v1/jobs/{job_id}/report", params=query) as answer,
    ):
        assert answer.is_success
        for chunk in answer.iter_bytes():
            file.write(chunk)
    return path


def read(path: Path) -> "pd.DataFrame":
    import pandas as pd

    if path.suffix == ".csv":
        return pd.read_csv(path, keep_default_na=False, na_values=[""], low_memory=False)
    return pd.read_json(path, lines=True) if path.suffix == ".jsonl" else pd.read_parquet(path)


def metrics_of(table: "pd.DataFrame") -> dict[tuple[str, ...], Json]:
    """Each cell's metrics, from its verdicts' scores alone."""
    found = {}
    for cell, rows in table.groupby(CELL):
        texts = [
            Text(
                run=int(run),
                instruction=int(response["instruction"].iloc[0]),
                scores=[int(score) for score in response["score"].dropna()],
                left_out=Counter(response.loc[response["status"] != "scored", "status"].dropna()),
            )
            for (run, _), response in rows.groupby(["run", "response_id"])
        ]
        found[cell] = cell_truth(texts, Scale(1, 5, len(LEVELS), LEVELS.index(cell[-1])))["metrics"]
    return found


def assert_same(results: Json, path: Path, format_: str) -> None:
    """All of the file's figures are those of the results."""
    found = metrics_of(read(path))
    cells = {tuple(cell[name] for name in CELL): cell["metrics"] for cell in results["cells"]}
    assert found.keys() == cells.keys()
    for cell, metrics in cells.items():
        for name, metric in found[cell].items():
            told = metrics[name]
            assert (told["value"], told["n"]) == (pytest.approx(metric["value"], rel=1e-12), metric["n"])


@contextmanager
def memory_of(pid: int) -> Iterator[list[float]]:
    """A process's memory in MiB, looked at from outside."""
    process, stop = psutil.Process(pid), threading.Event()
    found = [process.memory_info().rss / MIB]

    def look() -> None:
        while not stop.wait(0.05):
            found.append(process.memory_info().rss / MIB)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield found
    finally:
        stop.set()
        looking.join()


@pytest.fixture(scope="module")
def finished(stack: Stack) -> str:
    return str(stack.ended(stack.submit(BODY))["id"])


class TestFiles:
    @pytest.mark.parametrize("format_", FORMATS)
    def test_pandas_computes_the_results_figures_from_each(
        self, stack: Stack, finished: str, tmp_path: Path, format_: str
    ) -> None:
        path = download(stack, finished, format_, tmp_path)
        assert_same(stack.results(finished), path, format_)

    @pytest.mark.long
    @pytest.mark.timeout(3600)
    def test_so_it_does_for_5400_responses_whose_download_takes_no_memory(
        self, stack: Stack, tmp_path: Path
    ) -> None:
        job_id = str(stack.ended(stack.submit(PAPERS), seconds=1800)["id"])
        results = stack.results(job_id)
        for format_ in FORMATS:
            download(stack, job_id, format_, tmp_path)  # what is loaded the first time stays
        figures: Json = {}
        for format_ in FORMATS:
            with memory_of(stack.pid("api")) as seen:
                path = download(stack, job_id, format_, tmp_path)
            assert max(seen) - seen[0] < GROWTH_MIB
            assert_same(results, path, format_)
            size = path.stat().st_size / MIB
            figures[format_] = {"mib": round(size, 1), "api_mib": [round(seen[0]), round(max(seen))]}
        report("exports of 5,400 responses", seed=0, n=len(FORMATS), of=len(FORMATS), **figures)
