"""Reads which environments a job's personas were placed in."""

from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.jobs import preparations
from app.db.jobs.jobs import JobRow
from app.domain.personagym.environments import Environments, EnvironmentsOfPersona, environments_of
from app.services.job_context import JobContext


async def read_environments(engine: AsyncEngine, job: JobRow, context: JobContext) -> Environments:
    """A job's, as far as they are chosen; none for a job without PersonaGym tasks."""
    async with engine.connect() as connection:
        steps = await preparations.environments_of_job(connection, job.tenant, job.id)
    gym, personas = context.spec.gym, context.spec.personas
    return environments_of(
        job.id,
        0 if gym is None else len(gym.pool),
        [
            EnvironmentsOfPersona(
                persona=personas[step.persona].id, environments=list(step.content), given=step.ask == 0
            )
            for step in steps
        ],
    )
