"""DeepEval: a metric of one's own that asks a model of one's own, as its documentation has it, over ``evaluate``.

Its own metrics ask in words of their own. Its ``LocalModel`` makes a client for every call; this one keeps one.
"""

import json
import sys
from pathlib import Path
from typing import Any

from deepeval import evaluate  # type: ignore[import-not-found]
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig  # type: ignore[import-not-found]
from deepeval.metrics import BaseMetric  # type: ignore[import-not-found]
from deepeval.models import DeepEvalBaseLLM  # type: ignore[import-not-found]
from deepeval.test_case import LLMTestCase  # type: ignore[import-not-found]
from openai import AsyncOpenAI


class Judge(DeepEvalBaseLLM):  # type: ignore[misc]  # DeepEval is not installed where types are checked
    """A model behind OpenAI's format."""

    def __init__(self, base_url: str) -> None:
        self._client = AsyncOpenAI(base_url=base_url, api_key="none")

    def load_model(self) -> AsyncOpenAI:
        """The client."""
        return self._client

    def generate(self, prompt: str) -> str:
        """Not used: everything is asked concurrently."""
        raise NotImplementedError(prompt)

    async def a_generate(self, prompt: str) -> str:
        """The model's answer."""
        reply = await self._client.chat.completions.create(
            model="judge", messages=[{"role": "user", "content": prompt}], temperature=0
        )
        return reply.choices[0].message.content or ""

    def get_model_name(self) -> str:
        """How results show it."""
        return "judge"


class Score(BaseMetric):  # type: ignore[misc]  # as above
    """The number that the judge gives."""

    def __init__(self, model: Judge, threshold: float = 1) -> None:
        self.model, self.threshold = model, threshold
        self.async_mode = True

    def measure(self, test_case: Any, *args: object, **kwargs: object) -> float:
        """Not used: everything is asked concurrently."""
        raise NotImplementedError(test_case, args, kwargs)

    async def a_measure(self, test_case: Any, *_: object, **__: object) -> float:
        """Asks the judge."""
        self.score = float(await self.model.a_generate(test_case.input))
        return self.score

    @property
    def __name__(self) -> str:
        return "Score"


def main(calls: str, output: str, base_url: str, in_flight: int) -> None:
    """Judges every prompt."""
    prompts = [json.loads(line)["prompt"] for line in Path(calls).read_text("utf-8").splitlines()]
    evaluate(
        [LLMTestCase(input=prompt, actual_output="") for prompt in prompts],
        [Score(Judge(base_url))],
        async_config=AsyncConfig(run_async=True, throttle_value=0, max_concurrent=in_flight),
        display_config=DisplayConfig(
            show_indicator=False, print_results=False, results_folder=output, inspect_after_run=False
        ),
        cache_config=CacheConfig(write_cache=False, use_cache=False),
    )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
