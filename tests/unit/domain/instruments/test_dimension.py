import pytest

from app.domain.instruments.dimension import Dimension, Scale


class TestScale:
    def test_every_level_has_a_score(self) -> None:
        # 1 and 2 fall into the first and the last of three equal parts; nothing falls between them.
        with pytest.raises(ValueError, match="some level has no score"):
            Scale(1, 2, ("low", "neutral", "high"))
        assert Scale(1, 3).level_of(2) == "neutral"

    @pytest.mark.parametrize(
        ("total", "count", "level"), [(7, 3, "neutral"), (11, 3, "high"), (699, 300, "low"), (5, 1, "high")]
    )
    def test_a_mean_on_the_bound_belongs_to_the_upper_level(self, total: int, count: int, level: str) -> None:
        scale = Scale()
        assert scale.levels[scale.level_index(total, count)] == level

    def test_the_filtering_option_is_no_score(self) -> None:
        with pytest.raises(ValueError, match="must lie outside the scale"):
            Scale(0, 10)


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "labels"),
        [
            (
                "1) Very shy. 2) Neither shy nor bold (so-so). 9) None of the above.",
                {1: "Very shy", 2: "Neither shy nor bold (so-so)", 9: "None of the above"},
            ),
            ("0) no\n10) yes", {0: "no", 10: "yes"}),
            ("1, 2 or 9", {}),
            ("", {}),
        ],
    )
    def test_each_has_its_own_words_where_they_are_numbered(
        self, options: str, labels: dict[int, str]
    ) -> None:
        assert Dimension("E", "shyness", Scale(), options).option_labels == labels


class TestWords:
    STABILITY = Dimension(
        "N",
        "neuroticism",
        Scale(),
        "1) … 9)",
        label="emotional stability",
        level_words=("neurotic", "", "stable"),
    )

    @pytest.mark.parametrize(
        ("level", "trait", "choice"),
        [
            ("low", "low in emotional stability (neurotic)", "low (neurotic)"),
            ("neutral", "neutral in emotional stability", "neutral"),
            ("high", "high in emotional stability", "high (stable)"),
        ],
    )
    def test_a_level_is_told_by_the_display_name_and_by_what_it_means(
        self, level: str, trait: str, choice: str
    ) -> None:
        assert self.STABILITY.trait_in_words(level) == trait
        assert self.STABILITY.level_in_words(level) == choice

    def test_a_level_that_is_a_word_of_its_own_is_high_in_nothing(self) -> None:
        own = Dimension("p", "politics", Scale(1, 7, ("left", "right")), "1) … 9)")
        assert own.trait_in_words("left") == "politics: left"
