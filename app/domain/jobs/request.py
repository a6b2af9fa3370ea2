"""A job as a client asks for it: well-formed, but with names that nothing has looked up yet."""

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    field_validator,
    model_validator,
)
from pydantic.config import JsonDict

from app.domain.contract import Body, ChangeBody, Identifier, Line, Prose, Text, check_storable, in_parts
from app.domain.jobs.budget import Budget
from app.domain.jobs.qa_request import LONGEST_ANSWER, MOST_ANSWERS, QaIn
from app.domain.jobs.source_request import JobTextsIn, UploadTextsIn
from app.domain.jobs.verdicts_request import MOST_UNITS, GradesIn, ImportedJudgeIn, VerdictsIn
from app.domain.judging.grouping import CHECK_MINIMUM, CHECK_SHARE, MOST_SENTENCES
from app.domain.judging.text_notes import LeftOut
from app.domain.personagym.generation import MOST_PERSONAS
from app.domain.providers.model import MOST_SEED, MOST_TOKENS, ModelParameters, ReplyForm, SystemPlace
from app.domain.providers.reuse import NO_REUSE, Reuse, ReuseScope
from app.domain.results.coverage import MINIMUM_COVERAGE
from app.domain.results.gate import parse_threshold

MAX_RUN = 32_766
MAX_DEPTH = 16


def _plain(value: object, depth: int = 0) -> None:
    """Checks what is passed on as it is: Postgres and the provider must be able to take it."""
    if depth > MAX_DEPTH:
        raise ValueError(f"must not be nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, str):
        check_storable(value)
    elif isinstance(value, dict):
        for key, member in value.items():
            check_storable(key)
            _plain(member, depth + 1)
    elif isinstance(value, list):
        for member in value:
            _plain(member, depth + 1)


def _extra(value: dict[str, Any]) -> dict[str, Any]:
    _plain(value)
    return value


def _threshold(text: str) -> str:
    parse_threshold(text)
    return text


ThresholdText = Annotated[Text, Field(max_length=500), AfterValidator(_threshold)]


class PersonaIn(Body):
    """A persona defined in the job."""

    id: Identifier = Field(description="Unique in the job.", examples=["blunt"])
    description: Prose = Field(
        description="The words that replace `{persona}` in the instructions.", examples=["a blunt critic"]
    )
    traits: dict[Text, Text] = Field(
        default_factory=dict,
        max_length=50,
        description="Level by dimension. Atomic tasks measure each in a cell of its own.",
        examples=[{"A": "low"}],
    )


class ScaleIn(Body):
    """The scores of a dimension."""

    minimum: int = Field(1, ge=-1000, le=1000, description="Lowest score.")
    maximum: int = Field(5, ge=-1000, le=1000, description="Highest score.")
    not_applicable: int = Field(
        9,
        ge=-9999,
        le=9999,
        description="The option for a sentence that does not show the trait.",
    )

    @model_validator(mode="after")
    def _not_too_fine(self) -> "ScaleIn":
        if self.maximum - self.minimum > 100:  # noqa: PLR2004 - see the message
            raise ValueError("a scale may have at most 101 scores")
        return self


class DimensionIn(Body):
    """A dimension beyond the Big Five."""

    id: Identifier = Field(description="Used in traits and results.", examples=["politics"])
    name: Line = Field(
        description="The word in the questionnaire's scoring prompt.", examples=["conservatism"]
    )
    options: Prose = Field(
        description="The answer options as the judge reads them.",
        examples=[
            (
                "1) Very progressive. 2) Moderately progressive. 3) Neither. 4) Moderately conservative."
                " 5) Very conservative. 9) None of the above."
            )
        ],
    )
    scale: ScaleIn = Field(default_factory=ScaleIn)
    levels: list[Line] = Field(
        default=["low", "neutral", "high"],
        min_length=2,
        max_length=11,
        description="Names of the levels, equal parts of the scale, lowest first.",
        examples=[["progressive", "centrist", "conservative"]],
    )
    questions: Annotated[list[Prose], in_parts(100, 200)] = Field(
        default_factory=list,
        max_length=200,
        description="Interview questions; required by the questionnaire.",
    )
    essay_context: Prose | None = Field(None, description="The essay's scenario; required by the essay task.")
    label: Line | None = Field(
        None,
        description="Display name; default: `name`. In no prompt.",
        examples=["political attitude"],
    )
    level_words: dict[Line, Line] = Field(
        default_factory=dict,
        max_length=11,
        description="The meaning of each level, if its name does not tell. In no prompt.",
        examples=[{"low": "introverted", "high": "extraverted"}],
    )


ShortLine = Annotated[Text, Field(min_length=1, max_length=100, pattern=r"^[^\r\n]*$")]


class ModelIn(Body):
    """A model with its parameters. Omitted parameters are the papers' for judges and PersonaGym, otherwise the provider's defaults."""

    model: Line = Field(description="`connection/name`.", examples=["anthropic/claude-sonnet-5-5"])
    label: Line | None = Field(None, description="The name in results; default: `model`.")
    family: Line | None = Field(
        None,
        description="A model name that tells its family if its own name does not, as for an Azure deployment: "
        "parameters that the family refuses are not sent.",
        examples=["gpt-5.6-luna"],
    )
    temperature: float | None = Field(None, ge=0, le=2, description="`null`: not sent.")
    top_p: float | None = Field(None, gt=0, le=1, description="`null`: not sent.")
    max_tokens: int | None = Field(None, ge=1, le=MOST_TOKENS)
    seed: int | None = Field(
        None, ge=0, le=MOST_SEED, description="Run n of a cell is sent seed + n, so that runs differ."
    )
    stop: list[Annotated[Text, Field(min_length=1, max_length=300)]] = Field(
        default_factory=list, max_length=8
    )
    system: SystemPlace = Field(
        "message",
        description="Where the persona is sent: as the system message, or `in_user_turn`, at the head of the user's "
        "message, for models whose chat template or provider takes no system message.",
    )
    extra: Annotated[dict[str, Any], AfterValidator(_extra)] = Field(
        default_factory=dict,
        max_length=50,
        description="Further fields of the provider's request body that only affect sampling or reasoning, "
        "such as `top_k`, `reasoning_effort` or `thinking`; the operator can allow others. Any "
        "other field is a 422 that names it.",
        examples=[{"reasoning_effort": "none"}],
    )
    profile: Line | None = Field(
        None,
        description="For a judge model with a prompt form of its own: `prometheus-2`, `m-prometheus`, `selene` or "
        "`flow-judge`. It is asked in that form, and its native reply is read. It scores from 1 to 5 and cannot say "
        "that a sentence does not show the trait.",
        examples=["prometheus-2"],
    )
    attributes: dict[ShortLine, ShortLine] = Field(
        default_factory=dict,
        max_length=10,
        description="What is known of a model under test, such as its size: models with the same value are shown as a group.",
        examples=[{"tuning": "tuned", "parameters": "8B"}],
    )

    @field_validator("attributes")
    @classmethod
    def _beside_the_model(cls, attributes: dict[str, str]) -> dict[str, str]:
        if "model" in attributes:
            raise ValueError("must not have the name `model`: each model is a group of its own anyway")
        return attributes

    @property
    def parameters(self) -> ModelParameters:
        """How it is sampled; a temperature or top_p that was given as ``null`` is left to the provider."""
        return ModelParameters(
            temperature=self.temperature,
            top_p=self.top_p,
            max_tokens=self.max_tokens,
            seed=self.seed,
            stop=tuple(self.stop),
            extra=self.extra,
            unset=tuple(
                name
                for name in ("temperature", "top_p")
                if name in self.model_fields_set and getattr(self, name) is None
            ),
        )


class ResponseIn(Body):
    """A text that already exists."""

    persona: Identifier = Field(description="One of the job's personas.")
    task: str = Field(description="One of the job's tasks.", max_length=100)
    text: Annotated[Text, Field(max_length=LONGEST_ANSWER)] | None = Field(
        None,
        description="The response as written. Thoughts in tags at the beginning are separated and not judged. "
        "May be left out if only imported judges judge it.",
    )
    item: str | None = Field(
        None,
        max_length=200,
        description="The item it answers; required if a cell has several. Atomic tasks only.",
        examples=["E-3"],
    )
    question: Prose | None = Field(
        None,
        description="The question it answers, in its own words; required for PersonaGym's tasks, in place of `item`.",
        examples=["A storm comes up on the range. What do you do?"],
    )
    run: int | None = Field(
        None, ge=0, le=MAX_RUN, description="The repetition; default: in the given order."
    )
    instruction: int | None = Field(
        None,
        ge=0,
        le=999,
        description="Number of its persona instruction, from 0.",
    )
    model: Line = Field("provided", description="The model's name for the results.")
    conversation: Line | None = Field(
        None,
        description="Its conversation, if it is a turn of one. Turns depend on each other: cells with several of "
        "one conversation have no intervals and no RC_atom.",
        examples=["chat-17"],
    )
    units: Annotated[list[Prose], in_parts(100, MOST_UNITS)] = Field(
        default_factory=list,
        max_length=MOST_UNITS,
        description="Its sentences, if another segmentation is to be used than the service's.",
        examples=[["I love parties.", "Who doesn't?"]],
    )
    verdicts: list[VerdictsIn] = Field(
        default_factory=list, max_length=500, description="What imported judges said of it."
    )
    grades: GradesIn = Field(
        default_factory=dict,
        description="Of an answer to PersonaGym's question: what imported judges gave it, 1 to 5; `null` is missing.",
        examples=[{"gpt-4o-2024-05-13": 4}],
    )

    @classmethod
    def made(cls, **given: Any) -> "ResponseIn":
        """A response with fields that are known to be right.

        Its empty lists and objects stand here: made by their types, as pydantic does, they take longer than all the rest.
        """
        empty: dict[str, Any] = {"units": [], "verdicts": [], "grades": {}}
        return cls.model_construct(set(given), **empty | given)


def _kind_of_responses(value: object) -> str:
    if isinstance(value, list):
        return "list"
    if isinstance(value, UploadTextsIn) or (isinstance(value, dict) and "upload" in value):
        return "upload"
    of_job = "job" in value if isinstance(value, dict) else isinstance(value, JobTextsIn)
    return "source" if of_job else "files"


_PLACES_OF_RESPONSES = ("qa", "job", "upload")


def _one_place(value: object) -> object:
    """Refuses an object that does not say where the responses are, or says it twice."""
    if isinstance(value, dict) and sum(place in value for place in _PLACES_OF_RESPONSES) != 1:
        names = ", ".join(_PLACES_OF_RESPONSES)
        raise ValueError(f"must be a list of responses, or an object with one of: {names}")
    return value


Responses = Annotated[
    Annotated[
        list[ResponseIn],
        Field(max_length=MOST_ANSWERS),
        in_parts(100, MOST_ANSWERS),
        Tag("list"),
    ]
    | Annotated[QaIn, Tag("files")]
    | Annotated[JobTextsIn, Tag("source")]
    | Annotated[UploadTextsIn, Tag("upload")],
    Discriminator(_kind_of_responses),
    BeforeValidator(_one_place),
]


class TaskIn(Body):
    """A task with options that only PersonaGym's tasks take."""

    task: Annotated[str, Field(max_length=100)] = Field(
        description="The task's id.", examples=["expected_action"]
    )
    atomic: bool | None = Field(
        None, description="Also judge every sentence of the answers for its consistency with the persona."
    )
    questions: int | None = Field(
        None, ge=1, le=200, description="Questions per persona; default: 10, as in the paper."
    )
    questions_per_environment: bool | None = Field(
        None, description="Write this many questions for each of a persona's environments."
    )
    runs: int | None = Field(
        None, ge=1, le=1000, description="How often each question is answered; default: once."
    )


def _kind(value: object) -> str:
    return "name" if isinstance(value, str) else "object"


PersonaRef = Annotated[
    Annotated[Identifier, Tag("name")] | Annotated[PersonaIn, Tag("object")], Discriminator(_kind)
]
TaskRef = Annotated[
    Annotated[str, Field(max_length=100), Tag("name")] | Annotated[TaskIn, Tag("object")],
    Discriminator(_kind),
]
ModelRef = Annotated[Annotated[Line, Tag("name")] | Annotated[ModelIn, Tag("object")], Discriminator(_kind)]


def _judge_kind(value: object) -> str:
    imported = isinstance(value, ImportedJudgeIn) or (isinstance(value, dict) and "imported" in value)
    return "imported judge" if imported else _kind(value)


JudgeRef = Annotated[
    Annotated[Line, Tag("name")]
    | Annotated[ModelIn, Tag("object")]
    | Annotated[ImportedJudgeIn, Tag("imported judge")],
    Discriminator(_judge_kind),
]


def _instruction_kind(value: object) -> str:
    return "text" if isinstance(value, str) else "number"


InstructionRef = Annotated[
    Annotated[Prose, Tag("text")] | Annotated[int, Tag("number")], Discriminator(_instruction_kind)
]

EnvironmentNames = Annotated[list[Line], Field(max_length=500), in_parts(100, 500)]


def _listing(value: object) -> str:
    return "list" if isinstance(value, list) else "by persona"


Environments = Annotated[
    Annotated[EnvironmentNames, Tag("list")]
    | Annotated[
        dict[Text, EnvironmentNames], Field(max_length=10_000), in_parts(10, 10_000), Tag("by persona")
    ],
    Discriminator(_listing),
]
QuestionsByTask = Annotated[
    dict[Text, Annotated[list[Prose], Field(max_length=1000), in_parts(100, 1000)]], in_parts(10, 10_000)
]
QuestionsByPersona = Annotated[dict[Text, QuestionsByTask], Field(max_length=10_000), in_parts(10, 10_000)]
Questions = Annotated[
    Annotated[Identifier, Tag("name")] | Annotated[QuestionsByPersona, Tag("object")], Discriminator(_kind)
]


class BudgetIn(Body):
    """Limits on a job's spending, never exceeded: a call starts only if its worst case fits beside those of all other calls."""

    usd: float | None = Field(
        None,
        ge=1e-6,
        le=1e9,
        allow_inf_nan=False,
        description="US dollars at list prices; every model called must have a known price.",
    )
    calls: int | None = Field(None, ge=1, le=10**12, description="Attempts, successful or not.")
    tokens: int | None = Field(None, ge=1, le=10**15, description="Input and output tokens together.")

    @model_validator(mode="after")
    def _limits_something(self) -> "BudgetIn":
        if all(limit is None for _, limit in self):
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        return self

    def to_budget(self) -> Budget:
        """The budget as the domain knows it."""
        return Budget(**self.model_dump())


class ReuseIn(Body):
    """Which calls are skipped if an identical request has already been answered; default: none."""

    judging: Literal["off", "in_job", "across_jobs"] = Field(
        "off",
        description="For judges at temperature 0: `in_job` makes identical calls of the job once; "
        "`across_jobs` also shares replies with your other jobs.",
    )
    generation: Literal["off", "across_jobs"] = Field(
        "off",
        description="For the evaluated models: a text is reused only for the same repetition of the same "
        "item, so that an identical job gets the same texts and no job gets one twice.",
    )


def _tag(text: str) -> str:
    if not text.strip() or "," in text or not text.isprintable():
        raise ValueError("must not be empty or contain commas or line breaks")
    return text.strip()


JobTag = Annotated[Text, Field(max_length=50), AfterValidator(_tag)]
JobTags = Annotated[list[JobTag], AfterValidator(lambda tags: list(dict.fromkeys(tags)))]


class JobChangeIn(ChangeBody):
    """Changes to a job; its configuration and results stay as they are."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "pilot", "tags": ["pilot", "paper"], "archived": False}]}
    )

    budget: BudgetIn = Field(
        default_factory=BudgetIn.model_construct,
        description="New limits, of the kinds that the job was submitted with; omitted limits stay as they "
        "are.",
    )
    name: Line | None = None
    tags: JobTags = Field(
        default_factory=list,
        max_length=20,
        description="All tags, at most 50 characters each; they replace the present ones.",
    )
    notes: Annotated[Text, Field(max_length=5000)] | None = None
    archived: bool = Field(False, description="Archived jobs are only listed on request.")


class CloneIn(Body):
    """Changes for running a job again."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        json_schema_extra={"examples": [{"changes": {"name": "again", "iterations": 10}}]},
    )

    changes: dict[str, Any] = Field(
        default_factory=dict,
        description="Fields of a job; each replaces the original's whole field, and `null` omits it.",
    )


class JudgingCheckIn(Body):
    """The sample that is also judged one sentence per call, drawn with the job's seed. Required."""

    share: float = Field(CHECK_SHARE, gt=0, le=1, allow_inf_nan=False, description="Share of the responses.")
    minimum: int = Field(
        CHECK_MINIMUM,
        ge=1,
        le=1_000_000,
        description="Minimum number of responses, or all if there are fewer.",
    )


class OrderCheckIn(Body):
    """The sentences that each judge judges three more times, drawn with the job's seed; none of these verdicts counts in a metric."""

    share: float = Field(gt=0, le=1, allow_inf_nan=False, description="Share of the sentences.")


class ControlIn(Body):
    """What values with a persona are compared with."""

    without_persona: bool = Field(
        False, description='Also ask each model without a persona; `"control": true` means this alone.'
    )
    opposite_persona: bool = Field(
        False,
        description="Report in `opposite` how much higher values are than those of the job's personas at the"
        " opposite level of the same dimension. Needs no further calls.",
    )


def _switch(value: object) -> str:
    return "object" if isinstance(value, dict | ControlIn) else "switch"


Control = Annotated[
    Annotated[bool, Tag("switch")] | Annotated[ControlIn, Tag("object")], Discriminator(_switch)
]


class VersionsIn(Body):
    """Versions of the rules for reading texts, for a job to be compared with an older one."""

    segmenter: str | None = Field(
        None,
        max_length=100,
        description="Splits texts into sentences: `punkt-en-v1`; `punkt-en-wide-v1`, which also knows the final signs of other scripts; or `roleplay-en-v1`, for actions in asterisks, speaker labels and emoji.",
    )
    refusals: str | None = Field(None, max_length=100, description="Detects refusals.")
    injections: str | None = Field(None, max_length=100, description="Detects prompt injections.")


class JudgingIn(Body):
    """How sentences are judged."""

    sentences_per_call: int = Field(
        1,
        ge=1,
        le=MOST_SENTENCES,
        description="Maximum number of a response's sentences per judging call. 1 is the papers' way; larger "
        "groups use this project's own prompt, and `judging_check` in the results shows how much "
        "verdicts differ.",
    )
    check: JudgingCheckIn | None = Field(
        None, description="With several sentences per call: the sample that is also judged one per call."
    )

    order_check: OrderCheckIn | None = Field(
        None,
        description="Sentences that are judged again with the options reversed, with their numbers shuffled, "
        "and unchanged: `order_check` in the results shows how much a judge depends on the order.",
    )
    repair: bool = Field(
        True,
        description="Whether a judge whose reply cannot be read is asked once more, in the same conversation, for "
        "the option's number only. At most one further call for each reply.",
    )
    refusals: Literal["rules", "judge", "judge_all"] = Field(
        "rules",
        description="Who tells refusals of generated texts from answers: the rules alone; with `judge` also the first "
        "judge where the rules are unsure; with `judge_all` also the first judge for every text that the rules don't "
        "call a refusal. One call for each such text; `refusal_check` of a response's notes is its reply.",
    )

    reply: ReplyForm = Field(
        "text",
        description="Form of the judges' replies, enforced by their servers: `choice` allows one of the options' "
        "numbers, `json_schema` a JSON object with it. A judge whose connection cannot do that is a 422; "
        "`assay check` shows what it can do.",
    )

    leave_out: list[LeftOut] | None = Field(
        None,
        max_length=2,
        description="Sentences that judges are not asked about: last ones that are `cut_off`, and "
        "`repeated_sentences`. Default: none, or as in the job whose texts are judged again.",
    )

    @model_validator(mode="after")
    def _has_something_to_check(self) -> "JudgingIn":
        if self.check is not None and self.sentences_per_call == 1:
            raise ValueError("check needs sentences_per_call above 1")
        if self.order_check is not None and self.sentences_per_call > 1:
            raise ValueError("order_check needs sentences_per_call 1")
        return self

    @property
    def sample(self) -> JudgingCheckIn:
        """What is judged one by one as well, if others are grouped."""
        return self.check or JudgingCheckIn()


EXAMPLE: JsonDict = {
    "name": "two models, three tasks",
    "personas": ["big-five", {"id": "blunt", "description": "a blunt critic", "traits": {"A": "low"}}],
    "tasks": ["questionnaire", "essay", "social_media_post"],
    "models": ["simulated/sim-faithful", {"model": "simulated/sim-drifting", "temperature": 1.0}],
    "judges": ["simulated/sim-judge"],
    "instructions": "all",
    "iterations": 5,
    "seed": 0,
    "budget": {"usd": 25},
    "metadata": {"commit": "abc123"},
}


class JobIn(Body):
    """A job: personas × tasks × models, each repeated under every instruction; or existing texts to judge."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [EXAMPLE]})

    name: Line | None = Field(None, description="A name, for people.")
    personas: Annotated[list[PersonaRef], in_parts(10, 1000)] = Field(
        default_factory=list,
        min_length=1,
        max_length=1000,
        description="Ids of personas or persona sets (`GET /v1/personas`, `GET /v1/persona-sets`), or personas"
        " written out. Required, but for texts of another job, which has its own.",
    )
    tasks: list[TaskRef] = Field(
        default_factory=list,
        min_length=1,
        max_length=50,
        description="Task ids (`GET /v1/tasks`), or tasks with options. Required as `personas` are.",
    )
    judges: list[JudgeRef] = Field(
        default_factory=list,
        max_length=10,
        description="Judges; each scores every sentence, and grades every PersonaGym answer, independently. "
        "Default temperature: 0. Default judges: the operator's, or two simulated ones if only "
        "the simulator is configured. An imported judge is never called: its verdicts come with `responses`.",
    )
    models: list[ModelRef] = Field(default_factory=list, max_length=50, description="Models to evaluate.")
    responses: Responses | None = Field(
        None,
        description="Existing texts to judge, instead of `models`: a list, PersonaGym's `_qa.json` files, the texts of "
        "another job, or an upload.",
    )
    dimensions: Annotated[list[DimensionIn], in_parts(10, 50)] = Field(
        default_factory=list, max_length=50, description="Dimensions beyond the Big Five."
    )
    instructions: Literal["all"] | Annotated[list[InstructionRef], Field(min_length=1, max_length=50)] = (
        Field(
            "all",
            description="Persona instructions for the atomic tasks: all six of the paper, some by number (from 0, "
            "as `GET /v1/personas` lists them), or texts.",
        )
    )
    iterations: int = Field(5, ge=1, le=1000, description="Repetitions under each instruction.")
    seed: int = Field(0, ge=0, le=2**63 - 1, description="Random seed for everything that the service draws.")
    reasoner: ModelRef | None = Field(
        None,
        description="Selects environments and writes questions and exemplars; required by PersonaGym's tasks. "
        "Default temperature and top_p: 0.9.",
    )
    questions: Questions | None = Field(
        None,
        description="Existing questions: a question set's id, or questions by task by persona (id, "
        "description, or the name of its published file). Missing ones are written by the "
        "reasoner.",
        examples=[{"a cowboy": {"expected_action": ["A storm comes up on the range. What do you do?"]}}],
    )
    environments: Environments | None = Field(
        None, description="Environments, for all personas or by persona id; none are selected then."
    )
    environment_pool: EnvironmentNames | None = Field(
        None, description="Environments to select from, instead of the built-in 150."
    )
    gym_instruction: Prose | None = Field(
        None,
        description="PersonaGym's persona instruction: `adopt` (the paper's appendix), `closely_mirror`"
        " (its section 3.2), or a text with `{persona}`.",
    )
    rubrics: Identifier | None = Field(
        None,
        description="ID of a rubric set (`GET /v1/rubric-sets`), whose words replace those of the tasks; it may"
        " also bring tasks of its own.",
        examples=["rset_0f8e3b6c5d2a4f719e8b7c6d5e4f3a2b"],
    )
    thresholds: list[ThresholdText] = Field(
        default_factory=list,
        max_length=100,
        description="Thresholds that `GET /v1/jobs/{id}/gate` checks by default.",
        examples=[["acc_atom>=0.8", "refusal_rate<=0.02"]],
    )
    minimum_coverage: float = Field(
        MINIMUM_COVERAGE,
        ge=0,
        le=1,
        description="Below this coverage, the gate finds a value inconclusive.",
    )
    control: Control = Field(
        False,
        description="Also ask each model without a persona (the atomic tasks' items once for all personas, "
        "PersonaGym's questions of each persona), and report in `control` how much higher values "
        "are with a persona. As an object, it can also compare opposite personas.",
    )
    protocol: Literal["paper", "hardened"] = Field(
        "paper",
        description="`paper`: the papers' prompts and definitions. `hardened`: judges are also told which "
        "part of the prompt is the judged text, and prove with a key word that they follow our "
        "prompt and not the text's instructions.",
    )
    budget: BudgetIn | None = Field(
        None,
        description="Spending limits; once used up, the job pauses with `status_reason: budget_exhausted`.",
    )
    confirm_calls: int | None = Field(
        None,
        ge=1,
        le=10**12,
        description="The most calls that you accept; a job that may need more is refused. Required for large "
        "jobs: the plan's `confirm_calls` gives the number.",
    )
    priority: Literal["low", "normal", "high"] = Field(
        "normal",
        description="Priority among your own jobs; each step up gets four times as many turns.",
    )
    judging: JudgingIn = Field(
        default_factory=JudgingIn, description="How sentences are judged; default: one per call."
    )
    versions: VersionsIn | None = Field(
        None,
        description="Earlier versions of rules, as listed by `GET /v1/tasks`; default: the latest. A job "
        "keeps its versions after later releases.",
    )
    reuse: ReuseIn | None = Field(
        None, description="Whether replies are reused; `reuse` reports the savings."
    )
    execution: Literal["direct", "batch"] = Field(
        "direct",
        description="`batch` sends calls through the providers' batch endpoints: half the price, within a "
        "day. PersonaGym's preparation is always called directly.",
    )
    tags: JobTags = Field(
        default_factory=list, max_length=20, description="Tags, at most 50 characters each."
    )
    metadata: dict[Annotated[Text, Field(max_length=64)], Annotated[Text, Field(max_length=512)]] = Field(
        default_factory=dict, max_length=16, description="Your own labels, by which jobs can be listed."
    )

    @property
    def source(self) -> JobTextsIn | None:
        """Where existing texts are taken from that the body does not have."""
        return self.responses if isinstance(self.responses, JobTextsIn) else None

    @property
    def upload(self) -> str | None:
        """The upload that has the existing texts."""
        return self.responses.upload if isinstance(self.responses, UploadTextsIn) else None

    @property
    def chosen_versions(self) -> dict[str, str]:
        """The rules' versions that were chosen, by kind; of others it is the latest."""
        return {} if self.versions is None else self.versions.model_dump(exclude_none=True)

    @property
    def chosen_rules(self) -> dict[str, Any]:
        """What was chosen of the rules by which texts are read, by fields of the instrument."""
        left = self.judging.leave_out
        return self.chosen_versions | ({} if left is None else {"leave_out": tuple(sorted(set(left)))})

    @property
    def controls(self) -> ControlIn:
        """What figures with a persona are compared with."""
        return ControlIn(without_persona=self.control) if isinstance(self.control, bool) else self.control

    @property
    def wanted_reuse(self) -> Reuse:
        """Which calls are not made where there is a reply already."""
        if self.reuse is None:
            return NO_REUSE
        return Reuse(ReuseScope(self.reuse.judging), ReuseScope(self.reuse.generation))


class DetectIn(Body):
    """A difference of two models that the planned job should be able to detect."""

    difference: float = Field(
        gt=0, le=1000, allow_inf_nan=False, description="The true difference.", examples=[0.05]
    )
    power: float = Field(0.8, ge=0.5, le=0.99, description="Share of such jobs that should detect it.")
    metric: Literal["acc_atom", "acc", "ic_atom", "mean"] = Field("acc_atom", description="Over all tasks.")
    population: Literal["both", "personas"] = Field(
        "both",
        description="`both`: personas like these, wordings like these. `personas`: personas like these, these wordings.",
    )
    models: int | None = Field(
        None,
        ge=2,
        le=50,
        description="Number of models compared at once, with an overall error rate of 5 % for all pairs. "
        "Default: the job's models.",
    )
    from_job: Identifier | None = Field(
        None,
        description="A finished job of at least two models, from which the variation over personas, wordings "
        "and runs is estimated.",
    )


class PlanIn(JobIn):
    """A job to estimate."""

    detect: DetectIn | None = Field(
        None,
        description="Requests the number of personas, wordings and iterations that detects a difference; only "
        "for jobs of atomic tasks. Not a field of jobs.",
    )


class GenerateIn(Body):
    """A request to make up personas."""

    count: int = Field(ge=1, le=MOST_PERSONAS, description="How many distinct ones.")
    reasoner: ModelRef = Field(description="Who makes them up. Temperature and top_p 0.9 unless given.")


def as_model(given: str | ModelIn) -> ModelIn:
    """A model that may be only named, with its parameters."""
    return ModelIn(model=given) if isinstance(given, str) else given
