import io

import pytest
from rich.console import Console

from persona_assay.terminal.heat import heat
from persona_assay.terminal.results_tables import results_view
from tests.unit.agreement_sample import agreement_of, joint
from tests.unit.check_sample import check_of, order_check_of
from tests.unit.cli.documents import metric, results
from tests.unit.gym_sample import graded_response, gym_results_of


def shown(document: dict[str, object], width: int = 100) -> str:
    text = io.StringIO()
    Console(file=text, width=width).print(results_view(document, width))
    return text.getvalue()


def line_with(text: str, word: str) -> str:
    return next(line for line in text.splitlines() if word in line)


class TestOverview:
    def test_a_model_has_its_metrics_cells_sentences_and_refusals_in_one_line(self) -> None:
        # Four cells of 9 answers and 1 refusal each.
        line = line_with(shown(results()), "openai/gpt-4o ")
        assert line.split()[1:] == [
            "0.98",
            "0.97",
            "0.91",
            "0.83",
            "0.87",
            "4",
            "100.0",
            "%",
            "44/50",
            "4/40",
        ]

    def test_in_a_narrow_terminal_the_counts_come_below(self) -> None:
        text = shown(results(), width=50)
        assert line_with(text, "openai/gpt-4o ").split()[1:] == ["0.98", "0.97", "0.91", "0.83", "0.87"]
        assert "44/50" in text
        assert "…" not in text

    def test_a_judge_that_was_asked_once_more_has_its_counts(self) -> None:
        repairs = [
            {"judge": "acme/judge", "unread": 12, "repaired": 10, "unparsed": 2, "failed": 1},
            {"judge": "acme/other", "unread": 0, "repaired": 0, "unparsed": 0},
        ]
        text = shown(results() | {"repairs": repairs})
        said = "acme/judge was asked once more for 12 verdicts: 10 repaired, 2 still unparsed"
        assert f"{said} (1 of them because the follow-up failed)" in " ".join(text.split())
        assert "acme/other was asked" not in text

    def test_simulated_figures_are_marked_as_such(self) -> None:
        text = shown(results("simulated/sim-faithful", simulated=True))
        assert "SIMULATED: these results describe no real model" in text
        assert "simulated/sim-faithful (simulated)" in text

    def test_real_figures_are_not(self) -> None:
        assert "simulated" not in shown(results()).lower()

    def test_partial_results_are_marked_as_such(self) -> None:
        assert "Partial: " in shown(results(completeness="partial"))


class TestWarnings:
    def test_the_conclusion_is_the_first_line_and_its_reasons_follow(self) -> None:
        reasons = ["a/judge gives the score 5 to 94 % of 273 sentences.", "a/judge contradicts itself."]
        doubtful = {"headline": "The judge a/judge cannot be trusted."} | {
            "warnings": [{"code": "one_score", "message": reason} for reason in reasons]
        }
        lines = shown(results() | doubtful).splitlines()
        assert [line.strip() for line in lines[:3]] == [
            "The judge a/judge cannot be trusted.",
            *(f"! {reason}" for reason in reasons),
        ]
        assert lines[3:] == shown(results()).splitlines()

    def test_like_ones_on_several_dimensions_are_one_line(self) -> None:
        alike = {"code": "one_score", "summary": "a/judge gives the score 5 in 97 % of 100 verdicts."}
        doubtful = {"headline": None, "warnings": [alike | {"message": trait} for trait in ("E", "N")]}
        lines = shown(results() | doubtful).splitlines()
        assert lines[0].strip() == f"! {alike['summary']}"
        assert lines[1:] == shown(results()).splitlines()


class TestCorrectedMetrics:
    @pytest.mark.parametrize("width", [100, 50])
    def test_stand_in_a_table_of_their_own(self, width: int) -> None:
        text = shown(results(acc_atom_corrected=metric(0.61, 4), rc_corrected=metric(0.72, 4)), width)
        first, last = text.split("Corrected")
        assert line_with(first, "openai/gpt-4o ").split()[1:6] == ["0.98", "0.97", "0.91", "0.83", "0.87"]
        assert line_with(last, "openai/gpt-4o ").split()[1:] == ["0.61", "0.72"]
        assert "Corrected" not in shown(results())


class TestReuse:
    def test_what_was_used_again_and_what_that_spared_is_told(self) -> None:
        spared = {"same_job": 1_200, "other_job": 34, "usd": 0.25, "unpriced_replies": 0}
        text = shown(results() | {"reuse": spared})
        assert "Reused: 1,200 replies from this job, 34 from other jobs; saved $0.2500\n" in text

    def test_what_has_no_known_price_is_told(self) -> None:
        spared = {"same_job": 1, "other_job": 1, "usd": None, "unpriced_replies": 2}
        text = shown(results() | {"reuse": spared})
        assert (
            "1 reply from this job, 1 from other jobs; saved unknown (excluding 2 of unknown price)" in text
        )

    def test_a_job_that_did_not_ask_for_it_says_nothing(self) -> None:
        assert "Reused" not in shown(results() | {"reuse": None})


class TestIntervals:
    @pytest.mark.parametrize("width", [100, 60, 40])
    def test_stand_in_a_table_of_their_own_as_far_as_there_is_room(self, width: int) -> None:
        text = shown(results(acc_atom=metric(0.91, 4) | {"ci95": [0.881, 0.932]}), width)
        assert "95 % intervals" in text
        assert "[0.88, 0.93]" in text
        assert max(len(line) for line in text.splitlines()) <= width

    def test_without_any_there_is_no_table(self) -> None:
        assert "95 % intervals" not in shown(results())


class TestVerdictAgreement:
    def test_each_pair_of_judges_has_a_line_over_all_and_in_each_task(self) -> None:
        found = agreement_of(joint((1, 1, 2), (4, 4, 4), (5, 4, None)), judges=("j/a", "j/b", "j/c"))
        lines = shown(results() | {"verdict_agreement": found}).splitlines()
        (first, *_) = [line for line in lines if "j/a – j/b" in line]
        assert first.split()[0] == "all"
        assert first.split()[-2:] == ["0.67", "3"]  # 2 of 3 alike
        assert sum("j/b – j/c" in line for line in lines) == 3  # all, one task, one dimension

    def test_a_task_and_a_dimension_of_one_name_are_told_apart(self) -> None:
        found = agreement_of(joint((1, 1), (4, 5), task="humour", dimension="humour"))
        lines = [line.split() for line in shown(results() | {"verdict_agreement": found}).splitlines()]
        names = [words[:2] for words in lines if "humour" in words]
        assert names == [["task", "humour"], ["dimension", "humour"]]

    def test_what_is_missing_has_its_reason(self) -> None:
        text = shown(results() | {"verdict_agreement": agreement_of(joint((4, 4)))})
        assert "α is missing: all scores of units with two of them are the same one" in text

    def test_a_single_judge_agrees_with_nobody(self) -> None:
        assert "Agreement between judges" not in shown(results())


class TestOrderCheck:
    def test_a_judge_has_a_line_for_each_order_with_what_it_changes(self) -> None:
        text = shown(results() | {"order_check": order_check_of(*[(5, 4), (3, 3)] * 20)})
        assert "5 % of the sentences judged again" in text
        # Half of 40 alike; first 0.5 higher; in character 20 of 40 both times.
        assert line_with(text, "a/judge").split()[1:6] == ["reversed", "all", "40", "0.50", "0.50"]
        assert "[0.3" in text
        assert "no sentence was judged again" in shown(results() | {"order_check": order_check_of()})

    def test_a_job_that_does_not_ask_says_nothing_of_it(self) -> None:
        assert "judged again" not in shown(results())


class TestJudgingCheck:
    def test_a_judge_has_a_line_with_what_grouping_changes(self) -> None:
        text = shown(results() | {"judging_check": check_of(*[(5, 4), (3, 3)] * 4)})
        assert "Up to 8 sentences per call, compared with one per call" in text
        # 4 of 8 alike; distance and difference 0.5; in character 4 of 8 both ways.
        assert line_with(text, "a/judge").split()[1:6] == ["all", "8", "0.50", "0.50", "0.50"]
        assert line_with(text, "social media post")

    def test_what_is_missing_has_its_reason(self) -> None:
        text = shown(results() | {"judging_check": check_of((4, 4))})
        assert "κ is missing" in text
        assert "no sentence was judged both ways" in shown(results() | {"judging_check": check_of()})

    def test_a_job_judged_one_by_one_says_nothing_of_it(self) -> None:
        assert "sentences per call" not in shown(results())


class TestMissingValues:
    def test_are_dashes_with_the_reason_said_once(self) -> None:
        missing = metric(None, 0, "too_few_runs: fewer than two runs have a score")
        text = shown(results(rc_atom=missing))
        assert "–¹" in text
        assert text.count("RC_atom is missing: fewer than two runs have a score") == 1
        assert "too_few_runs" not in text

    def test_a_mean_over_fewer_cells_says_over_how_many(self) -> None:
        text = shown(results(ic_atom=metric(0.83, 3)))
        assert "over 3 of 4 cells" in text

    def test_a_metric_of_all_cells_has_no_remark(self) -> None:
        assert "¹" not in shown(results())


class TestLevels:
    def test_levels_and_tasks_are_in_the_order_of_the_papers_table(self) -> None:
        document = results(
            tasks=("essay", "questionnaire", "social_media_post"), levels=("high", "low", "neutral")
        )
        text = shown(document)
        header = line_with(text, "questionnaire")
        assert header.index("questionnaire") < header.index("essay") < header.index("social media post")
        first_words = [line.split()[0] for line in text.splitlines() if line.strip()]
        levels = [word for word in first_words if word in {"high", "neutral", "low", "total"}]
        assert levels == ["high", "neutral", "low", "total"]

    def test_a_mean_outside_its_level_is_marked_without_colour_too(self) -> None:
        # 4.6 is high: in [11/3, 5].
        text = shown(results(tasks=("essay",)))
        assert line_with(text, "high").split()[1:] == ["4.60", "0.91", "0.83", "0.87"]
        assert line_with(text, "low ").split()[1:] == ["4.60*", "0.91", "0.83", "0.87"]

    def test_levels_of_a_users_dimension_are_shown_unmarked(self) -> None:
        text = shown(results(levels=("centrist", "progressive")))
        assert line_with(text, "centrist").split()[1] == "4.60"

    @pytest.mark.parametrize("width", [100, 80, 60, 40])
    def test_every_line_fits_the_terminal(self, width: int) -> None:
        document = results(tasks=("essay", "questionnaire", "social_media_post"), simulated=True)
        assert max(len(line) for line in shown(document, width).splitlines()) <= width

    def test_a_models_name_cannot_steer_the_terminal(self) -> None:
        assert "\x1b" not in shown(results("openai/\x1b[2Jgone"))


class TestHeat:
    def test_lightness_grows_with_the_value(self) -> None:
        def lightness(value: float) -> float:
            colour = heat(value).bgcolor
            assert colour is not None
            red, green, blue = colour.get_truecolor()
            return 0.299 * red + 0.587 * green + 0.114 * blue

        steps = [lightness(n / 20) for n in range(21)]
        assert steps == sorted(steps)
        assert steps[-1] - steps[0] > 150

    @pytest.mark.parametrize(("value", "end"), [(-0.4, 0.0), (1.2, 1.0)])
    def test_values_beyond_the_ends_look_like_the_ends(self, value: float, end: float) -> None:
        assert heat(value) == heat(end)


class TestPersonaScores:
    def test_a_model_has_a_line_for_each_task_with_mean_deviation_and_personas(self) -> None:
        # gym-01 has 5, gym-02 has 2: mean 3.5, sample deviation √(2 · 1.5²) = 2.12.
        responses = [graded_response(5), graded_response(2, persona="gym-02")]
        text = shown(results() | gym_results_of(responses))
        assert line_with(text, "expected action").split() == [
            "simulated/steady",
            "expected",
            "action",
            "3.50",
            "–",
            "2.12",
            "2",
        ]
        assert line_with(text, "PersonaScore  ").split()[1:] == ["3.50", "–", "2.12", "2"]

    def test_the_mean_has_its_interval_over_five_personas_and_more(self) -> None:
        responses = [graded_response(score, persona=f"gym-{n}") for n, score in enumerate((3, 4, 5, 4, 3, 5))]
        words = line_with(shown(results() | gym_results_of(responses)), "PersonaScore  ").split()
        assert words[1] == "4.00"
        low, high = (float(word.strip("[],")) for word in words[2:4])
        assert low < 4.0 < high

    def test_what_is_missing_or_left_out_is_said(self) -> None:
        one = [graded_response(4), graded_response(None, persona="gym-02")]
        text = shown(results() | gym_results_of(one))
        assert line_with(text, "expected action").split()[3:] == ["4.00¹", "–", "–", "1"]
        assert "1 persona left out" in text
        none = shown(results() | gym_results_of([graded_response(None)]))
        assert "PersonaScore is missing: no persona has this score" in none

    def test_a_job_of_personagym_alone_has_no_empty_tables(self) -> None:
        text = shown(results() | gym_results_of([graded_response(4)]) | {"cells": [], "totals": []})
        assert "PersonaScore by model" in text
        assert "Fidelity" not in text
        assert "ACC" not in text
        assert "No cells" not in text

    def test_without_personagym_tasks_there_is_none(self) -> None:
        assert "PersonaScore" not in shown(results())


class TestMadeUpPersonas:
    def test_says_how_many_there_are_and_what_was_dropped(self) -> None:
        made = {"id": "pset_1", "wanted": 40, "found": 38, "asks": 9, "dropped": {"alike": 12, "surplus": 1}}
        nothing: dict[str, object] = {"cells": [], "totals": [], "persona_scores": []}
        text = shown(results() | nothing | {"persona_set": made})
        assert "38 of 40 personas in 9 requests: pset_1; dropped: 12 alike, 1 surplus" in text
        assert "No cells" not in text


class TestWorstSentence:
    def test_stands_in_the_heading_with_who_the_persona_is(self) -> None:
        trait = {"dimension": "N", "level": "low", "words": "low in emotional stability (neurotic)"}
        document = results() | {
            "personas": [{"id": "N-low", "description": "neurotic person", "traits": [trait]}],
            "dimensions": [{"id": "N", "label": "emotional stability", "in_words": {}}],
            "worst_sentence": {
                "text": "I slept \x1b[31mwell.",
                "model": "openai/gpt-4o",
                "persona": "N-low",
                "task": "social_media_post",
                "dimension": "N",
                "level": "low",
                "scores": {"a": 5, "b": 4},
                "response": "resp_x-0-0-0",
                "run": 0,
                "unit": 1,
            },
        }
        assert (
            "Worst sentence: “I slept \ufffd[31mwell.” – openai/gpt-4o as neurotic person, low in emotional stability (neurotic);"
            " social media post; score for emotional stability: 4, 5"
        ) in " ".join(shown(document, width=100).split())
