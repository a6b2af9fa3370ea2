"""The schema of Every Eval Ever, version 0.3.0: a record for each model, and its responses beside it."""

import asyncio
import hashlib
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from pydantic_core import to_json

from app.domain.judging.judged_response import JudgedResponse
from app.domain.metrics.metric import Metric
from app.domain.metrics.registry import METRICS
from app.domain.personagym.prompts import rubric_outline
from app.domain.providers.model import Model
from app.reports.exports.exported_job import SIMULATED, ExportedJob, metadata_of, path_part, scores_of
from app.reports.exports.jsonl import one_line
from app.reports.exports.zips import Entry, one_part

SCHEMA = "0.3.0"
LIBRARY = "persona-assay"
_UNKNOWN = {"deployment_type": "unknown", "model_availability": "unknown"}
_GRADES = (1.0, 5.0)
PERSONA_SCORE = "persona_score"
UNKNOWN_PROMPT = "not known: the verdicts were imported"
Json = dict[str, Any]


async def eval_entries(job: ExportedJob) -> AsyncIterator[Entry]:
    """For each model its responses, then its record, which tells their number and hash."""
    for model in job.spec.models:
        record = _Record(job, model)
        yield Entry(f"{record.path}_samples.jsonl", record.samples())
        yield Entry(f"{record.path}.json", one_part(to_json(record.record(), indent=1)))


class _Record:
    def __init__(self, job: ExportedJob, model: Model) -> None:
        self._job = job
        self._model = model
        self._id = _id(model)
        digest = hashlib.sha256(f"{job.id}/{model.label}".encode()).digest()
        folder = f"data/{LIBRARY}/{self._id}"
        unique = uuid.UUID(bytes=digest[:16], version=4)
        self.path = f"{folder}/{unique}"
        # Models of a job may share a name, and jobs a second.
        self._evaluation = f"{LIBRARY}-{unique}/{self._id}/{int(job.at.timestamp())}"
        self._results = list(self._evaluation_results())
        self._rows, self._left_out, self._hash = 0, 0, hashlib.sha256()

    async def samples(self) -> AsyncIterator[bytes]:
        """The responses that have a score, a line for each dimension."""
        async for page in self._job.pages(self._model.label):
            part = await asyncio.to_thread(self._lines, page)
            self._hash.update(part)
            yield part

    def _lines(self, page: Sequence[JudgedResponse]) -> bytes:
        lines = []
        for response in page:
            found = list(self._of_response(response))
            self._left_out += not found
            lines += found
        self._rows += len(lines)
        return b"".join(lines)

    def _of_response(self, response: JudgedResponse) -> Iterator[bytes]:
        asked = self._job.prompts.of(response)
        reference = [f"{dimension}: {level}" for dimension, level in response.levels.items()]
        usage = response.usage
        for score in scores_of(response):
            about = dict(metadata_of(response)) | {"dimension": score.dimension} | self._job.marks()
            row: Json = {
                "schema_version": SCHEMA,
                "evaluation_id": self._evaluation,
                "model_id": self._id,
                "evaluation_name": _name(response.task),
                "evaluation_result_id": f"{response.task}/{score.metric}",
                "sample_id": f"{response.persona}/{response.task}/{response.item.id}/{response.run}",
                "sample_hash": hashlib.sha256((asked.user + "".join(reference)).encode()).hexdigest(),
                "interaction_type": "single_turn",
                "input": {
                    "raw": asked.user,
                    "formatted": f"{asked.system}\n\n{asked.user}" if asked.known else None,
                    "reference": reference,
                },
                "output": {"raw": [response.text or ""]},
                "answer_attribution": [
                    {
                        "turn_idx": 0,
                        "source": "output.raw",
                        "extracted_value": response.text or "",
                        "extraction_method": "llm_judge",
                        "is_terminal": True,
                    }
                ],
                "evaluation": {"score": score.value, "is_correct": score.in_character},
                "metadata": {
                    name: value if isinstance(value, str) else _text(value) for name, value in about.items()
                },
            }
            if usage is not None:
                row["token_usage"] = {
                    "input_tokens": usage.input_tokens,
                    "output_tokens": usage.output_tokens,
                    "total_tokens": usage.input_tokens + usage.output_tokens,
                }
            yield one_line(to_json(row)) + b"\n"

    def record(self) -> Json:
        """The record; to be asked for when the responses have been read."""
        job = self._job
        at = str(int(job.at.timestamp()))
        details = (
            job.marks() | {"model_label": self._model.label} | ({"note": SIMULATED} if job.simulated else {})
        )
        found: Json = {
            "schema_version": SCHEMA,
            "evaluation_id": self._evaluation,
            "evaluation_timestamp": at,
            "retrieved_timestamp": at,
            "source_metadata": {
                "source_name": job.name or job.id,
                "source_type": "evaluation_run",
                "source_organization_name": "not stated",
                "evaluator_relationship": "other",
                "additional_details": details,
            },
            "eval_library": {"name": LIBRARY, "version": job.release},
            "model_info": self._model_info(self._model),
            "evaluation_results": self._results,
        }
        if self._rows:
            found["detailed_evaluation_results"] = {
                "format": "jsonl",
                "file_path": f"{self.path}_samples.jsonl",
                "hash_algorithm": "sha256",
                "checksum": self._hash.hexdigest(),
                "total_rows": self._rows,
                "additional_details": {"responses_without_score": str(self._left_out)},
            }
        return found

    @staticmethod
    def _model_info(model: Model) -> Json:
        return {
            "name": model.name,
            "id": _id(model),
            "additional_details": _UNKNOWN
            | {"simulated": str(model.simulated).lower()}
            | ({} if model.imported is None else {"imported": model.imported.words}),
        } | ({"inference_platform": model.connection} if model.connection else {})

    def _evaluation_results(self) -> Iterator[Json]:
        label = self._model.label
        for total in self._job.results.totals:
            if total.model == label and total.by in (["model"], ["model", "task"]):
                for metric in METRICS:
                    about = (metric.name, metric.definition, metric.range)
                    yield from self._result(total.task, about, total.metrics[metric.name])
        for graded in self._job.results.persona_score_totals:
            if graded.model == label:
                about = (PERSONA_SCORE, "PersonaScore: the mean of the judges' grades, 1 to 5.", _GRADES)
                yield from self._result(None, about, graded.persona_score)
                for task, score in graded.tasks.items():
                    yield from self._result(task, about, score)

    def _result(
        self, task: str | None, about: tuple[str, str, tuple[float, float] | None], figure: Metric
    ) -> Iterator[Json]:
        name, meaning, ends = about
        if figure.value is None:
            return
        config: Json = {
            "evaluation_description": meaning,
            "metric_id": f"{LIBRARY}.{name}",
            "metric_name": name,
            "lower_is_better": False,
            "llm_scoring": {
                "judges": [{"model_info": self._model_info(judge)} for judge in self._job.spec.judges],
                "input_prompt": self._scoring_prompt(name, task),
                "aggregation_method": "average",
            },
        }
        if ends is not None:
            config |= {"score_type": "continuous", "min_score": ends[0], "max_score": ends[1]}
        details: Json = {"score": figure.value, "details": {"n": str(figure.n)}}
        if figure.ci95 is not None:
            low, high = figure.ci95
            interval = {"lower": low, "upper": high, "confidence_level": 0.95}
            details["uncertainty"] = {"confidence_interval": interval}
        yield {
            "evaluation_result_id": f"{task or 'all'}/{name}",
            "evaluation_name": _name(task),
            "source_data": {"dataset_name": "personas of the job", "source_type": "other"},
            "metric_config": config,
            "score_details": details,
        }

    def _scoring_prompt(self, metric: str, task: str | None) -> str:
        """The templates by which judges were asked for what the metric is made of, of one task or of all."""
        spec = self._job.spec
        if not spec.asked_judges:
            return UNKNOWN_PROMPT
        graded = [] if spec.gym is None else [each for each in spec.gym.tasks if task in (None, each.id)]
        if spec.gym is not None and metric == PERSONA_SCORE:
            prompts = [rubric_outline(spec.gym.prompts, each.task) for each in graded]
        else:
            prompts = [each.scoring_prompt for each in spec.tasks if task in (None, each.id)]
            if spec.gym is not None and any(each.atomic for each in graded):
                prompts.append(spec.gym.prompts.sentence_scoring)
        return "\n\n".join(dict.fromkeys(prompts))


def _id(model: Model) -> str:
    """Its platform, or ``unknown``, and its name."""
    return f"{path_part(model.connection or 'unknown')}/{path_part(model.name)}"


def _name(task: str | None) -> str:
    return "persona_fidelity" if task is None else f"persona_fidelity/{task}"


def _text(value: object) -> str:
    return to_json(value).decode()
