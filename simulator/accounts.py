"""What the calls to one provider profile have taken of its limits and its slots."""

import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime

from simulator.conversation import Conversation, ProviderError, Reply, tokens
from simulator.formats import duration, prompt_characters
from simulator.limiter import SlidingWindow
from simulator.provider_profiles import Counted, Limit, ProviderProfile, ResetForm
from simulator.slots import Slots


class Meter:
    """What one model of one profile has taken of its limits.

    Args:
        profile: Whose limits.
    """

    def __init__(self, profile: ProviderProfile) -> None:
        self._profile = profile
        self._windows = [(limit, SlidingWindow(limit.amount, limit.seconds)) for limit in profile.limits]

    def take(self, now: float, amounts: Mapping[Counted, int], model: str) -> None:
        """Takes one call from all limits, or from none.

        Args:
            now: Seconds of a monotonic clock.
            amounts: What the call takes of each limit.
            model: Its model, for the error's words.

        Raises:
            ProviderError: "rate_limited", with the seconds until it fits; "over_the_whole_limit" if it never does.
        """
        waits = [(window.wait(now, amounts[limit.counts]), limit, window) for limit, window in self._windows]
        longest, limit, window = max(waits, key=lambda wait: wait[0], default=(0.0, None, None))
        if limit is None or window is None or longest == 0:
            for limit, window in self._windows:
                window.take(now, amounts[limit.counts])
            return
        asked = amounts[limit.counts]
        values = {
            "model": model, "what": limit.name, "counts": limit.counts, "limit": str(limit.amount),
            "used": str(window.used), "asked": str(asked),
        }  # fmt: skip
        if asked > limit.amount:
            raise ProviderError(
                "over_the_whole_limit",
                f"Request too large for {model} on {limit.name}: Limit {limit.amount}, Requested {asked}.",
                values=values,
            )
        values |= {
            "wait": duration(longest),
            "seconds": str(-int(-longest // 1)),
            "reset_epoch_ms": str(round((time.time() + longest) * 1000)),
        }
        words = f"Rate limit reached for {model} on {limit.name}: Limit {limit.amount}, Used {window.used}, Requested {asked}."
        raise ProviderError("rate_limited", words, retry_after=longest, values=values)

    def headers(self, now: float) -> str:
        """The headers that name the limits and what is left of them, each ended by CRLF; `now` in Unix seconds."""
        lines = [
            self._lines(limit.headers, limit, window, now) for limit, window in self._windows if limit.headers
        ]
        if self._profile.tightest:
            of_tokens = [pair for pair in self._windows if pair[0].counts != "requests"]
            limit, window = min(of_tokens, key=lambda pair: pair[1].remaining / pair[0].amount)
            lines.append(self._lines(self._profile.tightest, limit, window, now))
        return "".join(lines)

    def _lines(self, names: Mapping[str, str], limit: Limit, window: SlidingWindow, now: float) -> str:
        values = {
            "limit": str(limit.amount),
            "remaining": str(round(window.remaining / limit.rounded) * limit.rounded),
            "reset": _reset(self._profile.reset, window.reset, now),
        }
        return "".join(f"{name}: {values[what]}\r\n" for what, name in names.items())


class Account:
    """One user's account at one provider.

    Args:
        profile: The provider.
    """

    def __init__(self, profile: ProviderProfile) -> None:
        self.profile = profile
        self.slots = Slots(profile.server) if profile.server.slots else None
        self._meters: dict[str, Meter] = {}
        self._counts: dict[str, Counter[str]] = {}

    def take(self, model: str, conversation: Conversation, reply: Reply) -> None:
        """Takes a call from the limits of its model.

        Raises:
            ProviderError: It is more than they allow.
        """
        read, written = tokens(prompt_characters(conversation)), tokens(len(reply.text))
        charged = read + written
        if self.profile.charges_max_tokens and conversation.max_tokens is not None:
            charged = read + conversation.max_tokens
        amounts: Mapping[Counted, int] = {
            "requests": 1, "tokens": charged, "input_tokens": read, "output_tokens": written,
        }  # fmt: skip
        try:
            self._meter(model).take(time.monotonic(), amounts, model)
        except ProviderError as refusal:
            self.count(model, f"over {refusal.values['what']}")
            raise
        self.count(model, "accepted")

    def headers(self, model: str) -> str:
        """What every reply says of the limits of its model, each line ended by CRLF."""
        return self._meter(model).headers(time.time())

    def count(self, model: str, what: str) -> None:
        """Counts something that happened to a call, for `as_dict`."""
        self._counts.setdefault(model, Counter())[what] += 1

    def as_dict(self) -> dict[str, object]:
        """By model: calls accepted, over each limit, and computed for nobody, as JSON members."""
        return {model: dict(counts) for model, counts in self._counts.items()}

    def _meter(self, model: str) -> Meter:
        if model not in self._meters:
            self._meters[model] = Meter(self.profile)
        return self._meters[model]


def _reset(form: ResetForm, seconds: float, now: float) -> str:
    if form == "rfc3339":
        return datetime.fromtimestamp(now + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return duration(seconds) if form == "duration" else str(round(seconds))
