"""Runs lm-evaluation-harness on a model of its own kind that needs no weights; run by the tools' own Python."""

import json
import sys
from pathlib import Path
from typing import Any

import lm_eval
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager


class Guest(LM):  # type: ignore[misc]
    """Answers everything alike."""

    def generate_until(self, requests: list[Any]) -> list[str]:
        return ["I love parties. I talk to everybody." for _ in requests]

    def loglikelihood(self, requests: list[Any]) -> list[Any]:
        return [(-1.5, False) for _ in requests]

    def loglikelihood_rolling(self, requests: list[Any]) -> list[Any]:
        raise NotImplementedError


def task(directory: Path, name: str, **more: object) -> dict[str, object]:
    return {
        "task": name,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(directory / "questions.jsonl")}},
        "test_split": "test",
        "doc_to_text": "You are an extraverted person. {{question}}",
        **more,
    }


def main(directory: Path) -> None:
    questions = [{"question": f"How was weekend {n}?", "answer": "loud"} for n in range(1, 4)]
    (directory / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in questions))
    texts = {
        "output_type": "generate_until",
        "metric_list": [{"metric": "exact_match"}],
        "doc_to_target": "answer",
    }
    chosen = {"output_type": "multiple_choice", "doc_to_choice": ["loud", "quiet"], "doc_to_target": 0}
    tasks = [task(directory, "weekends", **texts), task(directory, "choices", **chosen)]
    tracker = EvaluationTracker(output_path=str(directory))
    results = lm_eval.simple_evaluate(
        Guest(),
        tasks=tasks,
        task_manager=TaskManager(include_defaults=False),
        log_samples=True,
        evaluation_tracker=tracker,
        bootstrap_iters=0,
    )
    written = results.pop("samples")
    tracker.save_results_aggregated(results=results, samples=written)
    for name, samples in written.items():
        tracker.save_results_samples(task_name=name, samples=samples)


main(Path(sys.argv[1]))
