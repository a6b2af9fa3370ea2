"""The columns of the flat exports: the same names in the same order in CSV, JSON Lines and Parquet."""

from dataclasses import dataclass
from enum import StrEnum

from app.domain.metrics.registry import METRICS
from app.domain.results.grouping_check import CHECK_METRICS


class ColumnType(StrEnum):
    """What a column holds; any column may lack a value."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of an export.

    Attributes:
        name: Its name in every format.
        type: What it holds.
        meaning: What the value means, with its unit or range.
    """

    name: str
    type: ColumnType
    meaning: str


_TEXT, _INTEGER, _NUMBER, _BOOLEAN = ColumnType

VERDICT_COLUMNS = (
    Column("model", _TEXT, "Label of the evaluated model."),
    Column("persona", _TEXT, "Id of the persona that it played."),
    Column("task", _TEXT, "Id of the task."),
    Column("dimension", _TEXT, "Id of the dimension on which the sentence was judged."),
    Column("level", _TEXT, "The persona's level on that dimension."),
    Column("item", _TEXT, "Id of the question or context."),
    Column("item_text", _TEXT, "The question or context; empty where the task has none."),
    Column("run", _INTEGER, "Repetition of the cell, from 0."),
    Column("instruction", _INTEGER, "Number of the persona instruction, from 0; missing if unknown."),
    Column("iteration", _INTEGER, "Repetition under that instruction, from 0; missing if unknown."),
    Column("response_id", _TEXT, "Id of the response."),
    Column("response_status", _TEXT, "answered, refused, filtered, no_answer or failed."),
    Column("response_error", _TEXT, "Why there is no text, or none to be judged."),
    Column("response_finish_reason", _TEXT, "Why the model stopped; missing for existing texts."),
    Column(
        "response_thoughts",
        _TEXT,
        "What the model thought before it wrote the text; only in the response's first row, as it may be long.",
    ),
    Column("unit", _INTEGER, "The sentence's position in the response, from 0; missing without a sentence."),
    Column("unit_start", _INTEGER, "Offset of its first character in the response's text."),
    Column("unit_end", _INTEGER, "Offset after its last character."),
    Column("unit_text", _TEXT, "The sentence as the judge read it."),
    Column("judge", _TEXT, "Label of the judge; missing where no verdict exists."),
    Column("status", _TEXT, "scored, not_applicable, refused, filtered, unparsed or failed."),
    Column("score", _INTEGER, "The score on the dimension's scale, where the status is scored."),
    Column(
        "in_character", _BOOLEAN, "Whether the score lies in the persona's level; missing without a score."
    ),
    Column(
        "raw", _TEXT, "The judge's reply, word for word; missing where it was not asked or never answered."
    ),
    Column("judged", _TEXT, "What the row judges: sentence, or response for a PersonaGym grade (1 to 5)."),
    Column(
        "group_size", _INTEGER, "Sentences that the judge was asked about in the same call; 1 where alone."
    ),
    Column(
        "response_reused", _TEXT, "same_job or other_job: whose text it is; missing if the job called for it."
    ),
    Column("reused", _TEXT, "The same of the judge's reply."),
    Column(
        "suspicion",
        _TEXT,
        "What makes the verdict doubtful: text (it addresses the judge), reply (without the key word) or both; missing if nothing.",
    ),
    Column("finish_reason", _TEXT, "Why the judge's reply ended; missing where there is none."),
    Column("thoughts", _TEXT, "What the judge thought before; missing if nothing is known of that."),
    Column("error", _TEXT, "Code and words of the judge's last call, where none was answered."),
)
"""One row for each verdict, and for each PersonaGym grade one without dimension and sentence. A response without a sentence (failed, empty) and a sentence without a verdict keep a
row for each dimension on which they were to be judged, with the fields that do not exist missing."""

UNIT_STATUSES = ("total", "scored", "not_applicable", "refused", "unparsed", "failed", "filtered")
RESPONSE_COUNTS = ("total", "without_scored_unit", "with_one_scored_unit")
GENERATION_COUNTS = (
    *("planned", "answered", "refused", "failed", "empty", "refused_units"),
    *("filtered", "no_answer", "truncated"),
)


def _metric_columns(name: str) -> tuple[Column, ...]:
    return (
        Column(name, _NUMBER, f"The metric {name}; missing where it does not exist."),
        Column(f"{name}_n", _INTEGER, "What it was taken over: runs, or pairs of runs for rc_atom."),
        Column(f"{name}_reason", _TEXT, "Why it does not exist."),
    )


CELL_COLUMNS = (
    Column("model", _TEXT, "Label of the evaluated model."),
    Column("persona", _TEXT, "Id of the persona."),
    Column("task", _TEXT, "Id of the task."),
    Column("dimension", _TEXT, "Id of the dimension."),
    Column("level", _TEXT, "The persona's level on that dimension."),
    Column("simulated", _BOOLEAN, "Whether the model or a judge was a simulated one."),
    Column("scale_minimum", _INTEGER, "Lowest score of the dimension."),
    Column("scale_maximum", _INTEGER, "Highest score of the dimension."),
    Column("runs", _INTEGER, "Runs planned."),
    Column("runs_used", _INTEGER, "Runs with a scored sentence."),
    *(column for metric in METRICS for column in _metric_columns(metric.name)),
    *(column for metric in METRICS for part in metric.names[1:] for column in _metric_columns(part)),
    *(
        Column(f"units_{name}", _INTEGER, f"Verdicts, one for each sentence and judge: {name}.")
        for name in UNIT_STATUSES
    ),
    *(
        Column(f"responses_{name}", _INTEGER, f"Judged responses, once for each judge: {name}.")
        for name in RESPONSE_COUNTS
    ),
    *(Column(f"generation_{name}", _INTEGER, f"Before judging: {name}.") for name in GENERATION_COUNTS),
    Column("coverage", _NUMBER, "Share of the planned verdicts that the metrics are of."),
    Column("verdicts_counted", _INTEGER, "How many verdicts these are."),
    Column("verdicts_planned", _INTEGER, "How many are planned."),
    Column("acc_atom_composite", _NUMBER, "ACC_atom with refusals as out of character."),
    Column("acc_atom_lower_bound", _NUMBER, "ACC_atom if all that is missing were out of character."),
    Column("acc_atom_upper_bound", _NUMBER, "ACC_atom if all that is missing were in character."),
)
"""One row for each cell of the results document."""

GRADE_STATUSES = ("total", "scored", "refused", "unparsed", "failed", "filtered")
RESPONSE_STATUSES = ("planned", "answered", "refused", "failed", "filtered", "no_answer")
PERSONA_SCORE_COLUMNS = (
    Column("model", _TEXT, "Label of the evaluated model."),
    Column("persona", _TEXT, "Id of the persona."),
    Column("of", _TEXT, "What the score is of: task, or persona for the PersonaScore over all tasks."),
    Column("task", _TEXT, "Id of the task; missing in the row of the PersonaScore."),
    Column("simulated", _BOOLEAN, "Whether the job ran on simulated models."),
    Column("score", _NUMBER, "The score, 1 to 5; missing where it does not exist."),
    Column("n", _INTEGER, "Questions that it was taken over."),
    Column("reason", _TEXT, "Why it does not exist."),
    Column("questions", _INTEGER, "Questions that were asked."),
    *(
        Column(f"grades_{name}", _INTEGER, f"Grades, one for each response and judge: {name}.")
        for name in GRADE_STATUSES
    ),
    *(Column(f"responses_{name}", _INTEGER, f"Responses: {name}.") for name in RESPONSE_STATUSES),
)
"""One row for each model, persona and PersonaGym task, followed by one for the PersonaScore over the tasks."""

JUDGING_CHECK_COLUMNS = (
    Column("judge", _TEXT, "Label of the judge."),
    Column("task", _TEXT, "Id of the task; missing in the row over all tasks."),
    Column("scale_minimum", _INTEGER, "Lowest score of the dimensions."),
    Column("scale_maximum", _INTEGER, "Highest score of the dimensions."),
    Column("sentences", _INTEGER, "Sentences judged both with others in one call and alone."),
    Column("responses", _INTEGER, "Responses that they are from."),
    Column("left_out", _INTEGER, "Those without a readable verdict alone, which are in no figure."),
    Column("suspicious", _INTEGER, "Those whose grouped verdict is doubtful, which are in all figures."),
    *(
        column
        for name in CHECK_METRICS
        for column in (
            Column(name, _NUMBER, f"The figure {name}; missing where it does not exist."),
            Column(f"{name}_n", _INTEGER, "Sentences that it was taken over."),
            Column(f"{name}_low", _NUMBER, "Lower end of its 95 % interval."),
            Column(f"{name}_high", _NUMBER, "Upper end of its 95 % interval."),
            Column(f"{name}_reason", _TEXT, "Why it does not exist."),
        )
    ),
)
"""One row for each judge, over all tasks and for each of them, of a job that judges several sentences a call."""
