"""Every operation of the service's ``/v1`` that measures, as a call; :mod:`persona_assay.administration` has the others.

The clients' methods of these names make the calls.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from persona_assay.calls import (
    PLANNING_SECONDS,
    Call,
    Query,
    given,
    read_bytes,
    read_json,
    read_nothing,
    repetition_key,
)
from persona_assay.notebook import read_figure, read_results
from persona_assay.types import (
    AnnotationList,
    Baselines,
    Bridge,
    ByInstruction,
    CheckIn,
    Comparison,
    ComparisonOfModels,
    ConnectionList,
    DetectIn,
    Environments,
    Flag,
    FlagIn,
    FlagList,
    Gate,
    HumanStudy,
    ImportedJob,
    ImportPreview,
    JobCalibration,
    JobChangeIn,
    JobDetail,
    JobExemplarList,
    JobIn,
    JobList,
    JobStatus,
    JudgeCalls,
    JudgeIn,
    KeptAnnotations,
    LabellingRound,
    LabellingRoundIn,
    ModelCheck,
    ModelGroups,
    ModelIn,
    NamedBaseline,
    NewShareLink,
    PersonaList,
    PersonaSet,
    PersonaSetList,
    Plan,
    QuestionSet,
    QuestionSetList,
    Reread,
    ResponseList,
    Results,
    RubricSet,
    RubricSetIn,
    RubricSetList,
    RunDistances,
    SetExemplarList,
    ShareLink,
    ShareLinkList,
    SideIn,
    TaskList,
    Upload,
    UploadList,
)

ReportFormat: TypeAlias = Literal["json", "html", "csv", "jsonl", "parquet", "junit"]
ExportFormat: TypeAlias = Literal["preferences", "rewards", "dataset", "inspect", "every_eval_ever", "bundle"]
ReportLevel: TypeAlias = Literal[
    "verdicts",
    "responses",
    "cells",
    "totals",
    "persona_scores",
    "judging_check",
    "order_check",
    "control_verdicts",
]
JobSort: TypeAlias = Literal["-created", "created", "name", "-name", "cost", "-cost", "score", "-score"]
Pairing: TypeAlias = Literal["cells", "items"]
IntervalKind: TypeAlias = Literal["personas", "runs", "wordings", "both"]
Questions: TypeAlias = Mapping[str, Mapping[str, Sequence[str]]]

BASELINE = "/v1/baselines/{name}"
SHARE_LINKS = "/v1/jobs/{job_id}/share-links"
JOB = "/v1/jobs/{job_id}"
UPLOAD = "/v1/uploads/{upload_id}"
LINES = {"jsonl": "application/jsonl", "csv": "text/csv"}

# -- jobs ---------------------------------------------------------------------------------------------------------


def submit(job: JobIn, *, idempotency_key: str | None = None) -> Call[JobDetail]:
    """Submits a job exactly once, even if the request is retried.

    Args:
        job: The job.
        idempotency_key: Repeated calls with the same key and job return the same job for 24 hours; default: a new key.

    Returns:
        The accepted job.
    """
    headers = repetition_key(idempotency_key)
    return Call("POST", "/v1/jobs", read_json, body=job, headers=headers, seconds=PLANNING_SECONDS)


def clone(
    job_id: str, changes: Mapping[str, Any] | None = None, *, idempotency_key: str | None = None
) -> Call[JobDetail]:
    """Runs a job again with changes; the original is not changed.

    Args:
        job_id: The job.
        changes: Fields that replace the original's; ``None`` omits a field.
        idempotency_key: As for `submit`.

    Returns:
        The new job.
    """
    body = {"changes": dict(changes or {})}
    headers, seconds = repetition_key(idempotency_key), PLANNING_SECONDS
    names = {"job_id": job_id}
    return Call("POST", f"{JOB}/clone", read_json, names, body=body, headers=headers, seconds=seconds)


def create_share_link(
    job_id: str, *, days: int = 30, responses: bool = False, description: str | None = None
) -> Call[NewShareLink]:
    """Creates a link by which anyone reads a job's report and results without a key. Only this answer has it, in `path`.

    Args:
        job_id: The job.
        days: How long it works.
        responses: Whether it also gives all responses, with every verdict.
        description: For people: whom it is for.
    """
    body = {"days": days, "responses": responses, "description": description}
    return Call("POST", SHARE_LINKS, read_json, {"job_id": job_id}, body=body, is_repeatable=False)


def share_links(job_id: str) -> Call[ShareLinkList]:
    """A job's share links, newest first, without what would let anybody use them."""
    return Call("GET", SHARE_LINKS, read_json, {"job_id": job_id})


def revoke_share_link(job_id: str, link_id: str) -> Call[ShareLink]:
    """Ends a share link for good."""
    return Call("DELETE", f"{SHARE_LINKS}/{{link_id}}", read_json, {"job_id": job_id, "link_id": link_id})


def read_import(
    file: bytes = b"",
    *,
    upload: str | None = None,
    name: str | None = None,
    kind: str | None = None,
    persona: str | None = None,
    personas: str | None = None,
    trait: Sequence[str] = (),
    task: str | None = None,
    model: str | None = None,
    score: str | None = None,
    scale: str | None = None,
    questions: str | None = None,
    column: Sequence[str] = (),
) -> Call[ImportPreview]:
    """Reads a file that another tool wrote; no job or set is stored.

    Args:
        file: The file's content.
        upload: The upload that has the file instead, sent with the purpose ``import``; the job then names it.
        name: Its name, which tells YAML and CSV.
        kind: Its kind; default: recognized.
        persona: The persona of all texts, by ID or description, instead of the file's.
        personas: A persona set: the file's personas that are in it get its ids and traits.
        trait: The personas' traits, such as ``E=high``.
        task: The task of all texts.
        model: The name of the model that wrote all texts.
        score: The tool's score that is a judge's verdict on the whole text.
        scale: That score's lowest and highest, such as ``0-10``; needed if they are not 1 and 5.
        questions: A question set: prompts that are its questions name task and persona.
        column: What a table's columns hold, such as ``text=answer``.

    Returns:
        What was found and refused, and the bodies for `submit`, `keep_personas` and `keep_questions`.
    """
    own = {"name": name, "kind": kind, "persona": persona, "task": task, "model": model, "score": score}
    query: Query = given(**own, personas=personas, scale=scale, questions=questions, upload=upload)
    query = {**query, **({"trait": trait} if trait else {}), **({"column": column} if column else {})}
    headers = {"Content-Type": "application/octet-stream"}
    return Call("POST", "/v1/imports", read_json, query=query, content=file, headers=headers, is_awaited=True)


def plan(job: JobIn, *, detect: DetectIn | None = None) -> Call[Plan]:
    """Estimates a job's calls and cost; nothing is spent.

    Args:
        job: The job.
        detect: A difference of two models: `detection` then gives the number of personas, wordings and iterations that detects it.
    """
    body = job if detect is None else {**job, "detect": detect}
    return Call("POST", "/v1/jobs/plan", read_json, body=body, seconds=PLANNING_SECONDS)


def jobs(
    *,
    limit: int = 20,
    after: str | None = None,
    status: JobStatus | None = None,
    metadata: Mapping[str, str] | None = None,
    name: str | None = None,
    q: str | None = None,
    tag: Sequence[str] = (),
    model: str | None = None,
    framework: Literal["atomic", "personagym"] | None = None,
    archived: Literal["false", "true", "any"] = "false",
    sort: JobSort = "-created",
) -> Call[JobList]:
    """A page of jobs, each with its models' scores and its cost.

    Args:
        limit: How many, up to 500.
        after: ``next_cursor`` of the previous page.
        status: Only jobs with this status.
        metadata: Only jobs with all these labels.
        name: Only jobs whose names contain this, in any case.
        q: Only jobs whose name, ID, notes, tags or models contain this, in any case.
        tag: Only jobs with all these tags.
        model: Only jobs with a model of this label.
        framework: Only jobs with a task of this framework.
        archived: ``true`` for archived jobs only, ``any`` for all jobs.
        sort: Order; ``-`` reverses it. Jobs without a score or cost come first, or last with ``-``.
    """
    labels = {f"metadata[{key}]": value for key, value in (metadata or {}).items()}
    query: Query = given(
        limit=limit, after=after, status=status, name=name, q=q, model=model, framework=framework
    )
    query = {**query, **labels, **({"tag": tag} if tag else {})}
    query |= {} if archived == "false" else {"archived": archived}
    query |= {} if sort == "-created" else {"sort": sort}
    return Call("GET", "/v1/jobs", read_json, query=query)


def job(job_id: str) -> Call[JobDetail]:
    """A job with its progress."""
    return Call("GET", JOB, read_json, {"job_id": job_id})


def change_budget(
    job_id: str, *, usd: float | None = None, calls: int | None = None, tokens: int | None = None
) -> Call[JobDetail]:
    """Changes limits of a job's budget, of the kinds that it was submitted with; omitted limits stay as they are."""
    limits = {"usd": usd, "calls": calls, "tokens": tokens}
    body = {"budget": {name: limit for name, limit in limits.items() if limit is not None}}
    return Call("PATCH", JOB, read_json, {"job_id": job_id}, body=body)


def change_job(job_id: str, change: JobChangeIn) -> Call[JobDetail]:
    """Changes a job's name, tags, notes or budget, or archives it; omitted fields stay as they are."""
    return Call("PATCH", JOB, read_json, {"job_id": job_id}, body=change)


def delete_job(job_id: str) -> Call[None]:
    """Deletes a finished job with its responses and results."""
    return Call("DELETE", JOB, read_nothing, {"job_id": job_id})


def cancel(job_id: str) -> Call[JobDetail]:
    """Cancels a job: no further calls start; everything already paid for is kept."""
    return Call("POST", f"{JOB}/cancel", read_json, {"job_id": job_id})


def pause(job_id: str) -> Call[JobDetail]:
    """Pauses a job: no further calls start until it is resumed."""
    return Call("POST", f"{JOB}/pause", read_json, {"job_id": job_id})


def resume(job_id: str) -> Call[JobDetail]:
    """Resumes a paused job where it stopped."""
    return Call("POST", f"{JOB}/resume", read_json, {"job_id": job_id})


def retry(job_id: str) -> Call[JobDetail]:
    """Retries what failed or could not be parsed in a finished or paused job."""
    return Call("POST", f"{JOB}/retry", read_json, {"job_id": job_id})


def reread(job_id: str, *, apply: bool = False, examples: int = 3) -> Call[Reread]:
    """Reads a finished job's stored replies with the service's current rules and shows which verdicts change.

    Args:
        job_id: The job.
        apply: Stores the new verdicts; the results are computed again.
        examples: Number of examples of each kind of change.
    """
    body = {"apply": apply, "examples": examples}
    return Call(
        "POST",
        f"{JOB}/reread",
        read_json,
        {"job_id": job_id},
        body=body,
        is_repeatable=not apply,
        seconds=PLANNING_SECONDS,
    )


# -- what came out ------------------------------------------------------------------------------------------------


def results(job_id: str) -> Call[Results]:
    """A job's results so far, also while it runs.

    A notebook shows them as a table; `persona_assay.frames.to_dataframe` converts them to a data frame.
    """
    return Call("GET", f"{JOB}/results", read_results, {"job_id": job_id})


def distances(
    job_id: str, *, persona: str, task: str, model: str | None = None, dimension: str | None = None
) -> Call[RunDistances]:
    """The distances between a cell's runs; model and dimension are required if there are several."""
    query = given(persona=persona, task=task, model=model, dimension=dimension)
    return Call("GET", f"{JOB}/distances", read_json, {"job_id": job_id}, query)


def results_by_instruction(job_id: str) -> Call[ByInstruction]:
    """A job's results for each wording of the persona instruction."""
    return Call("GET", f"{JOB}/instructions", read_json, {"job_id": job_id})


def groups(job_id: str) -> Call[ModelGroups]:
    """A job's models, alone and by their attributes."""
    return Call("GET", f"{JOB}/groups", read_json, {"job_id": job_id})


def environments(job_id: str) -> Call[Environments]:
    """The environments in which PersonaGym's questions are set."""
    return Call("GET", f"{JOB}/environments", read_json, {"job_id": job_id})


def responses(
    job_id: str,
    *,
    model: str | None = None,
    persona: str | None = None,
    task: str | None = None,
    out_of_character: bool = False,
    judges_disagree: bool = False,
    suspicious: bool = False,
    people_against_judges: bool = False,
    min_gap: float | None = None,
    flagged: bool = False,
    note: Literal[
        "unknown_tags", "unknown_finish_word", "cut_off", "repeated_sentences", "role_breaks", "refusal_check"
    ]
    | None = None,
    arm: Literal["persona", "control"] = "persona",
    q: str | None = None,
    sort: Literal["score", "-score", "gap", "-gap", "length", "-length"] | None = None,
    after: str | None = None,
    limit: int = 50,
) -> Call[ResponseList]:
    """A page of responses with their sentences, verdicts and the judges' replies.

    Args:
        job_id: The job.
        model: Only this model's.
        persona: Only this persona's.
        task: Only this task's.
        out_of_character: Only those with a sentence out of character.
        judges_disagree: Only those whose judges disagree.
        suspicious: Only those with an uncertain verdict (possible prompt injection).
        people_against_judges: Only those that people scored at least ``min_gap`` points above or below the judges.
        min_gap: For ``people_against_judges``; default: 2.
        flagged: Only those with a flag, or with one on a sentence.
        note: Only those with this note on their text.
        arm: ``control`` for those without a persona.
        q: Only those whose text contains this.
        sort: The order; with ``-`` from the greatest to the least.
        after: ``next_cursor`` of the previous page.
        limit: How many, up to 500.
    """
    only = {
        "out_of_character": out_of_character,
        "judges_disagree": judges_disagree,
        "suspicious": suspicious,
        "people_against_judges": people_against_judges,
        "flagged": flagged,
    }
    query = given(model=model, persona=persona, task=task, note=note, min_gap=min_gap, q=q, sort=sort)
    query |= given(after=after, limit=limit)
    query |= {name: "true" for name, is_wanted in only.items() if is_wanted}
    query |= {} if arm == "persona" else {"arm": arm}
    return Call("GET", f"{JOB}/responses", read_json, {"job_id": job_id}, query)


def side_by_side(job_id: str, response_id: str, *, other: str | None = None) -> Call[ResponseList]:
    """A response, then those of the other models to the same persona, task, item and run.

    Args:
        job_id: The job.
        response_id: The response.
        other: Another job, whose models' responses are read instead of this job's.
    """
    names = {"job_id": job_id, "response_id": response_id}
    query = {} if other is None else {"with": other}
    return Call("GET", f"{JOB}/responses/{{response_id}}/side-by-side", read_json, names, query)


def judge_calls(job_id: str, response_id: str, *, unit: int | None = None) -> Call[JudgeCalls]:
    """What judges were asked, word for word, and what they replied.

    Args:
        job_id: The job.
        response_id: The response.
        unit: Which of its sentences, from 0; without it, the grades of the whole response.
    """
    names = {"job_id": job_id, "response_id": response_id}
    return Call("GET", f"{JOB}/responses/{{response_id}}/judge-calls", read_json, names, given(unit=unit))


def report(
    job_id: str,
    *,
    format: ReportFormat = "html",  # noqa: A002 - the contract's name
    level: ReportLevel = "verdicts",
) -> Call[bytes]:
    """A job's results as a file, streamed.

    Args:
        job_id: The job.
        format: ``html`` is one self-contained file; ``junit`` checks the job's own thresholds.
        level: What a row of csv, jsonl or parquet describes.
    """
    query = {"format": format} | ({} if level == "verdicts" else {"level": level})
    return Call("GET", f"{JOB}/report", read_bytes, {"job_id": job_id}, query)


def export(
    job_id: str,
    format: ExportFormat,  # noqa: A002 - the contract's name
    *,
    unit: Literal["response", "sentence"] | None = None,
    minimum_margin: float | None = None,
    judge: str | None = None,
    raw_replies: bool | None = None,
) -> Call[bytes]:
    """A job in another tool's format, streamed.

    Args:
        job_id: The job.
        format: ``preferences`` has pairs for DPO, ``rewards`` a reward for each sentence; ``dataset`` is for
            the Hugging Face Hub, ``inspect`` and ``every_eval_ever`` for these tools; ``bundle`` has everything from which another
            installation computes the same results again.
        unit: Whether ``preferences`` are between whole responses or sentences. Default: responses.
        minimum_margin: Of ``preferences``: the least difference of the scores, as a share of the scale.
        judge: Of ``preferences`` and ``rewards``: the only judge whose scores count.
        raw_replies: Whether a ``bundle`` has what judges said, word for word. Default: it has.
    """
    names = {"job_id": job_id, "format": format}
    query = given(unit=unit, minimum_margin=minimum_margin, judge=judge)
    query |= {} if raw_replies is None else {"raw_replies": str(raw_replies).lower()}
    return Call("GET", f"{JOB}/exports/{{format}}", read_bytes, names, query)


def import_bundle(bundle: bytes) -> Call[ImportedJob]:
    """Imports a bundle that another installation exported; its results are computed again and must be the same.

    Args:
        bundle: The file's content.
    """
    headers = {"Content-Type": "application/zip"}
    return Call("POST", "/v1/bundles", read_json, content=bundle, headers=headers, is_repeatable=False)


def figure(
    job_id: str,
    name: str,
    *,
    file_format: Literal["svg", "png"] = "svg",
    model: str | None = None,
    theme: Literal["light", "dark"] | None = None,
) -> Call[bytes]:
    """A figure of the HTML report as a file; a notebook displays it.

    Args:
        job_id: The job.
        name: Which figure; an unknown name is refused with the list of figures.
        file_format: The file's format.
        model: For figures of one model; required if the job has several.
        theme: Default: light; an SVG follows the reader's preference.
    """
    names = {"job_id": job_id, "name": name, "file_format": file_format}
    query = given(model=model, theme=theme)
    return Call("GET", f"{JOB}/figures/{{name}}.{{file_format}}", read_figure, names, query)


# -- decisions ----------------------------------------------------------------------------------------------------


def gate(
    job_id: str,
    thresholds: Sequence[str] = (),
    *,
    interval: IntervalKind = "personas",
    minimum_coverage: float | None = None,
) -> Call[Gate]:
    """Checks a job's results against thresholds: ``pass``, ``fail`` or ``inconclusive``, with reasons.

    Args:
        job_id: The job.
        thresholds: Such as ``acc_atom>=0.8``; default: the job's own.
        interval: Which interval decides: over other personas, over repeated runs of these cells, over other wordings, or over
        other personas and wordings.
        minimum_coverage: A value with less coverage is inconclusive; default: the job's own.
    """
    query = _gate_query(thresholds, interval, minimum_coverage)
    return Call("GET", f"{JOB}/gate", read_json, {"job_id": job_id}, query)


def gate_junit(
    job_id: str,
    thresholds: Sequence[str] = (),
    *,
    interval: IntervalKind = "personas",
    minimum_coverage: float | None = None,
) -> Call[bytes]:
    """The same as JUnit XML, for build servers."""
    query = {**_gate_query(thresholds, interval, minimum_coverage), "format": "junit"}
    return Call("GET", f"{JOB}/gate", read_bytes, {"job_id": job_id}, query)


def compare(a: SideIn, b: SideIn, *, pairing: Pairing = "cells") -> Call[Comparison]:
    """Paired differences a - b of two models, each ``{job, model}`` or ``{baseline}``.

    Args:
        a: The first model.
        b: The second model.
        pairing: What forms a pair: the values of a cell, or of one item that both answered.
    """
    return Call("POST", "/v1/comparisons", read_json, body={"a": a, "b": b, "pairing": pairing})


def compare_models(models: Sequence[SideIn], *, pairing: Pairing = "cells") -> Call[ComparisonOfModels]:
    """Compares every pair of several models and ranks them.

    Args:
        models: 2 to 20, each ``{job, model}`` or ``{baseline}``; ``{job}`` stands for all models of the job.
        pairing: What is compared: the values of a cell, or of one item that all answered.
    """
    return Call("POST", "/v1/comparisons", read_json, body={"models": [*models], "pairing": pairing})


def bridge(old: JudgeIn, new: JudgeIn, *, within: float = 0.05) -> Call[Bridge]:
    """How far two judges agree on the same texts, and the old one's totals as the new one would give them.

    Args:
        old: A judge, as ``{job, judge}``; ``judge`` may be left out where the job has one.
        new: Another; a job on texts of the old one's, or a sample of them.
        within: The margin within which the judges count as interchangeable, as a share of a figure's range.
    """
    return Call("POST", "/v1/bridges", read_json, body={"old": old, "new": new, "within": within})


# -- sets ---------------------------------------------------------------------------------------------------------


def create_upload(
    size: int, *, name: str | None = None, sha256: str | None = None, purpose: str | None = None
) -> Call[Upload]:
    """Begins an upload of existing responses; the client's `upload` sends a whole file.

    Args:
        size: The file's bytes.
        name: Its name.
        sha256: Its digest, in hexadecimal digits, by which a client finds the upload again.
        purpose: ``import`` of a file that another tool wrote, for `read_import`.
    """
    known = given(filename=name, sha256=sha256, purpose=purpose)
    pairs = [f"{each} {b64encode(value.encode()).decode()}" for each, value in known.items()]
    told = {"Upload-Metadata": ",".join(pairs)} if pairs else {}
    return Call(
        "POST",
        "/v1/uploads",
        read_json,
        headers={"Upload-Length": str(size), **told},
        is_repeatable=False,
    )


def add_upload_part(upload_id: str, offset: int, part: bytes, *, checksum: str | None = None) -> Call[None]:
    """Adds bytes to an upload.

    Args:
        upload_id: The upload.
        offset: Where the part begins; anywhere but at the upload's ``received`` it is refused.
        part: The bytes.
        checksum: An algorithm and a digest in base64, such as ``sha1 q80…``.
    """
    headers = {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
    checked = {"Upload-Checksum": checksum} if checksum else {}
    return Call(
        "PATCH",
        UPLOAD,
        read_nothing,
        {"upload_id": upload_id},
        content=part,
        headers=headers | checked,
    )


def get_upload(upload_id: str) -> Call[Upload]:
    """How much of an upload has arrived, its records so far, and the first errors."""
    return Call("GET", UPLOAD, read_json, {"upload_id": upload_id})


def uploads(*, limit: int = 20, after: str | None = None) -> Call[UploadList]:
    """Uploads, newest first."""
    return Call("GET", "/v1/uploads", read_json, query=given(limit=limit, after=after))


def delete_upload(upload_id: str) -> Call[None]:
    """Deletes an upload with its records. Jobs that used it keep their texts."""
    return Call("DELETE", UPLOAD, read_nothing, {"upload_id": upload_id})


def keep_personas(
    personas: Sequence[str | Mapping[str, Any]] | Mapping[str, Any], *, name: str | None = None
) -> Call[PersonaSet]:
    """Stores a set of personas. The same personas always give the same set.

    Args:
        personas: Descriptions, ids of built-in personas, or objects; or descriptions or objects by id.
        name: The set's name, for people.
    """
    body = {"personas": personas} | ({} if name is None else {"name": name})
    return Call("POST", "/v1/persona-sets", read_json, body=body)


def keep_persona_file(
    text: str, form: Literal["jsonl", "csv"], *, name: str | None = None
) -> Call[PersonaSet]:
    """Stores the personas of a JSON Lines or CSV file as a set; pointers in errors begin with ``/lines/<number>``."""
    headers = {"Content-Type": LINES[form]}
    return Call(
        "POST", "/v1/persona-sets", read_json, query=given(name=name), content=text.encode(), headers=headers
    )


def generate_personas(
    count: int, reasoner: str | ModelIn, *, name: str | None = None, idempotency_key: str | None = None
) -> Call[JobDetail]:
    """Generates distinct personas with a reasoner.

    Args:
        count: How many.
        reasoner: The model that writes them.
        name: The set's name, for people.
        idempotency_key: As for `submit`.

    Returns:
        The job that does it; once it has ended, its ``links`` have the ``persona_set``.
    """
    body = {"generate": {"count": count, "reasoner": reasoner}} | ({} if name is None else {"name": name})
    return Call("POST", "/v1/persona-sets", read_json, body=body, headers=repetition_key(idempotency_key))


def persona_set(set_id: str) -> Call[PersonaSet]:
    """A stored or built-in set with its personas."""
    return Call("GET", "/v1/persona-sets/{set_id}", read_json, {"set_id": set_id})


def persona_sets(*, limit: int = 20, after: str | None = None) -> Call[PersonaSetList]:
    """A page of stored persona sets, newest first, without their personas."""
    return Call("GET", "/v1/persona-sets", read_json, query=given(limit=limit, after=after))


def keep_questions(
    questions: Questions,
    *,
    name: str | None = None,
    exemplars: Mapping[str, Mapping[str, Sequence[Sequence[str] | None]]] | None = None,
    rubrics: str | None = None,
) -> Call[QuestionSet]:
    """Stores a set of PersonaGym questions, by task by persona description.

    Args:
        questions: The questions.
        name: The set's name.
        exemplars: For each question of a persona and task five texts, which deserve the scores 1 to 5, or ``None``.
        rubrics: A rubric set, if the questions are for tasks that it adds.
    """
    brought = {} if exemplars is None else {"exemplars": exemplars}
    body = {"questions": questions, **brought, **given(name=name, rubrics=rubrics)}
    return Call("POST", "/v1/question-sets", read_json, body=body)


def question_set(set_id: str) -> Call[QuestionSet]:
    """A set with its questions."""
    return Call("GET", "/v1/question-sets/{set_id}", read_json, {"set_id": set_id})


def question_set_exemplars(
    set_id: str, *, limit: int = 20, after: str | None = None
) -> Call[SetExemplarList]:
    """A page of the exemplars that a question set keeps."""
    query = given(limit=limit, after=after)
    return Call("GET", "/v1/question-sets/{set_id}/exemplars", read_json, {"set_id": set_id}, query=query)


def exemplars(job_id: str, *, limit: int = 20, after: str | None = None) -> Call[JobExemplarList]:
    """A page of the exemplars by which PersonaGym's judges grade."""
    query = given(limit=limit, after=after)
    return Call("GET", f"{JOB}/exemplars", read_json, {"job_id": job_id}, query=query)


def question_sets(*, limit: int = 20, after: str | None = None) -> Call[QuestionSetList]:
    """A page of question sets, newest first, without their questions."""
    return Call("GET", "/v1/question-sets", read_json, query=given(limit=limit, after=after))


def keep_rubrics(rubrics: RubricSetIn) -> Call[RubricSet]:
    """Stores a set of rubrics and prompts for tasks; a job names it in ``rubrics``."""
    return Call("POST", "/v1/rubric-sets", read_json, body=rubrics)


def rubric_set(set_id: str) -> Call[RubricSet]:
    """A rubric set with its words."""
    return Call("GET", "/v1/rubric-sets/{set_id}", read_json, {"set_id": set_id})


def rubric_sets(*, limit: int = 20, after: str | None = None) -> Call[RubricSetList]:
    """A page of rubric sets, newest first, without their words."""
    return Call("GET", "/v1/rubric-sets", read_json, query=given(limit=limit, after=after))


# -- what people say ----------------------------------------------------------------------------------------------


def keep_annotations(annotations: Sequence[Mapping[str, Any]]) -> Call[KeptAnnotations]:
    """Stores human labels of sentences, pairs of sentences and responses: all or none.

    Args:
        annotations: Each ``{annotator, response, unit, dimension, score}``, or ``{…, other_response, other_unit,
            preferred}`` for a pair. Sending the same again changes nothing.
    """
    return Call("POST", "/v1/annotations", read_json, body={"annotations": list(annotations)})


def keep_annotation_file(text: str) -> Call[KeptAnnotations]:
    """Stores the annotations of a CSV file; pointers in errors begin with ``/lines/<number>``."""
    headers = {"Content-Type": LINES["csv"]}
    return Call("POST", "/v1/annotations", read_json, content=text.encode(), headers=headers)


def annotations(
    *, job: str | None = None, annotator: str | None = None, limit: int = 50, after: str | None = None
) -> Call[AnnotationList]:
    """A page of annotations, in the order in which they were first given."""
    query = given(job=job, annotator=annotator, limit=limit, after=after)
    return Call("GET", "/v1/annotations", read_json, query=query)


def annotations_csv(*, job: str | None = None, annotator: str | None = None) -> Call[bytes]:
    """All annotations as CSV, in the form that `keep_annotation_file` takes."""
    query = given(job=job, annotator=annotator, format="csv")
    return Call("GET", "/v1/annotations", read_bytes, query=query)


def set_flag(flag: FlagIn) -> Call[Flag]:
    """Flags a sentence or a response, for example because the judge is wrong; flags count in no metric.

    Args:
        flag: ``{annotator, response, unit, score, note}``; without ``unit`` the whole response. It replaces the annotator's earlier one.
    """
    return Call("POST", "/v1/flags", read_json, body=flag)


def flags(*, job: str | None = None, limit: int = 50, after: str | None = None) -> Call[FlagList]:
    """A page of flags, newest first."""
    return Call("GET", "/v1/flags", read_json, query=given(job=job, limit=limit, after=after))


def remove_flag(flag_id: str) -> Call[Flag]:
    """Removes a flag and returns it."""
    return Call("DELETE", "/v1/flags/{flag_id}", read_json, {"flag_id": flag_id})


def draw_labelling_round(wanted: LabellingRoundIn) -> Call[LabellingRound]:
    """Creates a labelling round of sentences, pairs or responses; people label at ``links.page``. The same body gives the same round."""
    return Call("POST", "/v1/labelling-rounds", read_json, body=wanted)


def labelling_round(round_id: str) -> Call[LabellingRound]:
    """What was drawn of how much, and how much each annotator has answered."""
    return Call("GET", "/v1/labelling-rounds/{round_id}", read_json, {"round_id": round_id})


def calibration(job_id: str, *, half_width: float | None = None) -> Call[JobCalibration]:
    """A job's values as people would score them, estimated from the labels of labelling rounds.

    Args:
        job_id: The job.
        half_width: Half-width of the interval for which the labels needed are counted; default: 0.03.
    """
    query = given(half_width=half_width)
    return Call("GET", f"{JOB}/calibration", read_json, {"job_id": job_id}, query=query)


def human_study(job_id: str) -> Call[HumanStudy]:
    """How far people agree with a job's judges by model and task, and with each other."""
    return Call("GET", f"{JOB}/human-study", read_json, {"job_id": job_id})


# -- what there is ------------------------------------------------------------------------------------------------


def personas() -> Call[PersonaList]:
    """Built-in personas, their sets, and the instructions that assign them."""
    return Call("GET", "/v1/personas", read_json)


def tasks() -> Call[TaskList]:
    """Tasks with their prompts, and the dimensions that they measure."""
    return Call("GET", "/v1/tasks", read_json)


def check_model(model: CheckIn) -> Call[ModelCheck]:
    """Makes one short call to a model and reports whether a job could use it.

    Args:
        model: The model, as a job names it; with ``"call": False`` no call is made.

    Returns:
        The findings. A model that fails is not an error: ``works`` is false.
    """
    return Call("POST", "/v1/models/check", read_json, body=model)


def models() -> Call[ConnectionList]:
    """The configured connections; a model is named ``connection/name``."""
    return Call("GET", "/v1/models", read_json)


def baselines(
    *,
    source: Literal["atomic", "personagym"] | None = None,
    model: str | None = None,
    persona: str | None = None,
    task: str | None = None,
) -> Call[Baselines]:
    """The two papers' published results in the form of a job's."""
    query = given(source=source, model=model, persona=persona, task=task)
    return Call("GET", "/v1/baselines", read_json, query=query)


def name_baseline(name: str, *, job: str, model: str | None = None) -> Call[NamedBaseline]:
    """Names a model of a finished job, to compare others with and hold them to; what had the name before loses it.

    Args:
        name: The name, of your own choice.
        job: The job's id.
        model: One of its models; required if it has several.
    """
    return Call("PUT", BASELINE, read_json, {"name": name}, body={"job": job} | given(model=model))


def baseline(name: str) -> Call[NamedBaseline]:
    """A baseline of your own."""
    return Call("GET", BASELINE, read_json, {"name": name})


def rename_baseline(name: str, new_name: str) -> Call[NamedBaseline]:
    """Gives a baseline another name."""
    return Call("PATCH", BASELINE, read_json, {"name": name}, body={"name": new_name})


def delete_baseline(name: str) -> Call[None]:
    """Takes a baseline's name away; its job stays."""
    return Call("DELETE", BASELINE, read_nothing, {"name": name})


def _gate_query(
    thresholds: Sequence[str], interval: IntervalKind, minimum_coverage: float | None
) -> dict[str, Any]:
    return {"threshold": list(thresholds), "interval": interval} | given(minimum_coverage=minimum_coverage)
