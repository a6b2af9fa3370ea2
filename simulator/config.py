"""What can be set from the command line, and changed while the simulator runs."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

from simulator.provider_profiles import provider_profile_names

_ALLOWED: Mapping[object, tuple[type, ...]] = {int: (int,), float: (int, float), str: (str,)}


@dataclass(frozen=True, slots=True)
class Config:
    """Settings of a running simulator.

    Attributes:
        seed: Decides all texts, errors and jitter.
        latency_ms: Mean time between a request and its reply, in milliseconds.
        jitter_ms: Each latency is uniform in latency_ms ± jitter_ms, never below 0.
        requests_per_minute: Rate limit of each model; 0 for none.
        burst: How many requests an idle model accepts at once; 0 for a whole minute's, as the real providers do.
        quota: Chat requests, of all models together, before the account's quota is used up; 0 for no quota. Counted
            from when it was set; those that a fault or a rate limit turns down count too.
        error_rate: Share of chat requests that get a 5xx reply, in [0, 1].
        length_factor: Multiplies the number of sentences of a response.
        position_bias: How likely a judge that is asked about several sentences scores the last of them one too high, in
            [0, 1]; from the first, which is free of it, it grows evenly.
        order_bias: How likely a judge that is asked about one sentence answers the option that stands before the right one, in
            [0, 1].
        batch_ms: Time that a batch takes, in milliseconds.
        batch_limit: Requests in batches of OpenAI's format that may wait at a time; 0 for no limit.
        batch_expired: Share of the requests in batches that expire, in [0, 1].
        openai_profile: The provider profile of requests in OpenAI's format whose path names none; empty for none.
        anthropic_profile: The same of requests in Anthropic's format.
    """

    seed: int = 0
    latency_ms: float = 0.0
    jitter_ms: float = 0.0
    requests_per_minute: int = 0
    burst: int = 0
    quota: int = 0
    error_rate: float = 0.0
    length_factor: float = 1.0
    position_bias: float = 0.0
    order_bias: float = 0.0
    batch_ms: float = 1000.0
    batch_limit: int = 0
    batch_expired: float = 0.0
    openai_profile: str = ""
    anthropic_profile: str = ""

    def __post_init__(self) -> None:
        amounts = ("latency_ms", "jitter_ms", "requests_per_minute", "burst", "quota", "length_factor")
        for name in (*amounts, "batch_ms", "batch_limit"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name} must be at least 0, not {getattr(self, name)}")
        for name in ("error_rate", "position_bias", "order_bias", "batch_expired"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be between 0 and 1, not {getattr(self, name)}")
        for name in ("openai_profile", "anthropic_profile"):
            profile = getattr(self, name)
            if profile and profile not in provider_profile_names():
                raise ValueError(
                    f"{name}: {profile} is no profile; there are {', '.join(provider_profile_names())}"
                )

    def changed(self, changes: object) -> "Config":
        """A copy with some settings changed.

        Raises:
            ValueError: A setting is unknown or out of range; the message names it.
            TypeError: A setting has the wrong type; the message names it.
        """
        if not isinstance(changes, Mapping):
            raise TypeError("expected an object of settings")
        known = {field.name: field.type for field in fields(self)}
        for name, value in changes.items():
            if name not in known:
                raise ValueError(f"{name} is not a setting; there are {', '.join(known)}")
            allowed = _ALLOWED[known[name]]
            if not isinstance(value, allowed) or isinstance(value, bool):
                raise TypeError(f"{name} must be of type {allowed[-1].__name__}, not {value!r}")
        return replace(self, **changes)

    def as_dict(self) -> dict[str, int | float | str]:
        """The settings as JSON members."""
        return asdict(self)
