"""The rules by which texts are read: each kind in versions, of which a job names one and keeps it, whatever a later release brings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from app.domain.instruments.instrument import InstrumentRef
from app.domain.instruments.refusal import RefusalRules
from app.domain.instruments.segmentation import Segmenter

_T = TypeVar("_T")


class UnknownVersionError(LookupError):
    """A version that this release does not have; the message names it and those that there are."""


class Versions(Generic[_T]):
    """The versions of one kind of rules.

    Args:
        kind: What they are, for messages.
        loaders: Makes each version, by name, in the order in which they came.
    """

    def __init__(self, kind: str, loaders: Mapping[str, Callable[[], _T]]) -> None:
        self._kind = kind
        self._loaders = loaders
        self._loaded: dict[str, _T] = {}
        self.names = tuple(loaders)

    def load(self, name: str) -> _T:
        """A version, made when first asked for.

        Raises:
            UnknownVersionError: If there is no such version.
        """
        if name not in self._loaded:
            if name not in self._loaders:
                raise UnknownVersionError(f"unknown {self._kind} {name!r}; known: {', '.join(self.names)}")
            self._loaded[name] = self._loaders[name]()
        return self._loaded[name]


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one job.

    Attributes:
        segmenter: Splits texts into sentences.
        refusals: Tells refusals from responses.
        addresses_judge: Whether a text addresses the judge.
        leave_out: Notes of :mod:`app.domain.judging.text_notes` whose sentences are not judged.
    """

    segmenter: Segmenter
    refusals: RefusalRules
    addresses_judge: Callable[[str], bool]
    leave_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RuleBook:
    """All versions that a release has; the fields are named as those of :class:`app.domain.instruments.instrument.InstrumentRef`."""

    segmenter: Versions[Segmenter]
    refusals: Versions[RefusalRules]
    injections: Versions[Callable[[str], bool]]

    @property
    def known(self) -> Mapping[str, tuple[str, ...]]:
        """The names of all versions, by kind; of each the last is what jobs get that name none."""
        return {kind: getattr(self, kind).names for kind in ("segmenter", "refusals", "injections")}

    @property
    def current(self) -> Mapping[str, str]:
        """What jobs get that name no version, by kind."""
        return {kind: names[-1] for kind, names in self.known.items()}

    def load(self, instrument: InstrumentRef) -> Rules:
        """The rules that a job has named.

        Raises:
            UnknownVersionError: If this release lacks one of them.
        """
        return Rules(
            self.segmenter.load(instrument.segmenter),
            self.refusals.load(instrument.refusals),
            self.injections.load(instrument.injections),
            instrument.leave_out,
        )
