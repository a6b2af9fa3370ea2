"""The report that people read: one self-contained HTML page that loads nothing and runs only its own script."""

import base64
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256

from jinja2 import Environment, Template
from markupsafe import Markup

from app.domain.results.comparison import ACC_ATOM, PERSONA_SCORE
from app.domain.results.contract import Results
from app.reports.figures import plots
from app.reports.figures.plot import inline_svg
from app.reports.material import Material
from app.reports.views.cards import Card, worst_sentence
from app.reports.views.coefficients import coefficients
from app.reports.views.control import smallest_gains
from app.reports.views.distributions import distributions
from app.reports.views.human_study import study_tables
from app.reports.views.in_words import InWords
from app.reports.views.instructions import instruction_tables
from app.reports.views.level_bounds import LevelBounds
from app.reports.views.persona_scores import PersonaScores, persona_scores, score_step
from app.reports.views.run_matrices import run_matrices, varying_cells
from app.reports.views.summary import (
    DECIMALS,
    HEAT_METRICS,
    HEAT_ROWS,
    HEAT_TASKS,
    SUMMARY_METRICS,
    ModelRow,
    Summary,
)
from app.reports.views.top_comparison import (
    TopComparison,
    compare_top,
    too_little_of,
)
from app.web.templates import make_environment, page_script, style_sheet

FOLDER = "report"
TEMPLATES = "report.html.j2", "card.html.j2", "sections/heat_map.html.j2", "sections/responses.html.j2"

PAGE_BYTES, FEWEST_RESPONSE_BYTES = 2_000_000, 200_000
"""What a page may take, and what its responses take of it even where all else leaves them less."""
FILTER_BYTES = 30_000
"""What stands around the responses, mostly choices of filters."""
RESPONSES_PLACE = "<!-- responses -->"
"""Where responses go: no text from outside has its first character."""
HEAT_SQUARES, FEWEST_HEAT_ROWS = 6_000, 5
"""Figures in all heat maps together, of some 90 bytes each, and rows that each heat map has nevertheless."""
CELL_PLOTS = 4
"""Models, from the first on, whose scores are drawn cell by cell; some 45 kB each in a job of the paper's size."""
WEAKEST_CELLS = 5
MOST_PERSONAS = 200


def html_report(material: Material) -> bytes:
    """A job's report as one HTML file, under 2 MB but for jobs of thousands of cells. The same material gives the same page."""
    results, published = Results.read(material.results), material.published
    level_bounds, words, sample = LevelBounds.of(results.cells), InWords.of(results), material.sample
    styles, script = style_sheet(FOLDER, "report.css"), page_script(FOLDER, "report.js")
    summary = Summary(results, level_bounds)
    models = summary.models()
    gym = persona_scores(results)
    figures = _figures(results, level_bounds, models, gym, material)
    shown = sample.by_importance()
    top = _top_comparison(results, models, gym)
    page = _template("report.html.j2").render(
        results=results,
        words=words,
        policy=_policy(styles, script),
        styles=Markup(styles),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704
        models=models,
        summary_metrics=SUMMARY_METRICS,
        heat_metrics=HEAT_METRICS,
        gym=gym,
        top=top,
        equal=_equal(models, gym, top),
        doubtful=_doubtful(results, models, gym),
        among=published.among,
        beside=material.beside,
        held=material.held,
        figures=figures,
        cell_plots=CELL_PLOTS,
        most_personas=MOST_PERSONAS,
        made=results.persona_set,
        check=results.judging_check,
        order_check=results.order_check,
        control=results.control,
        opposite=results.opposite,
        smallest_gains=smallest_gains(results.control),
        suspicion=results.suspicion,
        agreement=results.verdict_agreement,
        calibrated=material.calibrated,
        error=material.error,
        study_tables=[] if material.study is None else study_tables(material.study),
        coefficients=coefficients(results),
        by_instruction=material.by_instruction,
        lengths=published.lengths,
        environments=material.environments,
        groups=published.groups,
        published_groups=published.published_groups,
        instruction_tables=instruction_tables(material.by_instruction, [row.model for row in models]),
        worst=worst_sentence(results, level_bounds),
        whole_shown=bool(shown) and shown[0].id == sample.always,
        weakest_levels=summary.weakest_levels(),
        weakest_cells=summary.weakest_cells(WEAKEST_CELLS),
        quotes=[(row.model, sample.quotes(row.model)) for row in models],
        heat=_heat(results, summary, models, words, material.service),
        service=material.service,
        responses_place=Markup(RESPONSES_PLACE),  # noqa: S704 - our own
        manifest=json.dumps(results.manifest, ensure_ascii=False, indent=2),
    )
    room = PAGE_BYTES - len(page.encode()) - FILTER_BYTES
    cards = _fitting(shown, max(room, FEWEST_RESPONSE_BYTES))
    responses = _template("sections/responses.html.j2").render(
        cards=cards,
        cards_html=_cards_html(cards),
        responses_seen=sample.seen,
        job=results.job,
        by_sentence=bool(models) or gym is None,
        graded=gym is not None,
        service=material.service,
    )
    return page.replace(RESPONSES_PLACE, responses, 1).encode()


def _top_comparison(
    results: Results, models: Sequence[ModelRow], gym: PersonaScores | None
) -> TopComparison | None:
    """How the best model stands to the next, by what the verdict is about."""
    if gym is not None and gym.alone:
        return compare_top(results, [total.model for total in gym.ranked], PERSONA_SCORE)
    return compare_top(results, [row.model for row in models if row.acc_atom is not None], ACC_ATOM)


def _equal(models: Sequence[ModelRow], gym: PersonaScores | None, top: TopComparison | None) -> Sequence[str]:
    """The models whose figure is shown equal to the first one's, that one included; empty if none is, or it leads."""
    if top is None or top.shown:
        return []
    figures = (
        [(total.model, gym.compared(total).value) for total in gym.ranked]
        if gym is not None and gym.alone
        else [(row.model, row.acc_atom) for row in models]
    )
    shown = [(model, round(value, DECIMALS)) for model, value in figures if value is not None]
    equal = [model for model, value in shown if value == shown[0][1]]
    return equal if len(equal) > 1 else []


def _doubtful(results: Results, models: Sequence[ModelRow], gym: PersonaScores | None) -> dict[str, float]:
    """The models of which too little is there for what the verdict is about, and the share that is."""
    if gym is not None and gym.alone:
        return too_little_of(results, [total.model for total in gym.ranked], PERSONA_SCORE)
    return too_little_of(results, [row.model for row in models if row.acc_atom is not None], ACC_ATOM)


def _heat(
    results: Results, summary: Summary, models: Sequence[ModelRow], words: InWords, service: str
) -> Markup:
    """The models' heat maps, each of as many rows as there is room for."""
    tasks = min(HEAT_TASKS, len({cell.task for cell in results.cells}))
    columns = (tasks + 1) * len(HEAT_METRICS) * max(1, len(models))
    rows = max(FEWEST_HEAT_ROWS, min(HEAT_ROWS, HEAT_SQUARES // columns))
    maps = summary.heat_maps((row.model for row in models), rows)
    # The template escapes what it is given; its result must not be escaped again.
    page = _template("sections/heat_map.html.j2")
    return Markup(  # noqa: S704
        page.render(heat_maps=maps, heat_metrics=HEAT_METRICS, job=results.job, words=words, service=service)
    )


def _figures(
    results: Results,
    level_bounds: LevelBounds,
    models: Sequence[ModelRow],
    gym: PersonaScores | None,
    material: Material,
) -> dict[str, Markup]:
    """The page's figures by name, of those that the job has; each model's cells are ``cells-1`` and so on."""
    labels, words = [row.model for row in models], InWords.of(results)
    varying = varying_cells(results.cells) if material.distances else []
    found = [
        plots.models_plot(models),
        plots.persona_scores_plot(gym),
        plots.control_plot(results.control),
        *map(plots.published_plot, material.published.among),
        plots.scores_plot(distributions(results.cells, level_bounds, labels)),
        *(
            plots.cells_plot(results.cells, level_bounds, label, words, f"cells-{n}")
            for n, label in enumerate(labels[:CELL_PLOTS], 1)
        ),
        plots.accuracy_plot(material.published.accuracy),
        plots.refusals_plot(results),
        plots.environments_plot(material.environments),
        plots.persona_words_plot(results),
        plots.runs_plot(run_matrices(varying, material.distances), words),
    ]
    # Our own drawing; what it contains of others' texts is escaped in it.
    return {plot.name: Markup(inline_svg(plot)) for plot in found if plot is not None}  # noqa: S704


def _fitting(cards: list[Card], room: int) -> list[Card]:
    """As many of the most important cards as there is room for, in bytes; the worst of them first."""
    chosen, left = [], room
    for card in cards:
        left -= len(_card_html(card).encode())
        if left < 0:
            break
        chosen.append(card)
    return sorted(chosen, key=lambda card: (card.fidelity, -card.deviation, card.id))


def _cards_html(cards: list[Card]) -> Iterator[Markup]:
    for card in cards:
        # The template escapes what it is given; its result must not be escaped again.
        yield Markup(_card_html(card))  # noqa: S704


def _card_html(card: Card) -> str:
    return _template("card.html.j2").render(card=card, unfolded=False)


def _headings(part: Markup) -> list[tuple[str, Markup]]:
    """The sections of a part of the page: where each one's heading is, and its words."""
    found = re.findall(r'<h2 id="([^"]+)">(.*?)</h2>', part, re.DOTALL)
    return [(id_, Markup(words)) for id_, words in found]  # noqa: S704 - what a template has made already


def _policy(styles: str, script: str) -> str:
    """The page's content security policy: nothing but its own style sheet and its own script."""
    return (
        f"default-src 'none'; style-src '{_digest(styles)}'; script-src '{_digest(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return f"sha256-{base64.b64encode(sha256(content.encode()).digest()).decode()}"


def prepare() -> None:
    """Compile the page's templates."""
    for name in TEMPLATES:
        _template(name)


@cache
def _template(name: str) -> Template:
    return _environment().get_template(name)


@cache
def _environment() -> Environment:
    environment = make_environment(FOLDER)
    environment.filters |= {"score_step": score_step, "headings": _headings}
    return environment
