"""Which environments a job's personas were placed in (PersonaGym paper, Figure 5)."""

from collections import Counter
from collections.abc import Sequence

from pydantic import Field

from app.domain.contract import Answer


class EnvironmentsOfPersona(Answer):
    """The environments of one persona."""

    persona: str
    environments: list[str] = Field(description="Untrusted texts.")
    given: bool = Field(description="Whether they came with the job; else the reasoner chose them.")


class EnvironmentUse(Answer):
    """How often an environment was chosen."""

    environment: str = Field(description="Untrusted text.")
    personas: int = Field(description="Personas placed in it.")


class Environments(Answer):
    """The environments of a job's personas."""

    job: str
    pool: int = Field(description="Environments that the reasoner could choose from.")
    personas: list[EnvironmentsOfPersona] = Field(description="Those that have any.")
    environments: list[EnvironmentUse] = Field(description="The most chosen first.")

    @property
    def used(self) -> Sequence[tuple[str, int]]:
        """Each environment with its number of personas."""
        return [(each.environment, each.personas) for each in self.environments]


def environments_of(job: str, pool: int, personas: Sequence[EnvironmentsOfPersona]) -> Environments:
    """What the personas' environments are together."""
    counts = Counter(name for each in personas for name in dict.fromkeys(each.environments))
    return Environments(
        job=job,
        pool=pool,
        personas=list(personas),
        environments=[
            EnvironmentUse(environment=name, personas=count)
            for name, count in sorted(counts.items(), key=lambda found: (-found[1], found[0]))
        ],
    )
