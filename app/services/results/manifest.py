"""The manifest: everything needed to reproduce a result, and its deviations from the papers."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from platform import python_version
from typing import Any, NamedTuple

from app.db.jobs.jobs import JobRow
from app.db.jobs.preparations import NO_EXEMPLARS, ExemplarsUsed
from app.domain.instruments.prompts import drops_article
from app.domain.instruments.segmentation import FIRST_SEGMENTER
from app.domain.instruments.task import AtomicTask
from app.domain.jobs.execution import Execution
from app.domain.jobs.plan import Cell, atomic
from app.domain.jobs.specification import JobSpec
from app.domain.judging import thoughts
from app.domain.judging.grouping import Grouping
from app.domain.judging.hardening import Hardening
from app.domain.judging.refusal_check import RefusalCheck
from app.domain.judging.repair import Repair
from app.domain.personagym.diversity import SAME_ATTRIBUTES, SAME_WORDING
from app.domain.personagym.generation import MOST_FRUITLESS, PersonaGeneration
from app.domain.personagym.prompts import rubric_outline
from app.domain.personagym.specification import GymSpec, with_sampling
from app.domain.personagym.task import GymTask
from app.domain.providers.model import Model
from app.domain.providers.reuse import Reuse, ReuseScope
from app.domain.results.grouping_check import JudgingCheck
from app.domain.results.repairs import JudgeRepairs
from app.instruments.loader import load_atomic
from app.services.job_context import JobContext
from app.services.providers.model_parameters import extra_fields_of, parameters_of, sent_of, table_of
from app.services.results.personagym_deviations import PAPER_VERSION, gym_deviations, why
from persona_assay.version import VERSION

PAPER_INSTRUCTIONS, PAPER_ITERATIONS = 6, 5
PAPER_SAMPLING = 1.0
PACKAGES = ("nltk", "numpy", "scipy", "openai", "anthropic", "genai-prices")


GENERATION_DEVIATIONS = [
    "PersonaGym: the paper does not print the prompt that generated its personas; ours is used.",
    "PersonaGym: personas are kept only if they are distinct by this project's measured rule.",
]

RELEASE = VERSION
"""This one, as results name it."""


class LeftToRules(NamedTuple):
    """Refusal checks without an answer: those texts are what the rules say.

    Attributes:
        unread: Replies that answer neither yes nor no.
        failed: Calls that failed, or whose reply was empty or a refusal.
    """

    unread: int = 0
    failed: int = 0


NO_CHECK_LEFT = LeftToRules()


def manifest(
    job: JobRow,
    context: JobContext,
    snapshots: list[Any],
    question_set: str | None = None,
    check: JudgingCheck | None = None,
    *,
    batches: Sequence[Any] = (),
    reused_snapshots: Sequence[Any] = (),
    exemplars: ExemplarsUsed = NO_EXEMPLARS,
    late: Sequence[str] = (),
    repairs: Sequence[JudgeRepairs] = (),
    left_to_rules: LeftToRules = NO_CHECK_LEFT,
) -> dict[str, Any]:
    """The manifest of a job's results.

    Args:
        job: The job.
        context: Its specification and cells.
        snapshots: The model snapshots that providers reported.
        question_set: The set as which the job's PersonaGym questions are kept.
        check: How far verdicts on several sentences a call agree with those on one, where the job groups them.
        reused_snapshots: The same of replies that were used again.
        exemplars: What PersonaGym's judges graded by.
        batches: The batches in which calls were made, by their providers' ids.
        late: Sentences on models whose long texts are missing because calls timed out.
        repairs: Counts of what judges were asked for once more.
        left_to_rules: Counts of refusal checks without an answer.
    """
    spec = context.spec
    return {
        "protocol": "paper" if spec.hardening is None else "hardened",
        "versions": dict(_versions()),
        "instrument": {
            "version": spec.instrument.version,
            "sha256": spec.instrument.content_hash,
            "segmenter": spec.instrument.segmenter,
            "refusals": spec.instrument.refusals,
            "injections": spec.instrument.injections,
            **({"leave_out": list(spec.instrument.leave_out)} if spec.instrument.leave_out else {}),
            "replies": job.reader or spec.instrument.replies,
            **({} if job.reader is None else {"replies_first": spec.instrument.replies}),
        },
        "model_table": table_of(spec),
        "extra_fields": extra_fields_of(spec),
        "models": [_model(model) for model in spec.models],
        "judges": [_model(judge) for judge in spec.judges],
        "snapshots": snapshots,
        "instructions": list(spec.instructions),
        "iterations": spec.iterations,
        "seed": spec.seed,
        "existing_texts": spec.provided,
        **({} if spec.given_units is None else {"given_units": spec.given_units}),
        "reuse": _reuse(spec.reuse, reused_snapshots),
        "execution": spec.execution.value,
        **({} if spec.execution is Execution.DIRECT else {"batches": list(batches)}),
        "simulated": job.simulated,
        "thoughts": thoughts.VERSION,
        **({} if spec.hardening is None else {"hardening": _hardening(spec.hardening)}),
        **({} if spec.grouping is None else {"judging": _judging(spec.grouping, check)}),
        **({} if spec.repair is None else {"repair": _repair(spec.repair, repairs)}),
        **({} if spec.refusal_check is None else {"refusal_check": _refusal_check(spec, spec.refusal_check)}),
        **({} if spec.reply == "text" else {"reply": spec.reply}),
        **({} if not spec.profiles else {"profiles": _profiles(spec)}),
        **({"control": True} if spec.control else {}),
        **({"opposite": True} if spec.opposite else {}),
        **({} if "rubrics" not in job.request else {"rubric_set": job.request["rubrics"]}),
        **(
            {}
            if spec.gym is None
            else {"personagym": _gym(spec.gym, spec, question_set) | _exemplars(spec.gym, exemplars)}
        ),
        **({} if spec.generation is None else {"persona_generation": _generation(spec.generation)}),
        "deviations": [
            *deviations(spec, context.cells),
            *_repair_counts(repairs),
            *_left_to_rules(left_to_rules),
            *late,
        ],
    }


@cache  # every lookup reads files
def _versions() -> dict[str, str]:
    own = {"python": python_version(), "persona-assay": VERSION}
    return own | {name: version(name) for name in PACKAGES}


def _hardening(hardening: Hardening) -> dict[str, Any]:
    return {
        "protocol": hardening.protocol,
        "instrument": {"version": hardening.version, "sha256": hardening.content_hash},
    }


def _asked_by(prompts: Repair | RefusalCheck) -> dict[str, Any]:
    return {"instrument": {"version": prompts.version, "sha256": prompts.content_hash}}


def _refusal_check(spec: JobSpec, check: RefusalCheck) -> dict[str, Any]:
    return {**_asked_by(check), "texts": "all" if spec.checks_every_text else "unsure"}


def _repair(repair: Repair, counts: Sequence[JudgeRepairs]) -> dict[str, Any]:
    return {**_asked_by(repair), "judges": [each.model_dump() for each in counts]}


def _judging(grouping: Grouping, check: JudgingCheck | None) -> dict[str, Any]:
    return {
        "sentences_per_call": grouping.sentences,
        "instrument": {"version": grouping.words.version, "sha256": grouping.words.content_hash},
        "check": None if check is None else check.model_dump(exclude_unset=True),
    }


def _profiles(spec: JobSpec) -> dict[str, Any]:
    return {
        profile.id: {"version": profile.version, "sha256": profile.content_hash}
        for profile in spec.profiles.values()
    }


def _reuse(reuse: Reuse, snapshots: Sequence[Any]) -> dict[str, Any]:
    across_jobs = ReuseScope.ACROSS_JOBS in {reuse.judging, reuse.generation}
    return {
        "judging": reuse.judging.value,
        "generation": reuse.generation.value,
        "max_age_days": reuse.max_age_days if across_jobs else None,
        "snapshots": list(snapshots),
    }


def _gym(gym: GymSpec, spec: JobSpec, question_set: str | None) -> dict[str, Any]:
    told = {
        "instrument": {"version": gym.instrument.version, "sha256": gym.instrument.content_hash},
        "instruction": gym.instruction,
        "reasoner": _model(gym.reasoner),
        "persona_agents": [_model(with_sampling(model)) for model in spec.models],
        "question_set": question_set,
        "given_questions": {
            "pairs": gym.given_pairs(spec.personas),
            "of": len(spec.personas) * len(gym.tasks),
        },
        "environment_pool": len(gym.pool),
        "own_environment_pool": gym.own_pool,
        "tasks": [
            {
                "task": task.id,
                "questions": task.questions,
                "questions_per_environment": task.per_environment,
                "runs": task.runs,
                "atomic": task.atomic,
            }
            for task in gym.tasks
        ],
    }
    if spec.provided:  # nobody was asked
        told = {name: value for name, value in told.items() if name not in _OF_ASKING}
        told["tasks"] = [{"task": task.id, "atomic": task.atomic} for task in gym.tasks]
    return told


_OF_ASKING = frozenset({"instruction", "persona_agents", "environment_pool", "own_environment_pool"})


def _exemplars(gym: GymSpec, used: ExemplarsUsed) -> dict[str, Any]:
    """By what the job's answers were graded: rubrics and exemplars."""
    return {
        "rubrics": {
            task.id: hashlib.sha256(rubric_outline(gym.prompts, task.task).encode()).hexdigest()
            for task in gym.tasks
        },
        "exemplars": {
            "made": used.asked,
            "reused": used.kept - gym.given_exemplars,
            "given": gym.given_exemplars,
            "sha256": used.sha256,
        },
    }


def _generation(generation: PersonaGeneration) -> dict[str, Any]:
    return {
        "count": generation.count,
        "reasoner": _model(generation.reasoner),
        "distinct_below": {"attributes": SAME_ATTRIBUTES, "wording": SAME_WORDING},
        "asks_without_a_new_one": MOST_FRUITLESS,
    }


def _model(model: Model) -> dict[str, Any]:
    parameters = model.parameters
    return {
        "label": model.label,
        "connection": model.connection or None,
        "name": model.name,
        "simulated": model.simulated,
        "parameters": {
            "temperature": parameters.temperature,
            "top_p": parameters.top_p,
            "max_tokens": parameters.max_tokens,
            "seed": parameters.seed,
            "stop": list(parameters.stop),
            "extra": dict(parameters.extra),
        },
        "system": model.system,
        **({} if model.takes is None else parameters_of(model).model_dump()),
        **({} if model.profile is None else {"profile": model.profile}),
        **({} if model.imported is None else {"imported": asdict(model.imported)}),
    }


def deviations(spec: JobSpec, cells: tuple[Cell, ...]) -> list[str]:
    """Every way in which a job departs from the papers' protocols, as sentences for people."""
    if spec.generation is not None:
        return GENERATION_DEVIATIONS
    of_gym = [] if spec.gym is None else gym_deviations(spec, spec.gym)
    if spec.gym is not None and not spec.tasks:
        return [*of_gym, *_own_deviations(spec)]
    return [*_atomic_deviations(spec, cells), *_own_deviations(spec), *of_gym]


def _own_deviations(spec: JobSpec) -> list[str]:
    return [
        *_uneven_deviations(spec),
        *_system_deviations(spec),
        *_judge_deviations(spec),
        *_hardening_deviations(spec),
        *_grouping_deviations(spec),
        *_leaving_out(spec),
        *_repair_deviations(spec),
        *_reply_deviations(spec),
        *_refusal_check_deviations(spec),
        *_reuse_deviations(spec.reuse),
    ]


def _system_deviations(spec: JobSpec) -> list[str]:
    """Models that get their system prompt in the user's message."""
    called = [*([] if spec.provided else spec.models), *(spec.judges[n] for n in spec.asked_judges)]
    return [
        f"{model.label} was sent the system prompt at the head of the user's message; "
        "the papers send a system message."
        for model in called
        if model.system == "in_user_turn"
    ]


def _uneven_deviations(spec: JobSpec) -> list[str]:
    if not spec.uneven_runs:
        return []
    lacking = (
        f"Runs that lack an item or question that another run of the same cell has: {spec.uneven_runs:,}."
    )
    return [f"{lacking} What compares runs compares different ones there."]


def _hardening_deviations(spec: JobSpec) -> list[str]:
    if spec.hardening is None:
        return []
    told = "Judges were told by a system prompt of our own what of their prompts is the judged text, which a key word"
    return [
        f"{told} encloses, and to begin their replies with that word; the papers' prompts have the text as it is."
    ]


def _judge_deviations(spec: JobSpec) -> list[str]:
    found = []
    for judge in spec.judges:
        if judge.imported is not None:
            dated = "" if judge.imported.date is None else f" of {judge.imported.date}"
            found.append(f"Verdicts of {judge.label} were imported: {judge.imported.source}{dated}.")
            continue
        sent = sent_of(judge)
        temperature = sent.values.get("temperature")
        if "temperature" in sent.ignored:
            found.append(
                f"Judge {judge.label} ignores the temperature that it is sent; the paper's ran at 0."
            )
        elif temperature != 0:
            ran = (
                "the provider's default temperature" if temperature is None else f"temperature {temperature}"
            )
            found.append(f"Judge {judge.label} ran at {ran}{why(sent, 'temperature')}; the paper's at 0.")
    return found


def _grouping_deviations(spec: JobSpec) -> list[str]:
    if spec.grouping is None:
        return []
    several = (
        f"Judges were asked about up to {spec.grouping.sentences} sentences in one call, with our own prompt;"
    )
    return [f"{several} the paper's are asked about one. judging_check says how far the two ways agree."]


def _repair_deviations(spec: JobSpec) -> list[str]:
    if spec.repair is None:
        return []
    once_more = "A judge whose reply could not be read was asked once more for the option's number"
    return [f"{once_more}, with our own prompt; the papers ask once."]


def _repair_counts(repairs: Sequence[JudgeRepairs]) -> Iterator[str]:
    for each in repairs:
        if each.unread:
            asked = f"Judge {each.judge} was asked once more for {each.unread:,} verdicts and grades"
            failed = f" ({each.failed:,} of them because the follow-up failed)" if each.failed else ""
            yield f"{asked}: {each.repaired:,} repaired, {each.unparsed:,} still unparsed{failed}."


def _reply_deviations(spec: JobSpec) -> Iterator[str]:
    if spec.reply != "text":
        form = (
            "one of the options' numbers"
            if spec.reply == "choice"
            else "a JSON object with the numbers of options"
        )
        yield f"Judges' servers constrained their replies to {form}; the papers' judges write freely."
    for judge in spec.judges:
        if judge.profile is not None:
            yield (
                f"Judge {judge.label} was asked in the form of the profile {judge.profile}, not with the papers' prompts."
                " It scores from 1 to 5 and cannot answer that a sentence does not show the trait, so coverage says"
                " nothing about that."
            )


def _leaving_out(spec: JobSpec) -> Iterator[str]:
    kinds = {"cut_off": "cut-off last sentences", "repeated_sentences": "repeated sentences"}
    if spec.instrument.leave_out:
        left = " and ".join(kinds[note] for note in spec.instrument.leave_out)
        yield f"Judges were not asked about {left}; the paper's judge all sentences."


def _refusal_check_deviations(spec: JobSpec) -> list[str]:
    if spec.refusal_check is None:
        return []
    judge = spec.judges[spec.asked_judges[0]].label
    asked = (
        f"{judge} was asked about every text that the rules did not call a refusal"
        if spec.checks_every_text
        else f"Where the rules were unsure whether a text is a refusal, {judge} was asked"
    )
    return [f"{asked}, with our own prompt; refusal_check of the responses' counts says how often."]


def _left_to_rules(checks: LeftToRules) -> Iterator[str]:
    if any(checks):
        left = f"{checks.unread:,} replies had neither yes nor no, {checks.failed:,} failed"
        yield f"Refusal checks that left the decision to the rules: {left}."


def _reuse_deviations(reuse: Reuse) -> Iterator[str]:
    if reuse.judging is not ReuseScope.OFF:
        yield "Judges at temperature 0 were asked once for what is asked in the same words; the reply counts for all."
    for stage, scope in (("Judges' replies", reuse.judging), ("Texts", reuse.generation)):
        if scope is ReuseScope.ACROSS_JOBS:
            yield f"{stage} may come from earlier jobs, up to {reuse.max_age_days} days before."


def _splitting(spec: JobSpec) -> str:
    if spec.given_units == "responses":
        return "Verdicts are on whole responses; each response counts as one sentence."
    segmenter = spec.instrument.segmenter
    how = "NLTK's Punkt with our own parameters" if segmenter == FIRST_SEGMENTER else segmenter
    if spec.given_units == "sentences":
        return f"Sentences are as they were given with texts or verdicts, otherwise split by {how}."
    return f"Sentences are split by {how}; the paper's are those of NLTK's English model."


def _own_prompts(
    tasks: Iterable[AtomicTask | GymTask], of_paper: Mapping[str, AtomicTask | GymTask]
) -> list[str]:
    """What is said of tasks that the paper lacks or has in other words."""
    own = [task.id for task in tasks if task != of_paper.get(task.id)]
    return [f"The prompts of {', '.join(own)} are not the paper's."] if own else []


def _atomic_deviations(spec: JobSpec, cells: tuple[Cell, ...]) -> list[str]:
    strictly = (
        "Judges' replies are read strictly; the paper's released code takes the first digit that it finds."
    )
    found = [
        *([strictly] if spec.asked_judges else []),
        _splitting(spec),
        "Refusals are recognised by anchored phrases and by the provider's own signal, not by key words anywhere.",
    ]
    found += _own_prompts(spec.tasks, load_atomic(PAPER_VERSION).tasks)
    if spec.source is not None:
        found.append(f"The texts are those of job {spec.source.job}, whose manifest says how they were made.")
        found += [each[0].upper() + each[1:] for each in spec.source.deviations]
    elif spec.provided:
        found.append("The texts were not generated by this service; how they were prompted is not known.")
    else:
        if spec.iterations != PAPER_ITERATIONS:
            word = "iteration" if spec.iterations == 1 else "iterations"
            found.append(f"{spec.iterations} {word} of each instruction; the paper has {PAPER_ITERATIONS}.")
        own = len(set(spec.instructions) - set(load_atomic(PAPER_VERSION).instructions))
        if own:
            found.append(f"{own} persona instructions are not the paper's.")
        if len(spec.instructions) - own != PAPER_INSTRUCTIONS:
            used = len(spec.instructions) - own
            found.append(f"{used} of the paper's {PAPER_INSTRUCTIONS} persona instructions.")
        found += [note for model in spec.models for note in _sampling(model)]
        found += [
            f"{model.label} was sent the instruction and the task as one text; the paper does not say how it asked its base models."
            for model in spec.models
            if model.takes is not None and model.takes.format == "completions"
        ]
        if any(drops_article(instruction, p) for instruction in spec.instructions for p in spec.personas):
            found.append(
                '"You are a {persona}." loses its "a" before descriptions that bring their own article.'
            )
    if len(spec.judges) > 1:
        found.append(f"{len(spec.judges)} judges, each alone; their metrics are averaged. The paper has one.")
    if any(cell.persona.id not in PAPER_PERSONAS for cell in atomic(cells)):
        found.append("Personas beyond the paper's fifteen.")
    return found


def _sampling(model: Model) -> Iterator[str]:
    """How a model is sampled otherwise than in appendix A.3: temperature and top_p 1, everything else left alone."""
    parameters, sent = model.parameters, sent_of(model).values
    for name in ("temperature", "top_p"):
        value = sent.get(name)
        if value not in {None, PAPER_SAMPLING}:
            yield f"{model.label} ran with {name} {value}; the paper's models with {PAPER_SAMPLING:g}."
    if parameters.max_tokens is not None:
        yield f"{model.label} wrote at most {parameters.max_tokens} tokens."
    if parameters.seed is not None or parameters.stop or parameters.extra:
        yield f"{model.label} ran with parameters of its own: seed, stop sequences or further fields."


PAPER_PERSONAS = frozenset(
    f"{dimension}-{level}" for dimension in "OCEAN" for level in ("high", "neutral", "low")
)
