"""Logs of Inspect AI: a file ``.eval`` for each model, as ``inspect_ai.log.read_eval_log`` reads them."""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any

from pydantic_core import to_json

from app.domain.jobs.status import JobStatus
from app.domain.judging.judged_response import JudgedResponse
from app.domain.providers.model import FinishReason, Model
from app.domain.results.contract import Results
from app.reports.exports.exported_job import (
    SIMULATED,
    ExportedJob,
    file_names,
    metadata_of,
    model_name,
    path_part,
    scores_of,
)
from app.reports.exports.zips import Entry, one_part, zipped

SCHEMA = 2
"""Version of the log's form."""
TASK = "persona_fidelity"
ROWS_AT_ONCE = 1_000
_NAMESPACE = uuid.UUID("5a1c4a7e-6a43-4f6f-9a53-0d0a8c1b6f20")
_STATUSES = {
    JobStatus.COMPLETED: "success",
    JobStatus.CANCELLED: "cancelled",
    JobStatus.FAILED: "error",
}
_STOPS = {FinishReason.LENGTH: "max_tokens", FinishReason.CONTENT_FILTER: "content_filter"}
Json = dict[str, Any]


async def inspect_entries(job: ExportedJob) -> AsyncIterator[Entry]:
    """A log for each model."""
    names = file_names(job.spec.models)
    for model in job.spec.models:
        yield Entry(f"{names[model.label]}.eval", zipped(_Log(job, model).entries()))


class _Log:
    def __init__(self, job: ExportedJob, model: Model) -> None:
        self._job = job
        self._model = model
        # As bytes, which take an eighth of what objects take.
        self._summaries: list[bytes] = []
        self._ids: set[str] = set()
        self._scored: Counter[str] = Counter()
        self._without_text = 0
        self._runs = 0

    async def entries(self) -> AsyncIterator[Entry]:
        """The files of a log; what sums up the samples comes after them."""
        begun = {"version": SCHEMA, "eval": self._spec(), "plan": {}}
        yield Entry("_journal/start.json", one_part(to_json(begun)))
        async for page in self._job.pages(self._model.label):
            for name, sample in await asyncio.to_thread(list, self._samples(page)):
                yield Entry(f"samples/{name}.json", one_part(sample))
        yield Entry("summaries.json", _listed(self._summaries))
        header = begun | {
            "status": _STATUSES.get(self._job.status, "started"),
            "results": self._results(),
            "stats": self._stats(),
        }
        header["eval"] = self._spec()
        yield Entry("header.json", one_part(to_json(header)))

    def _samples(self, page: Any) -> Iterator[tuple[str, bytes]]:
        for response in page:
            sample = self._sample(response)
            self._ids.add(sample["id"])
            self._summaries.append(to_json(_summary(sample)))
            self._runs = max(self._runs, response.run + 1)
            # A response is one sample of ACC_atom, of however many dimensions.
            self._scored.update({score.metric for score in scores_of(response)})
            self._without_text += "error" in sample
            yield f"{sample['id']}_epoch_{sample['epoch']}", to_json(sample)

    def _sample(self, response: JudgedResponse) -> Json:
        asked = self._job.prompts.of(response)
        _, cell, _, item = response.id.rsplit("-", 3)
        sample: Json = {
            # The id is part of a file's name, and one for all runs, which are Inspect's epochs.
            "id": "-".join(
                [*map(path_part, (response.persona, response.task, response.item.id)), cell, item]
            ),
            "epoch": response.run + 1,
            "input": [
                {"role": "system", "content": asked.system},
                {"role": "user", "content": asked.user},
            ],
            "target": [f"{dimension}: {level}" for dimension, level in response.levels.items()],
            "messages": [],
            "output": {"model": self._model.name, "choices": []},
            "scores": dict(self._scores(response)),
            "metadata": dict(metadata_of(response)) | {"prompt_known": asked.known},
            "uuid": response.id,
        }
        sample["messages"] = list(sample["input"])
        if response.text is not None:
            said = {"role": "assistant", "content": response.text, "model": self._model.name}
            sample["messages"].append(said)
            stop = _STOPS.get(response.finish_reason, "stop") if response.finish_reason else "stop"
            sample["output"]["choices"] = [{"message": said, "stop_reason": stop}]
            sample["output"]["completion"] = response.text
        else:
            words = response.error or response.status
            sample["error"] = {"message": words, "traceback": "", "traceback_ansi": ""}
        return sample

    def _scores(self, response: JudgedResponse) -> Iterator[tuple[str, Json]]:
        for score in scores_of(response):
            dimension = score.dimension
            judged = [
                {
                    "start": unit.span[0],
                    "end": unit.span[1],
                    "judge": said.judge,
                    "status": said.status,
                    "score": said.score,
                }
                for unit in response.units
                for said in unit.verdicts
                if said.dimension == dimension
            ]
            graded = [
                {"judge": grade.judge, "status": grade.status, "score": grade.score}
                for grade in response.grades
                if dimension is None
            ]
            yield (
                score.metric if dimension is None else f"{score.metric}_{dimension}",
                {
                    "value": score.value,
                    "answer": response.text,
                    "metadata": {"in_character": score.in_character, "verdicts": judged or graded},
                },
            )

    def _spec(self) -> Json:
        job = self._job
        name = uuid.uuid5(_NAMESPACE, f"{job.id}/{self._model.label}").hex[:22]
        marks: Json = dict(job.marks()) | {"model_label": self._model.label}
        if job.simulated:
            marks["note"] = SIMULATED
        return {
            "eval_id": name,
            "run_id": job.id,
            "created": job.at.isoformat(),
            "task": TASK,
            "task_id": name,
            "task_version": 0,
            "dataset": {"name": "personas", "samples": len(self._ids)},
            "model": model_name(self._model),
            "config": {"epochs": max(1, self._runs)},
            "packages": {"persona-assay": job.release},
            "tags": job.tags,
            "metadata": marks,
        }

    def _stats(self) -> Json:
        at = self._job.at.isoformat()
        return {"started_at": at, "completed_at": at, "model_usage": {}}

    def _results(self) -> Json:
        total = len(self._summaries)
        scores = [
            {
                "name": name,
                "scorer": name,
                "scored_samples": self._scored[name],
                "metrics": {"mean_over_cells": {"name": "mean_over_cells", "value": value}},
            }
            for name, value in _totals(self._job.results, self._model.label)
        ]
        return {
            "total_samples": total,
            "completed_samples": total - self._without_text,
            "scores": scores,
        }


async def _listed(rows: list[bytes]) -> AsyncIterator[bytes]:
    """A list of JSON, some rows at a time."""
    yield b"["
    for start in range(0, len(rows), ROWS_AT_ONCE):
        yield (b"," if start else b"") + b",".join(rows[start : start + ROWS_AT_ONCE])
    yield b"]"


def _summary(sample: Json) -> Json:
    """What the list of samples shows of one."""
    found = {name: sample[name] for name in ("id", "epoch", "input", "target", "metadata", "uuid")}
    found["scores"] = {name: {"value": score["value"]} for name, score in sample["scores"].items()}
    if "error" in sample:
        found["error"] = sample["error"]["message"]
    return found | {"completed": True, "message_count": len(sample["messages"])}


def _totals(results: Results, label: str) -> Iterator[tuple[str, float]]:
    for total in results.totals:
        acc_atom = total.metrics["acc_atom"]
        if total.model == label and total.by == ["model"] and acc_atom.value is not None:
            yield "acc_atom", acc_atom.value
    for graded in results.persona_score_totals:
        if graded.model == label and graded.persona_score.value is not None:
            yield "persona_score", graded.persona_score.value
