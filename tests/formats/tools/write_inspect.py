"""Runs Inspect with its mock model; run by the tools' own Python. Writes a log in each of its two formats."""

import sys

import inspect_ai  # type: ignore[import-not-found]
from inspect_ai.dataset import Sample  # type: ignore[import-not-found]
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # type: ignore[import-not-found]
from inspect_ai.scorer import includes  # type: ignore[import-not-found]
from inspect_ai.solver import generate, system_message  # type: ignore[import-not-found]

TEXTS = ["I love parties. I talk to everybody.", "I stayed home. It was quiet.", ""]


def main(directory: str) -> None:
    for form in ("eval", "json"):
        outputs = [ModelOutput.from_content("mockllm/model", text) for text in TEXTS]
        for output in outputs:
            output.usage = ModelUsage(
                input_tokens=9, output_tokens=9, total_tokens=18
            )  # else it counts, with a file that it fetches
        task = inspect_ai.Task(
            name="extraversion",
            dataset=[Sample(input=f"How was weekend {n}?", target="parties") for n in range(1, 4)],
            solver=[system_message("You are an extraverted person."), generate()],
            scorer=includes(),
        )
        model = get_model("mockllm/model", custom_outputs=outputs)
        inspect_ai.eval(
            task, model=model, log_format=form, log_dir=f"{directory}/{form}", display="none", max_samples=1
        )


main(sys.argv[1])
