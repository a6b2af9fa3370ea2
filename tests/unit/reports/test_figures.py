"""The figures as files: what they contain, whose colours, and what no name from outside may do to them."""

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from app.domain.personagym.environments import EnvironmentsOfPersona, environments_of
from app.reports.figures.files import NOTE, figure_file
from app.reports.figures.grids import draw_runs
from app.reports.figures.palette import DARK, LIGHT, ROLES
from app.reports.figures.plot import svg
from app.reports.figures.plots import environments_plot
from app.reports.views.accuracy import scatters
from app.reports.views.in_words import InWords
from app.reports.views.leaderboard import leaderboards
from app.reports.views.run_matrices import run_matrices, varying_cells
from app.services.results.baselines import BaselineFilter, baselines
from tests.unit.gym_sample import graded_response, gym_results_of
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.sample import Sample, response_of, results_of, sample
from tests.unit.results_sample import read

ATOMIC = ("models", "published", "heat_map", "scores", "cells", "accuracy")
PUBLISHED = baselines(BaselineFilter())
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def job() -> Sample:
    return sample()


def drawn(
    results: dict[str, Any],
    name: str,
    file_format: str = "svg",
    theme: str | None = None,
    model: str = "simulated/steady",
) -> bytes | None:
    found = read(results)
    return figure_file(
        found,
        name,
        model=model,
        distances=[],
        among=leaderboards(found, PUBLISHED),
        accuracy=scatters(found, PUBLISHED),
        file_format=file_format,
        theme=theme,
    )


def parsed(content: bytes | None) -> ET.Element:
    assert content is not None
    return ET.fromstring(content)


def texts(content: bytes | None) -> list[str]:
    return ["".join(element.itertext()) for element in parsed(content).iter(f"{SVG}text")]


class TestFiles:
    @pytest.mark.parametrize("name", ATOMIC)
    def test_an_svg_is_text_without_a_script_a_style_attribute_or_a_foreign_address(
        self, job: Sample, name: str
    ) -> None:
        content = drawn(job.results, name)
        root = parsed(content)
        labels = [root.find(f"{SVG}{tag}") for tag in ("title", "desc")]
        assert all(label is not None and label.text for label in labels)
        assert texts(content)
        assert NOTE in texts(content)
        assert not any("style" in element.attrib for element in root.iter())
        assert set(re.findall(rb"https?://[\w./]+", content or b"")) == {b"http://www.w3.org/2000/svg"}

    def test_the_colours_follow_the_reader_unless_a_theme_is_named(self, job: Sample) -> None:
        both, light, dark = (drawn(job.results, "scores", theme=theme) for theme in (None, "light", "dark"))
        assert b"prefers-color-scheme:dark" in (both or b"")
        for content, palette, other in ((light, LIGHT, DARK), (dark, DARK, LIGHT)):
            assert b"<style" not in (content or b"")
            assert palette["accent"].encode() in (content or b"")
            assert other["accent"].encode() not in (content or b"")

    def test_a_png_is_a_picture_of_either_theme(self, job: Sample) -> None:
        light, dark = (drawn(job.results, "models", "png", theme) for theme in (None, "dark"))
        assert light is not None
        assert dark is not None
        assert light.startswith(b"\x89PNG\r\n")
        assert light != dark

    def test_the_same_results_give_the_same_bytes(self, job: Sample) -> None:
        for file_format in ("svg", "png"):
            assert drawn(job.results, "models", file_format) == drawn(job.results, "models", file_format)

    def test_where_there_is_nothing_to_draw_there_is_no_figure(self, job: Sample) -> None:
        assert drawn(job.results, "persona_scores") is None
        assert drawn(job.results, "published_persona_scores") is None
        silent = results_of([response_of("Rain.", ("Rain.", None), persona="mine")])
        for name in ("models", "published", "scores", "cells", "accuracy", "runs"):
            assert drawn(silent, name) is None, name

    def test_real_figures_are_not_called_simulated(self, job: Sample) -> None:
        assert NOTE not in texts(drawn(job.results | {"simulated": False}, "models"))


class TestWhatTheyShow:
    def test_the_heat_map_has_every_figure_of_its_model(self, job: Sample) -> None:
        shown = texts(drawn(job.results, "heat_map", model="simulated/drifting"))
        for cell in job.results["cells"]:
            if cell["model"] == "simulated/drifting":
                for name in ("acc_atom", "ic_atom", "rc_atom"):
                    assert f"{cell['metrics'][name]['value']:.2f}" in shown

    def test_a_bar_is_cut_at_the_shares_of_its_scores(self) -> None:
        # Level high is 4 and 5: of five scores two lie in it, 40 %; one in five of them is a 1.
        found = results_of([response_of("1. 2. 3. 4. 5.", *((f"{n}.", n) for n in range(1, 6)))])
        content = drawn(found, "scores")
        assert "40 %" in texts(content)
        widths: dict[str, list[float]] = {}
        for path in parsed(content).iter(f"{SVG}path"):
            for colour in ("accent", "below"):
                if path.get("fill") == LIGHT[colour]:
                    x = [float(v) for v in re.findall(r"[ML] ([\d.]+) ", path.get("d", ""))]
                    widths[colour] = [x[n + 1] - x[n] for n in range(0, len(x), 4)]
        assert [len(widths[colour]) for colour in ("accent", "below")] == [2, 3]
        parts = widths["accent"] + widths["below"]
        assert max(parts) == pytest.approx(min(parts), abs=0.05)

    def test_acc_stands_against_acc_atom_beside_the_papers_540_cells(self, job: Sample) -> None:
        shown = texts(drawn(job.results, "accuracy"))
        (r,) = [
            each["r"] for each in job.results["correlations"] if set(each["metrics"]) == {"acc", "acc_atom"}
        ]
        assert f"This job: {r['n']} cells, r = {r['value']:.2f}" in shown
        # Table 4 prints 0.91, of figures with more digits than Tables 18 to 29 have.
        (paper,) = [text for text in shown if text.startswith("Published")]
        assert paper.startswith("Published (atomic paper): 540 cells, r = 0.9")
        # The job has levels of two scales, which have the same names.
        assert {"high personas", "neutral personas", "low personas"} <= set(shown)

    def test_a_mean_in_the_level_of_extremes_lies_below_the_diagonal(self) -> None:
        mixed = [
            response_of("a. b.", ("a.", 5), ("b.", 1), level="neutral", persona=f"p-{n}") for n in range(3)
        ]
        results = read(results_of(mixed))
        (own,) = scatters(results, None)
        assert [(dot.acc, dot.acc_atom, dot.place) for dot in own.dots] == [(1.0, 0.0, "between")]
        assert (own.cells, own.widest) == (3, ("p-0, essay, simulated/steady", 1.0, 0.0))
        assert scatters(read(results_of(mixed[:2])), None) == []

    def test_of_many_graded_tasks_those_with_the_lowest_scores_are_drawn_and_the_others_counted(self) -> None:
        scores = {"task-100": 1, "task-007": 2}
        responses = [
            graded_response(scores.get(task, 5), task=task) for task in (f"task-{n:03}" for n in range(223))
        ]
        results = gym_results_of(responses)
        content = drawn(results, "persona_scores")
        shown = texts(content)
        assert {"PersonaScore", "task-007", "task-100"} <= set(shown)
        assert sum(text.startswith("task-") for text in shown) == 7
        title = parsed(content).findtext(f"{SVG}title")
        assert title is not None
        assert title.endswith(": the 7 of 223 tasks with the lowest scores")

    def test_persona_scores_are_drawn_and_stand_among_table_1(self) -> None:
        responses = [graded_response(score, persona=f"gym-{score}") for score in (2, 3, 4)]
        results = gym_results_of(responses)
        assert "3.00" in texts(drawn(results, "persona_scores"))
        among = texts(drawn(results, "published_persona_scores"))
        assert {"Claude 3 Haiku", "simulated/steady"} <= set(among)
        assert "PersonaScore" not in among  # the job has one task of five


class TestPersonaGymsFigures:
    @staticmethod
    def refusing(*counts: tuple[str, int, int]) -> dict[str, Any]:
        return gym_results_of(
            [
                graded_response(
                    5, 4, model=model, item=f"Q-{n}", status="refused" if n < refused else "answered"
                )
                for model, refused, asked in counts
                for n in range(asked)
            ]
        )

    def test_refusals_stand_model_by_model_the_most_first(self) -> None:
        results = self.refusing(("keen", 1, 20), ("shy", 9, 20), ("bold", 0, 20))
        content = drawn(results, "refusals")
        shown = texts(content)
        assert [text for text in shown if text in {"keen", "shy", "bold"}] == ["shy", "keen", "bold"]
        assert {"45.00", "5.00", "0.00"} <= set(shown)
        assert "shy: 9 of 20 responses; keen: 1 of 20" in (parsed(content).findtext(f"{SVG}desc") or "")
        assert drawn(self.refusing(("keen", 0, 4)), "refusals") is None

    def test_environments_are_bars_in_proportion_to_their_personas(self) -> None:
        people = [
            EnvironmentsOfPersona(persona=f"p{n}", environments=["Bank", *HOSTILE[:n]], given=False)
            for n in range(len(HOSTILE))
        ]
        plot = environments_plot(environments_of("job_1", 150, people))
        assert plot is not None
        assert len(HOSTILE) < 30  # all are drawn
        root = ET.fromstring(svg(plot))
        (bars,) = [path for path in root.iter(f"{SVG}path") if path.get("fill") == LIGHT["accent"]]
        x = [float(v) for v in re.findall(r"[ML] (-?[\d.]+) ", bars.get("d", ""))]
        widths = [x[n + 1] - x[n] for n in range(0, len(x), 4)]
        counts = [len(HOSTILE), *range(len(HOSTILE) - 1, 0, -1)]
        assert widths == pytest.approx([widths[0] * count / len(HOSTILE) for count in counts], rel=0.01)
        assert environments_plot(environments_of("job_1", 150, [])) is None
        assert environments_plot(None) is None

    def test_of_many_environments_the_most_chosen_are_drawn(self) -> None:
        names = [f"place {n:03}" for n in range(150)]
        people = [EnvironmentsOfPersona(persona="p", environments=names, given=True)]
        plot = environments_plot(environments_of("job_1", 150, people))
        assert plot is not None
        assert plot.title.endswith(": the first 30 of 150 environments")

    def test_words_of_personas_need_several_of_personagyms(self, job: Sample) -> None:
        results = gym_results_of([graded_response(5, 4)])
        people = [
            {"id": f"p{n}", "description": f"a {n}-year-old nurse from place{n}", "traits": []}
            for n in range(5)
        ]
        assert {"nurse", "5"} <= set(texts(drawn(results | {"personas": people}, "persona_words")))
        assert drawn(results | {"personas": people[:4]}, "persona_words") is None
        assert drawn(job.results, "persona_words") is None


@pytest.fixture(scope="module")
def large() -> dict[str, Any]:
    """Four scores of each of 70 personas in ten tasks: persona n has n % 4 of them in its level, which is high."""
    return results_of(
        [
            response_of(
                "a. b. c. d.",
                *((f"{letter}.", 5 if place < n % 4 else 1) for place, letter in enumerate("abcd")),
                persona=f"p-{n:02}",
                task=f"t{task}",
            )
            for n in range(70)
            for task in range(10)
        ]
    )


@pytest.mark.slow
class TestSize:
    @pytest.mark.parametrize("name", ["heat_map", "cells"])
    def test_of_many_personas_the_weakest_are_drawn_and_it_says_so(
        self, large: dict[str, Any], name: str
    ) -> None:
        content = drawn(large, name)
        shown = {text.partition(" ")[0] for text in texts(content) if text.startswith("p-")}
        # Of the shares 0, 1/4, 2/4 and 3/4 there are 18, 18, 17 and 17: the last ten have the greatest.
        assert len(shown) == 60
        assert {persona for persona in shown if int(persona[2:]) % 4 < 3} == {
            f"p-{n:02}" for n in range(70) if n % 4 < 3
        }
        assert "the weakest 60 of 70 personas, 8 of 10 tasks" in (parsed(content)[0].text or "")
        assert "t7" in texts(content)
        assert "t8" not in texts(content)

    def test_a_heat_maps_total_is_over_all_of_them(self, large: dict[str, Any]) -> None:
        # In each task 18 · 0 + 18 · 1 + 17 · 2 + 17 · 3 = 103 of 4 · 70 scores lie in the level.
        assert f"{103 / 280:.2f}" in texts(drawn(large, "heat_map"))


class TestHostileNames:
    @pytest.mark.parametrize("name", ["models", "cells", "heat_map"])
    def test_names_stay_names(self, name: str) -> None:
        short = [text for text in (*HOSTILE, "$\\frac{a}{b}$", "模型") if len(text) < 100]
        for text in short:
            found = results_of([response_of(text, (text, 5), model=text, persona=text, task=text)])
            root = parsed(drawn(found, name, model=text))
            assert not re.search("[\u202a-\u202e\u2066-\u2069]", "".join(root.itertext()))
            assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
                *("svg", "title", "desc", "style", "g", "defs", "path", "use", "text", "clipPath", "rect"),
            }

    def test_long_names_lose_their_middle(self) -> None:
        long = "a" * 300 + "b" * 300
        found = results_of([response_of("I sang.", ("I sang.", 5), model=long)])
        (shown,) = [text for text in texts(drawn(found, "models")) if text.startswith("aaa")]
        assert shown == "a" * 20 + "…" + "b" * 19


def test_every_role_has_a_colour_of_its_own() -> None:
    for palette in (LIGHT, DARK):
        assert len({palette[role] for role in ROLES}) == len(ROLES)


def test_squares_of_one_cell_are_no_larger_than_those_of_several(job: Sample) -> None:
    chosen = varying_cells(read(job.results).cells)
    distances = {
        "width": 4,
        "runs": [{"run": 0}, {"run": 1}],
        "by_judge": [{"distances": [[0.0, 1.0], [1.0, 0.0]]}],
    }
    words = InWords((), ())
    widths = [
        draw_runs(run_matrices(cells, [distances] * len(cells)), words, LIGHT).get_figwidth()
        for cells in (chosen[:1], chosen)
    ]
    assert len(chosen) > 1
    assert widths[0] == widths[1]
