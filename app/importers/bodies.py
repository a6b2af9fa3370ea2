"""Makes of a file's records what can be sent: a job's body, a persona set, questions; and counts what was refused, and why."""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from app.domain.errors import FieldError, InvalidJobError
from app.domain.instruments.persona import Persona
from app.domain.instruments.task import items_for
from app.domain.jobs.import_preview import (
    MOST_LISTED,
    SAMPLES,
    FoundName,
    FoundScore,
    ImportPreview,
    ReasonCount,
    RefusedRecord,
    SampleRecord,
)
from app.domain.jobs.imports import MAX_QUESTIONS
from app.domain.personagym.task import task_named
from app.domain.suggestion import did_you_mean
from app.importers.atomic_scores import JUDGE
from app.importers.messages import role_named
from app.importers.papers_questions import PaperItem, squeezed
from app.importers.records import (
    PERSONA_CHARACTERS,
    QUESTION_CHARACTERS,
    SEVERAL_ITEMS,
    TEXT_CHARACTERS,
    Asked,
    Character,
    Options,
    Record,
    Refused,
    Said,
    Scored,
    fault_of,
    unstorable,
)
from app.importers.tool_scale import JUDGES

TABLE = "table"
"""The kind whose columns are known by their names."""
DEFAULT_TASK = "social_media_post"
"""Where neither the file nor the user names one: of the atomic tasks the only one that asks nothing, so texts of all kinds fit."""
QUESTION_TASK = "persona_consistency"
"""Of questions without answers: the one of PersonaGym's tasks that fits any question."""
MOST_IN_NAME = 100
MOST_TEXTS, MOST_IN_JOB, MOST_IN_SET, MOST_MODELS = 200_000, 1_000, 10_000, 50
SHOWN_CHARACTERS = 500
NO_TRAITS: Mapping[str, str] = {}
_TEMPLATE = re.compile(
    r"<\|im_start\|>\s*(?:system|user)|<\|start_header_id\|>\s*(?:system|user)|<start_of_turn>\s*user"
    r"|<\|(?:system|user)\|>|\[/INST\]"
)
"""Marks by which chat templates begin the system's or the user's turn: https://huggingface.co/docs/transformers/chat_templating"""
_LABEL = re.compile(r"^[*_\[(<# ]{0,6}(\w{1,20})[*_\])> ]{0,6}[:\uff1a]", re.MULTILINE)
_TURNS = (
    (
        re.compile(r"^#{2,3} ?(?:Instruction|Human|User|Input):", re.MULTILINE),
        re.compile(r"^#{2,3} ?(?:Response|Assistant|Output):", re.MULTILINE),
    ),
    (re.compile(r"\bUSER: "), re.compile(r"\bASSISTANT:")),
)
"""Labels of turns in Alpaca's and Vicuna's prompts: https://github.com/lm-sys/FastChat/blob/main/fastchat/conversation.py"""
_WORD = re.compile(r"[a-z0-9]+")


Keep = Callable[[dict[str, Any]], str | None]
"""Takes a response as a job's body has it; says why not, if it can't be kept."""


class Collector:
    """Takes records one by one, so that a large file's are never all there twice.

    Args:
        options: What the user says beside the file.
        keep: Takes the responses.
        file: The file's name.
    """

    def __init__(self, options: Options, keep: Keep, file: str = "") -> None:
        self._options = options
        self._file = file
        self._keep = keep
        self._gym_tasks = options.gym_tasks.keys()
        self._found = 0
        self._refused: list[RefusedRecord] = []
        self._reasons: Counter[str] = Counter()
        self._characters: list[Character] = []
        self._personas: dict[str, dict[str, Any]] = {}
        self._persona_texts: Counter[str] = Counter()
        self._models: Counter[str] = Counter()
        self._tasks: Counter[str] = Counter()
        self._prompts: set[int] = set()
        self._scores: dict[str, list[float]] = {}
        self._texts = 0
        self._questions: dict[str, dict[str, list[str]]] = {}
        self._samples: list[SampleRecord] = []
        self._unused: Counter[str] = Counter()
        self._conversations: Counter[str] = Counter()
        self._task_ids: dict[str, str] = {}
        self._unnamed_models = 0
        self._unnamed_tasks = 0
        self._recognised = 0
        self._untold_tasks = 0
        self._judges: dict[str, None] = {}
        self._off_scale: list[float] = []
        self._scored = 0
        self._verdicts = 0
        self._has_score = False
        self._item_ids: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}

    def add(self, record: Record) -> None:
        """Takes a record, or refuses it; a persona without a text waits until it is known whether there are texts."""
        self._found += 1
        if isinstance(record, Character):
            self._characters.append(record)
            return
        if isinstance(record, Refused):
            self._refuse(record.place, record.reason)
        else:
            self._refuse(record.place, unstorable(record) or self._take(record))

    def _take(self, record: Said | Scored | Asked) -> str | None:
        if isinstance(record, Said):
            return self._take_text(record)
        return self._take_scores(record) if isinstance(record, Scored) else self._take_question(record)

    def _take_characters(self) -> None:
        """Takes the personas without texts; among texts, which make a job, they are refused."""
        for each in self._characters:
            self._refuse(each.place, "has no text" if self._texts else self._take_character(each))

    def _refuse(self, place: str, reason: str | None) -> None:
        """Counts a record that was not taken, if there is a reason why not."""
        if reason is None:
            return
        self._reasons[reason.partition(" (")[0]] += 1
        if len(self._refused) < MOST_LISTED:
            self._refused.append(RefusedRecord(place=place, reason=reason))

    def _take_text(self, said: Said) -> str | None:
        """Adds a response; says why not, if it can't be one."""
        chosen = self._options
        said, known = self._recognise(replace(said, task=self._task_of(said.task)) if said.task else said)
        task = chosen.task or said.task or (DEFAULT_TASK if known is None else known.task)
        model = " ".join((chosen.model or said.model or "imported").split())[:MOST_IN_NAME]
        fault = self._fault_of_text(said, task, model)
        if fault is not None:
            return fault
        persona, fault = self._persona_of(said)
        if persona is None:
            return fault
        response: dict[str, Any] = {"persona": persona, "task": task, "model": model}
        response |= {"text": said.text} if said.text else {}
        response |= {"units": list(said.units)} if said.units else {}
        if said.conversation is not None:
            response["conversation"] = _conversation_of(self._file, said.conversation)
        if said.verdicts:
            response["verdicts"] = [each._asdict() for each in said.verdicts]
            self._judges |= dict.fromkeys(each.judge for each in said.verdicts)
        if task in self._gym_tasks:
            response["question"] = said.prompt
        else:
            item = said.item if known is None else known.item
            own = {"item": item, "run": said.run, "instruction": said.instruction}
            if said.task in {None, task}:
                response |= {name: value for name, value in own.items() if value is not None}
            fault = self._fault_of_item(task, response.get("item"), persona)
        fault = fault or self._add_verdict(response, said) or self._keep(response)
        if fault is None:
            self._verdicts += self._options.score in said.scores
            self._recognised += known is not None
            self._untold_tasks += chosen.task is None and said.task is None and known is None
            self._count(said, model, persona, task)
        return fault

    def _task_of(self, name: str) -> str:
        """The id of the service's task with this id or title; any other name as it is, to be refused."""
        if name not in self._task_ids:
            atomic = self._options.atomic_tasks.values()
            own = {_squeezed_name(each): task.id for task in atomic for each in (task.title, task.id)}
            gym = task_named(tuple(self._options.gym_tasks.values()), name)
            self._task_ids[name] = own.get(_squeezed_name(name)) or (name if gym is None else gym.id)
        return self._task_ids[name]

    def _fault_of_text(self, said: Said, task: str, model: str) -> str | None:
        texts = [said.text, *said.units] if said.text or not said.units else said.units
        fault = next((each for text in texts if (each := fault_of(text, TEXT_CHARACTERS))), None)
        if fault is None and ("<" in said.text or "[" in said.text) and _TEMPLATE.search(said.text):
            fault = "is a conversation in a chat template's marks; save its messages with their roles"
        if fault is None and _is_transcript(said.text):
            fault = "is a transcript of a conversation; save its messages with their roles"
        if fault is None and self._texts >= MOST_TEXTS:
            fault = f"a job has at most {MOST_TEXTS:,} texts"
        if fault is None and task in self._gym_tasks:
            fault = _fault_of_question(said.prompt)
        elif fault is None and task not in self._options.atomic_tasks:
            fault = f"task {task[:MOST_IN_NAME]!r} is not one of the service's; choose one with task"
        if fault is None and model not in self._models and len(self._models) >= MOST_MODELS:
            fault = f"a job compares at most {MOST_MODELS} models"
        named = [("model", model)] if model not in self._models else []
        named += [("task", task)] if task not in self._tasks else []
        named += [("item", said.item)] if said.item else []
        named += [("judge", each.judge) for each in said.verdicts]
        named += [("dimension", each.dimension) for each in said.verdicts]
        if fault is not None or not named:
            return fault
        faults = (f"{what}: {each}" for what, text in named if (each := fault_of(text, MOST_IN_NAME)))
        return next(faults, None)

    def _recognise(self, said: Said) -> tuple[Said, PaperItem | None]:
        """A text with what its prompt tells of it: whose question of the set it answers, or which item of an atomic task."""
        if said.prompt is None or said.task is not None:
            return said, None
        words, chosen = squeezed(said.prompt), self._options
        asked = [each for each in chosen.questions.get(words, ()) if chosen.task in {None, each.task}]
        if asked:
            who = (chosen.persona or said.persona or "").strip()
            own = next((each for each in asked if each.persona.strip() == who), asked[0])
            persona = said.persona or (own.persona if len(asked) == 1 else None)
            return replace(said, task=own.task, prompt=own.question, persona=persona), None
        known = chosen.items.get(words)
        return said, known if known is not None and chosen.task in {None, known.task} else None

    def _fault_of_item(self, task: str, item: str | None, persona: str) -> str | None:
        """Why a text can't be placed among the items of its atomic task; ``None`` if it can."""
        own, built_in = self._personas[persona], self._options.built_in
        traits = own.get("traits", {}) if own else {each.dimension: "" for each in built_in[persona].traits}
        unknown = next((name for name in traits if name not in self._options.dimensions), None)
        if unknown is not None:
            return f"trait {unknown!r} is not one of the service's dimensions"
        if not traits:
            return None
        items = self._items(task, tuple(traits))
        if item in items or (item is None and len(items) == 1):
            return None
        if item is None:
            return f"doesn't say which item of {task} it answers; choose another task"
        dimension = item.rpartition("-")[0] or item
        if dimension in self._options.dimensions and dimension not in traits:
            return f"answers a question on {dimension}, and the persona has no such trait"
        return f"{task} has no item {item!r}"

    def _items(self, task: str, dimensions: tuple[str, ...]) -> frozenset[str]:
        """Ids of a task's items for a persona with traits on these dimensions."""
        if (task, dimensions) not in self._item_ids:
            known = self._options.dimensions
            found = items_for(self._options.atomic_tasks[task], tuple(known[each] for each in dimensions))
            self._item_ids[task, dimensions] = frozenset(each.id for each in found)
        return self._item_ids[task, dimensions]

    def _add_verdict(self, response: dict[str, Any], said: Said) -> str | None:
        """Gives a response the score that was chosen, if it has it; says why not, if it can't be a verdict."""
        judge = self._options.score
        score = None if judge is None else said.scores.get(judge)
        if judge is None or score is None:
            return None
        self._has_score = True
        graded = "question" in response
        number, fault = self._on_judges_scale(score)
        if fault is None and not graded and len(self._options.traits or said.traits) > 1:
            fault = "the scores are on one trait; name only that"
        if fault is not None:
            return fault
        if graded:
            response["grades"] = {judge: number}
        else:
            response["verdicts"] = [{"judge": judge, "score": number}]
        return None

    def _on_judges_scale(self, score: float) -> tuple[int, str | None]:
        """A tool's score as a judge's, and why it can't be one."""
        scale = self._options.scale
        lowest, highest = (
            (scale.lowest, scale.highest) if scale is not None else (JUDGES.minimum, JUDGES.maximum)
        )
        if isinstance(score, bool):
            return 0, "its score is a yes or no, not on a scale"
        if not lowest <= score <= highest:
            self._off_scale.append(score)
            return 0, f"its score is not on the scale from {lowest:g} to {highest:g}"
        if scale is not None:
            return scale.onto(score), None
        return int(score), None if score.is_integer() else "its score is no whole number"

    def _take_scores(self, scored: Scored) -> str | None:
        """Adds a response of which only a judge's scores are known; says why not, if it can't be one."""
        chosen = self._options
        if len(chosen.traits) > 1:
            return "the scores are on one trait; name only that"
        if self._texts >= MOST_TEXTS:
            return f"a job has at most {MOST_TEXTS:,} texts"
        task = chosen.task or (SEVERAL_ITEMS if scored.item is not None else DEFAULT_TASK)
        if task in self._gym_tasks:
            return "its scores are of sentences, not of answers to PersonaGym's questions"
        model = " ".join((chosen.model or "imported").split())[:MOST_IN_NAME]
        persona, fault = self._persona_of_scores()
        if persona is None:
            return fault
        response: dict[str, Any] = {"persona": persona, "task": task, "model": model, "run": scored.run}
        response["verdicts"] = [{"judge": JUDGE, "scores": list(scored.scores)}]
        if scored.item is not None:
            response["item"] = "-".join([*chosen.traits, str(scored.item + 1)])
        fault = self._keep(response)
        if fault is None:
            self._scored += 1
            self._untold_tasks += chosen.task is None and scored.item is None
            self._count(Said(scored.place, "", model=model), model, persona, task)
        return fault

    def _count(self, said: Said, model: str, persona: str, task: str) -> None:
        self._texts += 1
        if said.conversation is not None:
            self._conversations[said.conversation] += 1
        self._models[model] += 1
        self._unnamed_models += (self._options.model or said.model) is None
        self._tasks[task] += 1
        self._persona_texts[persona] += 1
        if said.prompt is not None:
            self._prompts.add(hash(said.prompt))
        for name, score in said.scores.items():
            self._scores.setdefault(_visible(name[:MOST_IN_NAME]), []).append(score)
        if len(self._samples) < SAMPLES:
            self._samples.append(
                SampleRecord(
                    place=said.place,
                    persona=_shown(said.persona or persona),
                    model=model,
                    task=task,
                    prompt=_shown(said.prompt),
                    text=_shown(said.text or " ".join(said.units)),
                    scores={name[:MOST_IN_NAME]: each for name, each in said.scores.items()},
                )
            )

    def _persona_of(self, said: Said) -> tuple[str | None, str | None]:
        """The id of a text's persona, and why there is none."""
        described = self._options.persona or said.persona
        words = squeezed(described or "")
        known = self._options.personas.get(words)
        if known is not None:
            traits = {trait.dimension: trait.level for trait in known.traits}
            return self._entered(known.id, known.description, traits, MOST_IN_JOB)
        if words in self._options.built_in:
            return self._named(self._options.built_in[words])
        if described is None and said.traits:
            return self._papers_persona(said.traits)
        if described is None:
            return None, "has no persona (no system message or column); choose one for all texts"
        return self._kept(described, None, MOST_IN_JOB, said.traits)

    def _named(self, persona: Persona) -> tuple[str | None, str | None]:
        """The id of a built-in persona, which a job only names; with other traits it is a persona of the job's own."""
        traits = {trait.dimension: trait.level for trait in persona.traits}
        if self._options.traits and dict(self._options.traits) != traits:
            return self._kept(persona.description, None, MOST_IN_JOB)
        self._personas.setdefault(persona.id, {})
        return persona.id, None

    def _persona_of_scores(self) -> tuple[str | None, str | None]:
        """The id of the persona of all scores: on a trait, unless another is chosen, the paper's, which is built in."""
        if self._options.persona is not None:
            return self._persona_of(Said("", ""))
        if self._options.traits:
            return self._papers_persona(self._options.traits)
        return self._kept("the persona of these scores", None, MOST_IN_JOB)

    def _papers_persona(self, traits: Mapping[str, str]) -> tuple[str | None, str | None]:
        """The paper's persona with one trait, which is built in."""
        ids = [f"{dimension}-{level}" for dimension, level in traits.items()]
        if len(ids) > 1 or ids[0] not in self._options.built_in:
            return None, "no built-in persona has its trait; choose a persona"
        self._personas.setdefault(ids[0], {})
        return ids[0], None

    def _kept(
        self, description: str, name: str | None, most: int, own_traits: Mapping[str, str] = NO_TRAITS
    ) -> tuple[str | None, str | None]:
        description = description.strip()
        fault = fault_of(description, PERSONA_CHARACTERS)
        if fault is not None:
            return None, f"persona: {fault}"
        return self._entered(_id_of(description, name), description, own_traits, most)

    def _entered(
        self, id_: str, description: str, own_traits: Mapping[str, str], most: int
    ) -> tuple[str | None, str | None]:
        if id_ in self._options.built_in:
            id_ = _id_of(description, id_)
        if id_ not in self._personas and len(self._personas) >= most:
            return None, f"more than {most:,} personas"
        traits = self._options.traits or own_traits
        self._personas[id_] = {"id": id_, "description": description} | (
            {"traits": dict(traits)} if traits else {}
        )
        return id_, None

    def _take_character(self, character: Character) -> str | None:
        persona, fault = self._kept(character.description, character.name, MOST_IN_SET)
        if persona is None:
            return fault
        self._unused.update(each[:MOST_IN_NAME] for each in character.unused)
        if len(self._samples) < SAMPLES:
            sample = SampleRecord(
                place=character.place,
                persona=_shown(character.description),
                model=None,
                task=None,
                prompt=None,
                text=None,
                scores={},
            )
            self._samples.append(sample)
        return None

    def _take_question(self, asked: Asked) -> str | None:
        fault = fault_of(asked.question, QUESTION_CHARACTERS)
        task = self._options.task or asked.task or QUESTION_TASK
        who = self._options.persona or asked.persona
        if fault is not None or who is None:
            return fault or "is a question without a persona; choose one for all"
        if task not in self._gym_tasks:
            return "its task is none of PersonaGym's"
        persona, fault = self._kept(who, None, MOST_IN_JOB)
        if persona is None:
            return fault
        description = self._personas[persona]["description"]
        of_task = self._questions.setdefault(description, {}).setdefault(task, [])
        if len(of_task) >= MAX_QUESTIONS:
            return f"more than {MAX_QUESTIONS:,} questions of a persona and task"
        of_task.append(asked.question)
        self._unnamed_tasks += asked.task is None
        self._models.update(model[:MOST_IN_NAME] for model in asked.models)
        self._prompts.add(hash(asked.question))
        if len(self._samples) < SAMPLES:
            self._samples.append(
                SampleRecord(
                    place=asked.place,
                    persona=_shown(who),
                    model=None,
                    task=task,
                    prompt=_shown(asked.question),
                    text=None,
                    scores={},
                )
            )
        return None

    def preview(
        self, kind: str, mapping: Mapping[str, str], notes: Sequence[str], responses: object
    ) -> ImportPreview:
        """What was found, and what can be sent.

        Args:
            kind: The file's kind.
            mapping: What of the file becomes what.
            notes: What of the file is not used.
            responses: The responses that were kept, as a job's body has or names them.

        Raises:
            InvalidJobError: If no text has the chosen score, or it has another scale than judges, and nobody said which.
        """
        self._take_characters()
        self._check_score()
        self._check_scale()
        refused = self._reasons.total()
        if self._texts:  # those whose texts were all refused are in no job
            self._personas = {id_: each for id_, each in self._personas.items() if self._persona_texts[id_]}
        own = [persona for persona in self._personas.values() if persona]
        return ImportPreview(
            kind=kind,
            found=self._found,
            mapped=self._found - refused,
            refused=refused,
            reasons=[ReasonCount(reason=each, count=count) for each, count in self._reasons.most_common()],
            refused_records=self._refused,
            mapping=dict(mapping) | ({"score": self._scores_in_words()} if self._verdicts else {}),
            models=[FoundName(name=name, count=count) for name, count in self._models.most_common()],
            personas=[
                FoundName(
                    name=id_, count=self._persona_texts[id_], description=_shown(each.get("description"))
                )
                for id_, each in list(self._personas.items())[:MOST_LISTED]
            ],
            persona_count=len(self._personas),
            tasks=[FoundName(name=name, count=count) for name, count in self._tasks.most_common()],
            prompts=len(self._prompts),
            scores=[
                FoundScore(name=name, count=len(values), lowest=min(values), highest=max(values))
                for name, values in list(self._scores.items())[:MOST_LISTED]
            ],
            samples=self._samples,
            notes=[*self._notes_on_columns(kind, mapping), *notes, *self._notes()],
            job=self._job(own, kind, responses) if self._texts else None,
            persona_set={"personas": own} if own and not self._texts else None,
            question_set={"questions": self._questions} if self._questions else None,
        )

    def _check_score(self) -> None:
        wanted = self._options.score
        if wanted is None or not self._texts or self._has_score:
            return
        known = list(self._scores)[:MOST_LISTED]
        meant = did_you_mean(wanted, known) or f"; its scores: {', '.join(known) or 'none'}"
        raise InvalidJobError(
            [FieldError("/query/score", f"the file has no score {_visible(wanted[:MOST_IN_NAME])!r}{meant}")]
        )

    def _check_scale(self) -> None:
        chosen = self._options
        if chosen.score is None or chosen.scale is not None or not self._off_scale:
            return
        known = (*self._off_scale, *self._scores.get(_visible(chosen.score[:MOST_IN_NAME]), ()))
        message = (
            f"is required: scores of {_visible(chosen.score)!r} go from {min(known):g} to {max(known):g}, those of"
            f" judges from {JUDGES.minimum} to {JUDGES.maximum}; name the tool's scale, such as 0-10"
        )
        raise InvalidJobError([FieldError("/query/scale", message)])

    def _scores_in_words(self) -> str:
        """How the chosen score becomes a judge's."""
        scale = self._options.scale
        if scale is None:
            return f"as they are, from {JUDGES.minimum} to {JUDGES.maximum}"
        return f"{scale}, as {scale.in_words()}"

    def _job(self, own: list[dict[str, Any]], kind: str, responses: object) -> dict[str, Any]:
        named = [id_ for id_, persona in self._personas.items() if not persona]
        body = {"personas": [*named, *own], "tasks": list(self._tasks), "responses": responses}
        if self._judges:
            source = {"source": kind, "note": "Verdicts of a job, from its export."}
            body["judges"] = [{"imported": judge, "provenance": source} for judge in self._judges]
        if self._scored:
            source = {"source": "atomic_scores.txt", "note": "The file does not name its judge."}
            body["judges"] = [{"imported": JUDGE, "provenance": source}]
        if self._verdicts:
            source = {
                "source": kind,
                "note": f"The tool's own score of each whole text: {self._scores_in_words()}.",
            }
            body["judges"] = [{"imported": self._options.score, "provenance": source}]
        return body

    def _notes(self) -> list[str]:
        """What the user should know, or still has to say."""
        notes = []
        atomic = [task for task in self._tasks if task not in self._gym_tasks]
        if self._recognised or self._options.questions:
            notes.append("Where a prompt is a known question, it tells the task and the item.")
        if self._untold_tasks:
            notes.append(f"Texts that name no task are taken as {DEFAULT_TASK}. Choose another with task.")
        if atomic and any(persona and "traits" not in persona for persona in self._personas.values()):
            notes.append(f"{', '.join(atomic)} measures traits: give them with trait, such as E=high.")
        if self._texts and len(atomic) < len(self._tasks) and not self._verdicts:
            notes.append("PersonaGym's tasks need a reasoner, which writes their exemplars.")
        if len(self._prompts) > 1 and self._recognised < sum(self._tasks[task] for task in atomic):
            notes.append(
                "Different prompts are not shown to judges; with one of PersonaGym's tasks they are the questions."
            )
        turns = sum(count for count in self._conversations.values() if count > 1)
        if turns:
            notes.insert(
                0,
                f"Warning: {turns:,} texts are turns of conversations and depend on each other."
                " Cells with several turns of one conversation get no intervals and no RC_atom.",
            )
        if self._unnamed_models:
            notes.append("Some texts name no model; they are called `imported` unless you choose a model.")
        notes += self._notes_on_scores()
        if self._unnamed_tasks and self._options.task is None:
            notes.append(f"Questions that name no task count as {QUESTION_TASK}.")
        if self._unused:
            notes.append(f"Not taken with personas: {', '.join(sorted(self._unused)[:30])}.")
        return notes

    def _notes_on_columns(self, kind: str, mapping: Mapping[str, str]) -> Iterator[str]:
        if kind == TABLE and self._personas and not self._texts and "text" not in mapping:
            yield "No column has texts, by its name: rows are taken as personas. Name it with column, such as text=answer."

    def _notes_on_scores(self) -> Iterator[str]:
        if self._scores and self._options.score is None:
            yield "Scores are shown, not imported; with score, one of them is a judge's verdict."
        if self._options.score is not None and self._verdicts < self._texts:
            lacking = self._texts - self._verdicts
            yield f"Without the chosen score: {lacking:,} of {self._texts:,} texts. Their verdicts are missing."


@lru_cache(256)  # many texts have the same persona
def _id_of(description: str, name: str | None) -> str:
    """An id that the same persona has in every file: some of its words, and a hash of all."""
    words = _WORD.findall((name or description).casefold())[:4]
    digest = hashlib.sha256(description.encode()).hexdigest()[:8]
    return "-".join([*(word[:16] for word in words), digest])


def _conversation_of(file: str, key: str) -> str:
    """A conversation's name, distinct from those of other files in the same job."""
    name = " ".join(_visible(f"{file}#{key}").split())
    if len(name) <= MOST_IN_NAME and name.isprintable():
        return name
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def _squeezed_name(name: str) -> str:
    """A task's name without case, spaces and punctuation."""
    return re.sub(r"[\W_]+", "", name.casefold())


def _is_transcript(text: str) -> bool:
    """Whether a text holds both sides of a conversation, each turn with its speaker's label."""
    first = _LABEL.match(text.lstrip())
    if first is not None and role_named(first[1]) is not None:
        speakers = {role_named(each[1]) for each in _LABEL.finditer(text)}
        return {"user", "assistant"} <= speakers
    return ":" in text and any(asks.search(text) and answers.search(text) for asks, answers in _TURNS)


def _fault_of_question(prompt: str | None) -> str | None:
    if prompt is None:
        return "has no question, which the task needs"
    fault = fault_of(prompt, QUESTION_CHARACTERS)
    return None if fault is None else f"question: {fault}"


def _shown(text: str | None) -> str | None:
    if text is None or len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]}…"


def _visible(text: str) -> str:
    """A text of the file that can be answered, even if it holds lone surrogates."""
    return text.encode(errors="replace").decode()
