"""Estimates a call's tokens from recent calls to its model: rate limits count them before the reply arrives."""

from app.domain.providers.model import ChatRequest, Model, Stage, Usage

CHARACTERS_PER_TOKEN = 4

MOST_REMEMBERED = 1000
"""Means that are kept."""

NEWEST_SHARE = 0.05
"""Weight of the newest reply in a mean."""


class ExpectedTokens:
    """Means of one process."""

    def __init__(self) -> None:
        self._written: dict[tuple[str, ...], float] = {}
        self._density: dict[tuple[str, ...], float] = {}

    def of(self, request: ChatRequest, stage: Stage) -> Usage:
        """Tokens of the prompt by its length and lately's tokens a character, of the reply at worst, or else as lately."""
        model = request.model
        density = self._density.get((model.connection, model.name), 1 / CHARACTERS_PER_TOKEN)
        written = model.parameters.max_tokens
        if written is None:
            written = round(self._written.get((model.connection, model.name, stage), 0.0))
        return Usage(round(density * request.characters), written)

    def learn(self, request: ChatRequest, stage: Stage, usage: Usage) -> None:
        """Takes in what a call took."""
        model = request.model
        _learn(self._written, (model.connection, model.name, stage), usage.output_tokens)
        density = usage.input_tokens / max(1, request.characters)
        _learn(self._density, (model.connection, model.name), density)


def beyond(model: Model, expected: Usage, usage: Usage | None) -> tuple[int, int] | None:
    """Tokens that count against limits beyond those expected; below 0 where it were fewer.

    What is left of `max_tokens` counts all the same: providers reckon with it when a call arrives
    (https://platform.openai.com/docs/guides/rate-limits).
    """
    if usage is None:
        return None
    written = usage.output_tokens - expected.output_tokens
    if written < 0 and model.parameters.max_tokens is not None:
        written = 0
    return usage.input_tokens - expected.input_tokens, written


def _learn(means: dict[tuple[str, ...], float], name: tuple[str, ...], newest: float) -> None:
    """Takes a value into the mean of the latest ones."""
    if name not in means and len(means) >= MOST_REMEMBERED:
        means.clear()
    mean = means.get(name, newest)
    means[name] = mean + NEWEST_SHARE * (newest - mean)
