"""Output items as OpenAI's own types write them; run by the tools' own Python. The service that made them is closed."""

import sys
from pathlib import Path

from openai.types.evals.runs import OutputItemListResponse

SAID = "I love parties. I talk to everybody."


def item(number: int, said: str | None) -> OutputItemListResponse:
    sample = {
        "error": {"code": "", "message": ""} if said else {"code": "server_error", "message": "away"},
        "finish_reason": "stop",
        "input": [
            {"role": "developer", "content": "You are an extraverted person."},
            {"role": "user", "content": "How was your weekend?"},
        ],
        "max_completion_tokens": 2048,
        "model": "gpt-5.6-luna",
        "output": [{"role": "assistant", "content": said}] if said else [],
        "seed": 42,
        "temperature": 1.0,
        "top_p": 1.0,
        "usage": {"cached_tokens": 0, "completion_tokens": 9, "prompt_tokens": 9, "total_tokens": 18},
    }
    return OutputItemListResponse.model_validate(
        {
            "id": f"outputitem_{number}",
            "object": "eval.run.output_item",
            "created_at": 1_764_000_000,
            "eval_id": "eval_1",
            "run_id": "evalrun_1",
            "datasource_item": {"question": "How was your weekend?", "answer": "Loud."},
            "datasource_item_id": number,
            "results": [{"name": "tone", "passed": True, "score": 0.75}],
            "sample": sample,
            "status": "pass" if said else "error",
        },
        strict=True,
    )


def main(directory: Path) -> None:
    items = [item(1, SAID), item(2, SAID), item(3, None)]
    (directory / "items.jsonl").write_text("".join(each.model_dump_json() + "\n" for each in items))


main(Path(sys.argv[1]))
