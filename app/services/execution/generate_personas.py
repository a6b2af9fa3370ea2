"""Generates personas: asks the reasoner until enough distinct ones exist or nothing new comes.

Every ask leaves a durable row with all personas that there are so far, so a worker that dies repeats at most the ask
that was in flight.
"""

import asyncio
from collections import Counter
from dataclasses import replace

from app.db.execution.shards import PreparationClaim
from app.db.jobs import preparations
from app.db.jobs.preparations import StoredStep
from app.domain.judging.hardening import MAX_REPLY_CHARACTERS
from app.domain.personagym.generation import (
    MOST_FRUITLESS,
    PersonaGeneration,
    fruitless,
    portion,
    read_new_personas,
)
from app.domain.personagym.prompts import persona_generation_prompt
from app.domain.providers.model import ChatReply, Stage
from app.services.execution.call_rows import CallKey
from app.services.execution.prepare_persona import KEPT_CHARACTERS, preparation_row
from app.services.execution.retries import CallFailedError
from app.services.execution.shard_work import REFUSING, ShardDependencies
from app.services.execution.stop_signal import StopSignal
from app.services.sets.persona_sets import made_by


class MakingPersonas:
    """The work of one claim on a job that makes up personas."""

    def __init__(
        self,
        deps: ShardDependencies,
        claim: PreparationClaim,
        stop: StopSignal,
        generation: PersonaGeneration,
    ) -> None:
        self.deps = deps
        self.claim = claim
        self.stop = stop
        self.wanted = generation.count
        self.generation = generation
        self.sizes: list[int] = []

    async def run(self) -> None:
        """Asks for everything that is missing and waits until it is durable."""
        async with self.deps.engine.connect() as connection:
            step = await made_by(connection, self.claim.tenant, self.claim.job_id)
            self.sizes = await preparations.growth(connection, self.claim.tenant, self.claim.job_id)
        if step is None:
            step = StoredStep(self.claim.persona, Stage.PERSONAS, "", 0, 0, "incomplete", (), 0, None)
        while step.status == "incomplete":
            step = replace(step, ask=step.ask + 1)
            try:
                step = await self._advanced(step, await self._ask(step))
            except CallFailedError as error:
                step = replace(step, status="failed", error=str(error), reply=None)
            await self.deps.writer.add(self.claim, preparation_row(self.claim, step)).durable(self.claim)

    async def _ask(self, step: StoredStep) -> ChatReply:
        prompts, missing = self.generation.prompts, self.wanted - len(step.content)
        prompt = persona_generation_prompt(prompts, portion(missing), step.content)
        key = CallKey(Stage.PERSONAS, ask=step.ask)
        return await self.deps.caller.call(
            self.generation.reasoner, None, prompt, key=key, claim=self.claim, stop=self.stop
        )

    async def _advanced(self, step: StoredStep, reply: ChatReply) -> StoredStep:
        """The step after one more reply."""
        cut, missing = reply.finish_reason.cuts_off, self.wanted - len(step.content)
        # In a thread: comparing with a thousand others takes longer than leases and other jobs' calls can wait.
        text = reply.text if len(reply.text) <= MAX_REPLY_CHARACTERS else ""
        new = await asyncio.to_thread(read_new_personas, text, missing, step.content, cut=cut)
        content = (*step.content, *new.accepted)
        self.sizes.append(len(content))
        status, error = "incomplete", f"{len(content)} of {self.wanted} personas"
        if reply.finish_reason in REFUSING:
            error += "; the reasoner refused"
        elif not new.readable:
            error += "; the reply is no list"
        in_vain = fruitless(self.sizes)
        if in_vain >= MOST_FRUITLESS * (1 + self.claim.retries):  # a retry allows as many again
            status, error = "failed", f"{error}; the last {in_vain} asks brought nothing new"
        dropped = Counter(step.dropped_by)
        dropped.update(new.dropped)
        complete = len(content) == self.wanted
        return replace(
            step,
            status="ready" if complete else status,
            content=content,
            dropped=dropped.total(),
            dropped_by=dict(dropped),
            error=None if complete else error,
            reply=None if new.accepted else reply.text[:KEPT_CHARACTERS],
        )
