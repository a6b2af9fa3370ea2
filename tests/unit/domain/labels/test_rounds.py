from collections import Counter

import pytest

from app.domain.labels.annotation import Place
from app.domain.labels.rounds import (
    Candidate,
    Stratum,
    draw_pairs,
    draw_sentences,
    draw_where_labels_help,
    is_turned,
    order_for,
    strata_of,
)


def stratum(task: str, score: int, count: int, *, text: str | None = None) -> Stratum:
    """Sentences of which each says something else, unless ``text`` says what they all say."""
    number = {"essay": 0, "post": 1}[task] * 10 + score
    made = [Candidate(Place(number, 0, 0, n), text or f"{task}{score}{n}") for n in range(count)]
    return Stratum(task, score, 100 * count, made)


def scores(things: tuple[tuple[Place, ...], ...]) -> list[tuple[int, ...]]:
    """The scores of what was drawn, as :func:`stratum` hides them in the cells' numbers."""
    return [tuple(place.cell % 10 for place in thing) for thing in things]


class TestWhereLabelsHelp:
    def test_lowers_the_variance_as_far_as_any_division_of_as_many_labels(self) -> None:
        strata = [stratum("essay", score, 30) for score in (1, 3, 5)]
        spreads = {("essay", 1): 0.1, ("essay", 3): 0.25, ("essay", 5): 0.4}
        drawn = {candidate.place: ("essay", 1) for candidate in strata[0].candidates[:6]}
        drawn |= {candidate.place: ("essay", 3) for candidate in strata[1].candidates[:1]}
        sample = draw_where_labels_help(strata, 18, spreads, drawn)

        def variance(taken: tuple[int, ...]) -> float:
            known = (6, 1, 0)
            return sum(
                (each.available * spread) ** 2 / max(0.001, before + more)
                for each, spread, before, more in zip(strata, spreads.values(), known, taken, strict=True)
            )

        best = min(((one, two, 18 - one - two) for one in range(19) for two in range(19 - one)), key=variance)
        assert tuple(each.drawn for each in sample.strata) == best
        assert [each.spread for each in sample.strata] == [0.1, 0.25, 0.4]
        assert not drawn.keys() & {place for (place,) in sample.things}
        assert scores(sample.things) == [
            (each.scores[0],) for each in sample.strata for _ in range(each.drawn)
        ]

    def test_a_stratum_without_a_label_comes_first_and_one_without_sentences_left_never(self) -> None:
        strata = [stratum("essay", 1, 2), stratum("essay", 2, 40), stratum("post", 1, 40)]
        drawn = {candidate.place: ("essay", 1) for candidate in strata[0].candidates}
        drawn |= {candidate.place: ("essay", 2) for candidate in strata[1].candidates[:20]}
        spreads = {("essay", 1): 5.0, ("essay", 2): 0.5}
        first = draw_where_labels_help(strata, 1, spreads, drawn).strata
        assert [each.drawn for each in first] == [0, 0, 1]
        assert [each.spread for each in first] == [5.0, 0.5, (5.0 + 0.5) / 2]
        everything = draw_where_labels_help(strata, 500, spreads, drawn)
        assert [each.drawn for each in everything.strata] == [0, 20, 40]


class TestSentences:
    def test_each_score_gets_as_many_as_any_other(self) -> None:
        sample = draw_sentences([stratum("essay", score, 50) for score in (1, 2, 3, 4, 5)], 50)
        assert Counter(scores(sample.things)) == {(score,): 10 for score in (1, 2, 3, 4, 5)}

    def test_what_a_rare_score_lacks_others_make_up_for(self) -> None:
        sample = draw_sentences(
            [stratum("essay", 1, 2), stratum("essay", 4, 50), stratum("essay", 5, 50)], 20
        )
        assert Counter(scores(sample.things)) == {(1,): 2, (4,): 9, (5,): 9}
        assert [(each.scores, each.drawn, each.available) for each in sample.strata] == [
            *[((1,), 2, 200), ((4,), 9, 5000), ((5,), 9, 5000)]
        ]

    def test_within_a_score_each_task_gets_its_share(self) -> None:
        sample = draw_sentences(
            [stratum("essay", 4, 50), stratum("post", 4, 50), stratum("essay", 5, 50)], 20
        )
        assert Counter(place.cell for (place,) in sample.things) == {4: 5, 14: 5, 5: 10}

    @pytest.mark.parametrize("size", [1, 3, 7, 1000])
    def test_there_are_never_more_than_asked_for_nor_than_there_are(self, size: int) -> None:
        sample = draw_sentences([stratum("essay", 1, 2), stratum("essay", 5, 4)], size)
        assert len(sample.things) == len(set(sample.things)) == min(size, 6)
        assert sum(each.drawn for each in sample.strata) == len(sample.things)


class TestPairs:
    def test_sentences_of_a_pair_differ_in_score_and_share_the_task(self) -> None:
        strata = [stratum(task, score, 20) for task in ("essay", "post") for score in (1, 3, 5)]
        sample = draw_pairs(strata, 30)
        assert len(set(sample.things)) == 30
        assert all(one != other for one, other in scores(sample.things))
        assert all(one.cell // 10 == other.cell // 10 for one, other in sample.things)
        assert {each.drawn for each in sample.strata} == {5}

    def test_no_sentence_comes_twice_while_there_are_others(self) -> None:
        sample = draw_pairs([stratum("essay", 1, 10), stratum("essay", 5, 10)], 10)
        assert len({place for pair in sample.things for place in pair}) == 20

    def test_equal_texts_make_no_pair(self) -> None:
        assert (
            draw_pairs([stratum("essay", 1, 3, text="same"), stratum("essay", 5, 3, text="same")], 5).things
            == ()
        )

    def test_there_are_none_where_all_have_one_score(self) -> None:
        assert draw_pairs([stratum("essay", 4, 10), stratum("post", 5, 10)], 5).things == ()

    def test_a_pair_is_drawn_once(self) -> None:
        sample = draw_pairs([stratum("essay", 1, 2), stratum("essay", 5, 2)], 100)
        assert len(sample.things) == len(set(sample.things)) <= 4


class TestOrder:
    def test_everybody_has_one_of_his_own_that_stays(self) -> None:
        anna, ben = order_for("anna", "lab_1", 50), order_for("ben", "lab_1", 50)
        assert sorted(anna) == sorted(ben) == list(range(50))
        assert anna != ben
        assert anna == order_for("anna", "lab_1", 50)
        assert anna != order_for("anna", "lab_2", 50)

    def test_about_half_of_the_pairs_are_turned(self) -> None:
        turned = sum(is_turned("anna", "lab_1", n) for n in range(1000))
        assert 430 < turned < 570


class TestStrata:
    def test_rows_keep_their_order_within_a_task_and_score(self) -> None:
        one, other = (Candidate(Place(0, 0, 0, n), str(n)) for n in range(2))
        found = strata_of([("essay", 5, 9, other), ("essay", 1, 3, one), ("essay", 5, 9, one)])
        assert found == [Stratum("essay", 1, 3, [one]), Stratum("essay", 5, 9, [other, one])]
