"""What a job may spend, and the most that a call can take.

Money is counted in whole billionths of a US dollar ("nanos"): a call's cost is rounded up, so sums are exact and
never too low.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

NANOS = 1_000_000_000

OVERHEAD_TOKENS = 64
"""Tokens that a provider's chat format adds to what a body says, at most."""


UNITS = {"usd": "nanos", "calls": "calls", "tokens": "tokens"}
"""The limits of a budget, each with the whole units that are counted."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of a job; ``None`` for no limit.

    Attributes:
        usd: US dollars at list prices, above 0.
        calls: Attempts that are sent, successful or not; at least 1.
        tokens: Input and output tokens together; at least 1.
    """

    usd: float | None = None
    calls: int | None = None
    tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Amount:
    """What calls take, in each of the three currencies."""

    calls: int = 0
    tokens: int = 0
    nanos: int = 0

    def __add__(self, other: "Amount") -> "Amount":
        return Amount(self.calls + other.calls, self.tokens + other.tokens, self.nanos + other.nanos)

    def at_least(self, other: "Amount") -> "Amount":
        """Return the larger of both in each currency."""
        return Amount(
            max(self.calls, other.calls), max(self.tokens, other.tokens), max(self.nanos, other.nanos)
        )


@dataclass(frozen=True, slots=True)
class Limits:
    """A budget in whole units; ``None`` for no limit."""

    calls: int | None
    tokens: int | None
    nanos: int | None

    def allow(self, amount: Amount) -> bool:
        """Whether an amount lies within all limits."""
        pairs = ((amount.calls, self.calls), (amount.tokens, self.tokens), (amount.nanos, self.nanos))
        return all(limit is None or taken <= limit for taken, limit in pairs)

    def affordable(self, taken: Amount, wanted: Sequence[Amount]) -> int:
        """How many of the wanted calls, in their order, fit beside what is taken."""
        for number, amount in enumerate(wanted):
            taken += amount
            if not self.allow(taken):
                return number
        return len(wanted)


NO_LIMITS = Limits(None, None, None)


def limits_of(budget: Budget) -> Limits:
    """A budget in whole units, rounded down."""
    nanos = None if budget.usd is None else math.floor(round(budget.usd * NANOS, 3))
    return Limits(budget.calls, budget.tokens, nanos)


def nanos_of(usd: float) -> int:
    """A cost in billionths of a dollar, rounded up; what is no more than floating-point noise does not count."""
    return math.ceil(round(usd * NANOS, 3))


def most_input_tokens(body: int) -> int:
    """The most input tokens that a call can take whose encoded body has so many bytes.

    A token of any byte-level vocabulary is at least one byte, and all that the model reads is in the body, or part of the chat
    format.
    """
    return body + OVERHEAD_TOKENS
