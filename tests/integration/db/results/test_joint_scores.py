from sqlalchemy.ext.asyncio import AsyncEngine

from app.db.execution.result_rows import ResultWriter
from app.db.results.joint_scores import JointRow, joint_scores
from tests.integration.jobs import TENANT, claimed, new_job, response_row, verdict_row

SCORES = {0: (4, 5), 1: (4, 5), 2: (3, None), 3: (None, None)}
"""By unit: what the first and the second judge gave."""


async def test_units_with_the_same_scores_are_counted_together_and_others_of_the_tenant_not(
    engine: AsyncEngine,
) -> None:
    job = await new_job(engine)
    claim = await claimed(engine, job.id)
    other = await claimed(engine, (await new_job(engine)).id)
    rows = [
        verdict_row(claim, unit=unit)._replace(
            judge=judge, status="unparsed" if score is None else "scored", score=score
        )
        for unit, scores in SCORES.items()
        for judge, score in enumerate(scores)
    ]
    await ResultWriter(engine).write(
        {
            (claim.shard_id, claim.token): (response_row(claim), *rows),
            (other.shard_id, other.token): (response_row(other), verdict_row(other)),
        }
    )
    async with engine.connect() as connection:
        found = await joint_scores(connection, TENANT, job.id)
        assert await joint_scores(connection, "somebody else", job.id) == []
    assert sorted(found, key=lambda row: row.units) == [
        JointRow(0, 0, [[0, 3]], 1),  # type: ignore[list-item] # as the driver gives them
        JointRow(0, 0, [[0, 4], [1, 5]], 2),  # type: ignore[list-item]
    ]
