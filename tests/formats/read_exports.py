"""Reads exports with the tools that they are for, and says as JSON what these found. Run in build/formats, where nothing of ours is."""

import json
import sys
from collections import Counter
from pathlib import Path


def read_dataset(folder: Path) -> dict[str, object]:
    from datasets import get_dataset_config_names, load_dataset

    cache = str(folder.parent / "cache")
    found: dict[str, object] = {}
    for name in get_dataset_config_names(str(folder)):
        rows = load_dataset(str(folder), name, split="train", cache_dir=cache)
        found[name] = {"rows": rows.num_rows, "columns": rows.column_names}
    return found


def read_lines(file: Path) -> dict[str, object]:
    from datasets import load_dataset

    rows = load_dataset("json", data_files=str(file), split="train", cache_dir=str(file.parent / "cache"))
    return {
        "rows": rows.num_rows,
        "features": {name: str(feature) for name, feature in rows.features.items()},
        "first": rows[0],
    }


def read_preferences(file: Path) -> dict[str, object]:
    """As TRL prepares them for its DPO and reward trainers, by the template of a made-up model."""
    from datasets import load_dataset
    from tokenizers import Tokenizer, models  # type: ignore[import-not-found]
    from transformers import PreTrainedTokenizerFast  # type: ignore[import-not-found]
    from trl.data_utils import (  # type: ignore[import-not-found]
        apply_chat_template,
        is_conversational,
        maybe_extract_prompt,
        unpair_preference_dataset,
    )

    words = Tokenizer(models.WordLevel({"?": 0}, unk_token="?"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="?")
    tokenizer.chat_template = (
        "{% for m in messages %}<{{m.role}}>{{m.content}}</{{m.role}}>{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    rows = load_dataset("json", data_files=str(file), split="train", cache_dir=str(file.parent / "cache"))
    pairs = rows.select_columns(["prompt", "chosen", "rejected"])
    return {
        "conversational": all(map(is_conversational, pairs)),
        "explicit_prompts": all(maybe_extract_prompt(pair) == pair for pair in pairs),
        "templated": [apply_chat_template(pair, tokenizer) for pair in pairs],
        "unpaired": Counter(unpair_preference_dataset(pairs)["label"]),
    }


def read_inspect(folder: Path) -> dict[str, object]:
    from inspect_ai.log import (  # type: ignore[import-not-found]
        read_eval_log,
        read_eval_log_sample_summaries,
    )

    found: dict[str, object] = {}
    for file in sorted(folder.glob("*.eval")):
        log = read_eval_log(str(file))
        samples = log.samples or []
        first = samples[0]
        found[file.stem] = {
            "status": log.status,
            "task": log.eval.task,
            "model": log.eval.model,
            "metadata": log.eval.metadata,
            "results": {s.name: s.metrics["mean_over_cells"].value for s in log.results.scores},
            "samples": len(samples),
            "total": log.results.total_samples,
            "summaries": len(read_eval_log_sample_summaries(str(file))),
            "scores": sum(len(sample.scores or {}) for sample in samples),
            "texts": Counter(sample.output.completion for sample in samples),
            "roles": [message.role for message in first.messages],
        }
    return found


def read_every_eval_ever(folder: Path) -> dict[str, object]:
    import hashlib

    from jsonschema import Draft7Validator  # type: ignore[import-untyped] # of the tools

    schemas = Path(__file__).with_name("every_eval_ever")
    record, sample = (
        Draft7Validator(json.loads((schemas / name).read_text()))
        for name in ("eval.schema.json", "instance_level_eval.schema.json")
    )
    found: dict[str, object] = {}
    for file in sorted(folder.glob("data/*/*/*/*.json")):
        told = json.loads(file.read_text())
        errors = [error.message for error in record.iter_errors(told)]
        detail = told["detailed_evaluation_results"]
        content = (folder / detail["file_path"]).read_bytes()
        rows = [json.loads(line) for line in content.splitlines()]
        errors += [error.message for row in rows for error in sample.iter_errors(row)]
        found[told["evaluation_id"]] = {
            "errors": errors[:5],
            "rows": len(rows),
            "told_rows": detail["total_rows"],
            "hash_is_right": hashlib.sha256(content).hexdigest() == detail["checksum"],
            "named": sorted({row["evaluation_result_id"] for row in rows}),
            "results": {
                each["evaluation_result_id"]: each["score_details"]["score"]
                for each in told["evaluation_results"]
            },
            "same_path": str(file.relative_to(folder))[:-5] == detail["file_path"][: -len("_samples.jsonl")],
            "evaluations": sorted({row["evaluation_id"] for row in rows}),
        }
    return found


READERS = {
    "dataset": read_dataset,
    "lines": read_lines,
    "preferences": read_preferences,
    "inspect": read_inspect,
    "every_eval_ever": read_every_eval_ever,
}

if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(READERS[sys.argv[1]](Path(sys.argv[2])), default=str))
