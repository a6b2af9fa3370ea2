"""The dimensions and personas of a job, by what its request names or defines."""

from collections.abc import Iterable, Iterator, Mapping

from app.domain.errors import escape_pointer
from app.domain.instruments.dimension import Dimension, Scale
from app.domain.instruments.persona import MAX_PERSONAS, Persona, traits_of
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.problems import Problems
from app.domain.jobs.request import DimensionIn, JobIn, PersonaIn
from app.domain.suggestion import nearest


class PersonaResolver:
    """Looks up a request's dimensions and personas.

    Attributes:
        dimensions: Built-in ones and the request's own, by id.
        pointers: Where each persona stands in the request, by its id.
    """

    def __init__(self, request: JobIn, catalog: Catalog, problems: Problems) -> None:
        self._request, self._catalog, self._problems = request, catalog, problems
        self.dimensions = self._all_dimensions()
        self.pointers: dict[str, str] = {}

    def _all_dimensions(self) -> dict[str, Dimension]:
        found = dict(self._catalog.dimensions)
        for n, own in enumerate(self._request.dimensions):
            if own.id in found:
                kind = "built in" if own.id in self._catalog.dimensions else "defined twice"
                self._problems.fail(
                    f"/dimensions/{n}/id", f"dimension {own.id!r} is {kind}; choose another id"
                )
                continue
            if len(set(own.levels)) != len(own.levels):
                self._problems.fail(f"/dimensions/{n}/levels", "the levels must have different names")
                continue
            for level in (level for level in own.level_words if level not in own.levels):
                pointer = f"/dimensions/{n}/level_words/{escape_pointer(level)}"
                self._problems.fail(
                    pointer, f"{level!r} is none of the dimension's levels: {', '.join(own.levels)}"
                )
            try:
                found[own.id] = _dimension(own)
            except ValueError as error:
                self._problems.fail(f"/dimensions/{n}/scale", str(error))
        return found

    def personas(self, of_source: Iterable[Persona]) -> list[Persona]:
        """The personas that the request names, or those of stored texts if it names none; each in its place once."""
        found = [] if self._request.personas else [("/personas", persona) for persona in of_source]
        for n, given in enumerate(self._request.personas):
            pointer = f"/personas/{n}"
            if isinstance(given, PersonaIn):
                found.append((pointer, self._inline_persona(given, pointer)))
            elif given in self._catalog.kept.personas:
                kept = self._catalog.kept.personas[given]
                found += [(pointer, self._kept_persona(one, pointer)) for one in kept]
            elif given in self._catalog.persona_sets:
                found += [(pointer, self._catalog.personas[id_]) for id_ in self._catalog.persona_sets[given]]
            elif given in self._catalog.personas:
                found.append((pointer, self._catalog.personas[given]))
            else:
                known = (*self._catalog.personas, *self._catalog.persona_sets)
                meant = self._problems.suggestion(given, known) or "; GET /v1/personas lists them"
                self._problems.fail(pointer, f"unknown persona or persona set {given!r}{meant}")
        if len(found) > MAX_PERSONAS:
            self._problems.fail(
                "/personas", f"{len(found):,} personas, including those of the sets; at most {MAX_PERSONAS:,}"
            )
            self._problems.raise_if_any()
        return self._without_repeats(found)

    def _without_repeats(self, found: Iterable[tuple[str, Persona]]) -> list[Persona]:
        """Notes where each persona stands, and which places name again what an earlier one names; sets may share many."""
        personas: list[Persona] = []
        repeated: dict[tuple[str, str], list[str]] = {}
        for pointer, persona in found:
            first = self.pointers.setdefault(persona.id, pointer)
            if len(self.pointers) > len(personas):
                personas.append(persona)
            else:
                repeated.setdefault((first, pointer), []).append(persona.id)
        for (first, again), ids in repeated.items():
            others = f" (and {len(ids) - 1:,} more)" if len(ids) > 1 else ""
            self._problems.fail(
                again,
                f"persona {ids[0]!r} is given more than once, first by {first}{others};"
                " all personas of a job, including those of its sets, need different ids",
            )
        return personas

    def _inline_persona(self, given: PersonaIn, pointer: str) -> Persona:
        if given.id in self._catalog.personas or given.id in self._catalog.persona_sets:
            self._problems.fail(f"{pointer}/id", f"persona {given.id!r} is built in; choose another id")
        persona = Persona(given.id, given.description, traits_of(given.traits))
        for id_, problem in self._trait_problems(persona):
            self._problems.fail(f"{pointer}/traits/{escape_pointer(id_)}", problem)
        return persona

    def _trait_problems(self, persona: Persona) -> Iterator[tuple[str, str]]:
        """The dimensions of traits that are wrong, each with the reason."""
        for id_, level in ((trait.dimension, trait.level) for trait in persona.traits):
            dimension = self.dimensions.get(id_)
            if dimension is None:
                known = ", ".join(f"{own} ({each.display_name})" for own, each in self.dimensions.items())
                meant = _dimension_meant(id_, self.dimensions) if self._problems.are_few else ""
                yield id_, f"unknown dimension {id_!r}{meant or f'; known: {known}'}"
            elif level not in dimension.scale.levels:
                levels = ", ".join(map(dimension.level_in_words, dimension.scale.levels))
                meant = self._problems.suggestion(level, dimension.scale.levels) or f"; its levels: {levels}"
                yield id_, f"dimension {id_!r} has no level {level!r}{meant}"

    def _kept_persona(self, persona: Persona, pointer: str) -> Persona:
        """A persona of a kept set, which the job's body only names: all that is wrong is wrong with the set."""
        id_ = persona.id
        if self._catalog.personas.get(id_, persona) != persona or id_ in self._catalog.persona_sets:
            self._problems.fail(pointer, f"the set's persona {id_!r} has the id of a built-in persona")
        for _, problem in self._trait_problems(persona):
            self._problems.fail(pointer, f"the set's persona {id_!r}: {problem}")
        return persona


def _dimension_meant(id_: str, dimensions: Mapping[str, Dimension]) -> str:
    """As :func:`did_you_mean`, also for a dimension's name; with what it is called, as ``N`` is not ``neuroticism``."""
    ids = {name: own for own, each in dimensions.items() for name in (each.display_name, each.name, own)}
    close = nearest(id_, ids)
    if close is None:
        return ""
    return f"; did you mean {ids[close]!r} ({dimensions[ids[close]].display_name})?"


def _dimension(own: DimensionIn) -> Dimension:
    scale = Scale(own.scale.minimum, own.scale.maximum, tuple(own.levels), own.scale.not_applicable)
    words = tuple(own.level_words.get(level, "") for level in scale.levels) if own.level_words else ()
    questions = tuple(own.questions)
    return Dimension(
        own.id, own.name, scale, own.options, questions, own.essay_context, own.label or "", words
    )
