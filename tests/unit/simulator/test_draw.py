from collections import Counter

from simulator.draw import Draws


class TestDraws:
    def test_a_stream_is_the_same_on_every_machine_and_python_version(self) -> None:
        draws = Draws(0, "generation", None)
        assert [draws.between(0, 999) for _ in range(10)] == [
            223,
            787,
            601,
            719,
            490,
            731,
            334,
            505,
            672,
            361,
        ]

    def test_a_stream_is_a_function_of_its_key(self) -> None:
        assert Draws(1, "a").unit() == Draws(1, "a").unit()

    def test_the_parts_of_a_key_are_not_merely_joined(self) -> None:
        keys: list[tuple[str | int, ...]] = [("ab", "c"), ("a", "bc"), ("1",), (1,), ("a', 'b",), ("a", "b")]
        assert len({Draws(*key).unit() for key in keys}) == len(keys)

    def test_numbers_fill_the_unit_interval_evenly(self) -> None:
        draws = Draws("even")
        tenths = Counter(int(draws.unit() * 10) for _ in range(10_000))
        # 1,000 expected in each tenth, standard deviation sqrt(10,000 * 0.1 * 0.9) = 30
        assert sorted(tenths) == list(range(10))
        assert all(abs(count - 1_000) < 5 * 30 for count in tenths.values())

    def test_both_ends_of_a_range_are_drawn(self) -> None:
        draws = Draws("ends")
        assert {draws.between(4, 6) for _ in range(100)} == {4, 5, 6}

    def test_an_index_is_drawn_as_often_as_its_weight_says(self) -> None:
        draws = Draws("weights")
        counts = Counter(draws.weighted((1.0, 0.0, 3.0)) for _ in range(10_000))
        assert counts[1] == 0
        # 7,500 expected, standard deviation sqrt(10,000 * 0.75 * 0.25) = 43
        assert abs(counts[2] - 7_500) < 5 * 43

    def test_a_key_may_hold_half_of_a_surrogate_pair(self) -> None:
        assert 0 <= Draws("\ud800").unit() < 1
