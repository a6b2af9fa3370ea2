"""From a request for personas to its specification."""

from app.domain.errors import FieldError, InvalidJobError
from app.domain.jobs.catalog import Catalog
from app.domain.jobs.request import GenerateIn, as_model
from app.domain.jobs.resolve import Resolution, look_up_model
from app.domain.jobs.specification import JobSpec
from app.domain.personagym.generation import PersonaGeneration
from app.domain.personagym.specification import with_sampling
from app.domain.providers.model import Takes
from app.domain.providers.parameters import parameter_problems


def resolve_generation(wanted: GenerateIn, catalog: Catalog) -> Resolution:
    """Looks up who shall make up personas.

    Raises:
        InvalidJobError: If there is no such model.
    """
    reasoner, problem = look_up_model(as_model(wanted.reasoner), catalog)
    if problem is not None:
        raise InvalidJobError([FieldError("/generate/reasoner", problem)])
    wrong = parameter_problems(reasoner.parameters, reasoner.takes or Takes())
    errors = [FieldError(f"/generate/reasoner/{name}", problem) for name, problem in wrong]
    if reasoner.profile is not None:
        errors.append(FieldError("/generate/reasoner/profile", "is only for judges"))
    if errors:
        raise InvalidJobError(errors)
    spec = JobSpec(
        personas=(),
        dimensions=(),
        tasks=(),
        models=(),
        judges=(),
        instructions=(),
        iterations=1,
        seed=0,
        instrument=catalog.gym.instrument,
        generation=PersonaGeneration(wanted.count, with_sampling(reasoner), catalog.gym.prompts),
    )
    return Resolution(spec, (), ())
