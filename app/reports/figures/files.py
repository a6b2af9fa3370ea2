"""A job's figures as files, each by its name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from app.domain.personagym.environments import Environments
from app.domain.results.contract import Results
from app.reports.figures import plots
from app.reports.figures.plot import Plot, as_file
from app.reports.views.accuracy import Scatter
from app.reports.views.distributions import distributions
from app.reports.views.in_words import InWords
from app.reports.views.leaderboard import ATOMIC, PERSONAGYM, Leaderboard
from app.reports.views.level_bounds import LevelBounds
from app.reports.views.persona_scores import persona_scores
from app.reports.views.run_matrices import run_matrices, varying_cells
from app.reports.views.summary import Summary

Json = Mapping[str, Any]

NOTE = "Simulated: these values describe no real model."


def figure_file(
    results: Results,
    name: str,
    *,
    model: str,
    distances: Sequence[Json],
    among: Sequence[Leaderboard] = (),
    accuracy: Sequence[Scatter] = (),
    environments: Environments | None = None,
    file_format: str,
    theme: str | None,
) -> bytes | None:
    """A figure's bytes; ``None`` where the job has nothing to show in it.

    Args:
        results: The job's.
        name: The figure's name.
        model: Whose figure, for those of one model.
        distances: Those of :func:`~app.reports.views.run_matrices.varying_cells`, for ``runs``.
        among: The job's figures among published ones, for figures of these.
        accuracy: ACC against ACC_atom, for ``accuracy``.
        environments: Those of the job's personas, for ``environments``.
        file_format: ``"svg"`` or ``"png"``.
        theme: ``"light"``, ``"dark"`` or ``None``.
    """
    plot = (
        plots.environments_plot(environments)
        if name == "environments"
        else _plot(results, name, model, distances, among, accuracy)
    )
    if plot is None:
        return None
    note = NOTE if results.simulated else ""
    return as_file(plot, file_format, theme, note)


def _plot(
    results: Results,
    name: str,
    model: str,
    distances: Sequence[Json],
    among: Sequence[Leaderboard],
    accuracy: Sequence[Scatter],
) -> Plot | None:
    cells, level_bounds = results.cells, LevelBounds.of(results.cells)
    summary, words = Summary(results, level_bounds), InWords.of(results)

    def published(paper: str) -> Plot | None:
        found = [each for each in among if each.source.id == paper]
        return plots.published_plot(found[0]) if found else None

    def scores() -> Plot | None:
        return plots.scores_plot(distributions(cells, level_bounds, [row.model for row in summary.models()]))

    builders: Mapping[str, Callable[[], Plot | None]] = {
        "models": lambda: plots.models_plot(summary.models()),
        "persona_scores": lambda: plots.persona_scores_plot(persona_scores(results)),
        "control": lambda: plots.control_plot(results.control),
        "published": lambda: published(ATOMIC),
        "published_persona_scores": lambda: published(PERSONAGYM),
        "heat_map": lambda: plots.heat_map_plot(summary.heat_maps([model])[0], words),
        "scores": scores,
        "cells": lambda: plots.cells_plot(cells, level_bounds, model, words),
        "accuracy": lambda: plots.accuracy_plot(accuracy),
        "refusals": lambda: plots.refusals_plot(results),
        "persona_words": lambda: plots.persona_words_plot(results),
        "runs": lambda: plots.runs_plot(run_matrices(varying_cells(cells), distances), words),
    }
    return builders[name]()
