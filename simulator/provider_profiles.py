"""How real providers limit, refuse and queue: profiles that are data in `simulator/data/providers/`.

A file is one provider, with its source and date; a tier of it is a profile, `openai-mini-tier-1` for example. A file
without tiers is one profile. A request names its profile in its path, `/p/<profile>/v1/chat/completions`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from string import Template
from typing import Any, Literal

import yaml

from simulator.conversation import FaultName, ProviderError

Counted = Literal["requests", "tokens", "input_tokens", "output_tokens"]
ResetForm = Literal["duration", "rfc3339", "seconds"]

_DIRECTORY = Path(__file__).parent / "data" / "providers"


@dataclass(frozen=True, slots=True)
class Limit:
    """One rate limit, which holds for each model by itself.

    Attributes:
        counts: What it counts.
        amount: The most in a window.
        seconds: Length of the window; every window is kept, wherever it begins.
        name: What the provider calls it in an error.
        headers: Names of the headers that say `limit`, `remaining` and `reset`; a provider may send none of them.
        rounded: `remaining` is rounded to a multiple of this.
    """

    counts: Counted
    amount: int
    seconds: float = 60.0
    name: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    rounded: int = 1


@dataclass(frozen=True, slots=True)
class Server:
    """How many calls a provider computes at a time.

    Attributes:
        slots: Calls under way at a time; 0 for any number.
        queue: Calls that may wait for a slot, the others get a 503; None for any number.
        seconds: What one call takes in its slot.
        notices_hang_ups: Whether a call is given up when its client has left. Otherwise it is computed for nobody.
    """

    slots: int = 0
    queue: int | None = None
    seconds: float = 0.0
    notices_hang_ups: bool = False


@dataclass(frozen=True, slots=True)
class ErrorForm:
    """What an error looks like at one provider: its status, and a body with `$names` to fill in."""

    status: int
    body: object


@dataclass(frozen=True, slots=True)
class ProviderProfile:
    """One provider, at one tier.

    Attributes:
        name: How requests name it.
        source: Where this was read.
        date: When, as an ISO date.
        limits: Its rate limits; each holds by itself.
        charges_max_tokens: Whether a call counts with all the tokens that it may be answered with, not those it was.
        reset: How it writes when a limit is whole again.
        retry_after: Names of the headers of a 429 that say how long to wait.
        tightest: Names of headers that repeat the limit of tokens of which least is left.
        errors: Errors that it words in its own form; the others are worded as the wire format does.
        models: Real models' names, with the simulated model and its quirks that each stands for.
        server: How many calls it computes at a time.
    """

    name: str
    source: str
    date: str
    limits: tuple[Limit, ...] = ()
    charges_max_tokens: bool = False
    reset: ResetForm = "duration"
    retry_after: Sequence[str] = ()
    tightest: Mapping[str, str] = field(default_factory=dict)
    errors: Mapping[FaultName, ErrorForm] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    server: Server = Server()

    def error(self, fault: ProviderError) -> tuple[int, str] | None:
        """Status and JSON body of an error in the provider's own form, if it has one."""
        form = self.errors.get(fault.name)
        if form is None:
            return None
        values = {"message": fault.detail, "parameter": fault.parameter or "", **fault.values}
        return form.status, json.dumps(_filled(form.body, values))


def load_provider_profile(name: str) -> ProviderProfile:
    """A profile by its name.

    Raises:
        KeyError: There is none of that name.
    """
    return _profiles()[name]


def provider_profile_names() -> list[str]:
    """The names of all profiles."""
    return sorted(_profiles())


@cache
def _profiles() -> dict[str, ProviderProfile]:
    return {
        profile.name: profile
        for path in sorted(_DIRECTORY.glob("*.yaml"))
        for profile in _read(path.stem, yaml.safe_load(path.read_text("utf-8")))
    }


def _read(provider: str, data: Mapping[str, Any]) -> list[ProviderProfile]:
    content = dict(data)
    tiers = content.pop("tiers", {"": {}})
    limits, server = content.pop("limits", {}), content.pop("server", {})
    content["date"] = str(content["date"])
    content["errors"] = {name: ErrorForm(**form) for name, form in content.pop("errors", {}).items()}
    return [
        ProviderProfile(
            name=f"{provider}-{tier}" if tier else provider,
            limits=tuple(
                Limit(**{"counts": what, **limits[what], "amount": amount})
                for what, amount in own.get("limits", {}).items()
            ),
            server=Server(**{**server, **own.get("server", {})}),
            **content,
        )
        for tier, own in tiers.items()
    ]


def _filled(body: object, values: Mapping[str, str]) -> object:
    if isinstance(body, str):
        return Template(body).safe_substitute(values)
    if isinstance(body, dict):
        return {name: _filled(value, values) for name, value in body.items()}
    return [_filled(value, values) for value in body] if isinstance(body, list) else body
