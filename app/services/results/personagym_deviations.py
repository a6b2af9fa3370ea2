"""Every way in which a job departs from PersonaGym's protocol: its own, and no others."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from app.domain.instruments.persona import Persona
from app.domain.jobs.personagym_resolve import OWN_INSTRUCTION
from app.domain.jobs.specification import JobSpec
from app.domain.personagym.released import hash_of_names
from app.domain.personagym.specification import QUESTIONS, SAMPLING, GymSpec, with_sampling
from app.domain.personagym.task import GymTask
from app.domain.providers.model import Model
from app.domain.providers.parameters import Sent
from app.instruments.personagym_loader import PersonaGymInstrument, load_personagym
from app.instruments.published import released_texts
from app.services.providers.model_parameters import sent_of

PAPER_VERSION = "v1"
"""Of the instruments' data: what the papers print; what later versions add or change is this project's."""
PAPER_TASKS, PAPER_EVALUATORS = 5, 2
ALONE = "each response is graded in a call of its own, and its final score is read strictly."
BARE = "the system prompt and the text around the rubrics of the released code are not sent to judges."
WHOLE = "judges see whole exemplars, as the paper shows; the released code keeps their first lines and shows one character of them."


def gym_deviations(spec: JobSpec, gym: GymSpec) -> list[str]:
    """Sentences for people, each about this job."""
    judged = bool(spec.asked_judges)
    notes = [
        *([ALONE, BARE] if judged else []),
        *_environments(spec, gym),
        *(_rubrics(gym) if judged else []),
        *_criteria(spec, gym),
        *_instruction(gym),
        *_tasks(gym),
        *_questions(spec, gym),
        *(_exemplars(spec, gym) if judged else []),
    ]
    if len(spec.asked_judges) < len(spec.judges):
        notes.append("by which rubrics and exemplars imported grades were given is not known.")
    if len(spec.judges) != PAPER_EVALUATORS:
        notes.append(f"{len(spec.judges)} judges; the paper has {PAPER_EVALUATORS}.")
    reasoners = [gym.reasoner] if spec.prepared and _makes_questions(spec, gym) else []
    agents = [] if spec.provided else [with_sampling(model) for model in spec.models]
    notes += [note for model in (*reasoners, *agents) for note in _sampling(model)]
    if judged and any(task.atomic for task in gym.tasks):
        notes.append("responses are judged by sentence too, with this project's own prompt.")
    return [f"PersonaGym: {note}" for note in notes]


def why(sent: Sent, name: str) -> str:
    """Why a parameter was not sent, if it was asked for."""
    return next((f" ({dropped.reason})" for dropped in sent.dropped if dropped.name == name), "")


def _placed(spec: JobSpec, gym: GymSpec) -> Sequence[Persona]:
    """The personas for whom questions are made up, in environments."""
    return [] if spec.provided else [p for p in spec.personas if gym.needs_environments(p)]


def _environments(spec: JobSpec, gym: GymSpec) -> Iterator[str]:
    placed = _placed(spec, gym)
    given = [persona for persona in placed if persona.id in gym.environments]
    if len(given) < len(placed) and hash_of_names(gym.pool) != released_texts().environments:
        whose = "the job's own" if gym.own_pool else "this project's; the paper does not print its own"
        yield f"the pool of environments is {whose}."
    if given:
        yield f"the environments of {len(given)} of {len(spec.personas)} personas were given, not selected."


def _rubrics(gym: GymSpec) -> Iterator[str]:
    """Which rubrics are neither the paper's nor the released ones."""
    base = _instrument(gym)
    ours, own = [], []
    for task in (each.task for each in gym.tasks):
        built_in = base.tasks.get(task.id)
        if task.rubric:
            if _sha256(task.rubric) != released_texts().rubrics.get(task.id):
                own.append(task.title)
        elif (
            built_in is None
            or gym.prompts.rubric != base.prompts.rubric
            or (task.title, task.description, task.guidelines)
            != (built_in.title, built_in.description, built_in.guidelines)
        ):
            own.append(task.title)
        elif "guidelines" not in task.from_paper:
            ours.append(task.title)
    if ours:
        yield f"the paper does not print the rubrics of {', '.join(ours)}; ours are used."
    if own:
        yield f"the rubrics of {', '.join(own)} are the job's own."


def _criteria(spec: JobSpec, gym: GymSpec) -> Iterator[str]:
    """Whose words told the reasoner what questions must be like, where it made up any."""
    ours, own = [], []
    base = _instrument(gym).tasks
    for each in gym.tasks:
        task = each.task
        if spec.provided or all(gym.is_given(persona, each) for persona in spec.personas):
            continue
        if _sha256(task.question_criteria) == released_texts().question_criteria.get(task.id):
            continue
        if task.id not in base or task.question_criteria != base[task.id].question_criteria:
            own.append(task.title)
        elif "question_criteria" not in task.from_paper:
            ours.append(task.title)
    if ours:
        yield f"the question criteria of {', '.join(ours)} are ours, for the same reason."
    if own:
        yield f"the question criteria of {', '.join(own)} are the job's own."


def _instruction(gym: GymSpec) -> Iterator[str]:
    if gym.template != gym.prompts.instructions[gym.prompts.default_instruction]:
        named = "the job's own" if gym.instruction == OWN_INSTRUCTION else repr(gym.instruction)
        yield f"the persona instruction is {named}, not the paper's appendix's."


def _tasks(gym: GymSpec) -> Iterator[str]:
    of_paper, base = load_personagym(PAPER_VERSION).tasks, _instrument(gym).tasks
    lacking = [each.id for each in gym.tasks if _differs(each.task, of_paper, base)]
    if lacking:
        yield f"The prompts of {', '.join(lacking)} are not the paper's."
    if len(gym.tasks) != PAPER_TASKS:
        yield f"{len(gym.tasks)} tasks; the paper has {PAPER_TASKS}."


def _differs(task: GymTask, of_paper: Mapping[str, GymTask], base: Mapping[str, GymTask]) -> bool:
    """Whether the paper lacks a task, or a later version of the instrument has it in other words."""
    return task.id not in of_paper or base.get(task.id) != of_paper[task.id]


def _questions(spec: JobSpec, gym: GymSpec) -> Iterator[str]:
    if spec.source is not None:
        yield f"questions and answers are those of job {spec.source.job}, whose manifest says how they were made."
        yield from spec.source.deviations
        return
    if spec.provided:
        yield "questions and answers were not generated by this service; how they were made is not known."
        return
    made = [t for t in gym.tasks if not all(gym.is_given(persona, t) for persona in spec.personas)]
    if any(task.questions != QUESTIONS or task.per_environment for task in made):
        yield f"not {QUESTIONS} generated questions for each persona and task."
    given = gym.given_pairs(spec.personas) - gym.released_questions
    if given:
        pairs = len(spec.personas) * len(gym.tasks)
        yield f"the questions of {given:,} of {pairs:,} pairs of persona and task were given, and are not the released ones."


def _exemplars(spec: JobSpec, gym: GymSpec) -> Iterator[str]:
    if _asks_the_reasoner(spec, gym):
        cold = sent_of(gym.reasoner).values.get("temperature") == 0
        how = "" if cold else ", at temperature 0"
        yield f"exemplars are asked for one question a call; the released code asks for five questions' at once{how}."
    yield WHOLE
    asks = gym.prompts.score_examples
    if asks != _instrument(gym).prompts.score_examples and _sha256(asks) != released_texts().score_examples:
        yield "the prompt that asks for exemplars is the job's own."
    if gym.given_exemplars:
        yield f"exemplars were given, not made by the reasoner; questions with such exemplars: {gym.given_exemplars:,}."


def _makes_questions(spec: JobSpec, gym: GymSpec) -> bool:
    """Whether the reasoner writes any: exemplars, the other texts that it writes, are the released code's at temperature 0."""
    return gym.given_pairs(spec.personas) < len(spec.personas) * len(gym.tasks)


def _asks_the_reasoner(spec: JobSpec, gym: GymSpec) -> bool:
    """Whether any of its texts are for this job, or were made for an earlier one in the same way."""
    given = sum(sum(of_task.values()) for of_task in gym.questions.values())
    return _makes_questions(spec, gym) or given > gym.given_exemplars


def _sampling(model: Model) -> Iterator[str]:
    """How a model is sampled otherwise than in PersonaGym's paper."""
    sent = sent_of(model)
    for name in ("temperature", "top_p"):
        value = sent.values.get(name)
        if value != SAMPLING:
            ran = f"the provider's default {name}" if value is None else f"{name} {value}"
            yield f"{model.label} ran with {ran}{why(sent, name)}; the paper's with {SAMPLING}."
        elif name in sent.ignored:
            yield f"{model.label} ignores the {name} that it is sent; the paper's ran with {SAMPLING}."


def _instrument(gym: GymSpec) -> PersonaGymInstrument:
    """The words that the job would have had without a rubric set."""
    return load_personagym(gym.instrument.version)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
