"""Groups of models and personas, of the paper's figures and of a job's."""

import pytest

from app.domain.results.model_groups import ModelGroup, model_groups
from app.instruments.published import published_attributes
from app.services.results.baselines import BaselineFilter, baselines
from tests.unit.domain.job_samples import resolved
from tests.unit.domain.results.test_totals import TABLE_16
from tests.unit.reports.sample import response_of, results_of, sample
from tests.unit.results_sample import read

PUBLISHED = {
    (group.attribute, group.value): group for group in baselines(BaselineFilter(source="atomic")).groups
}


def value(group: ModelGroup, name: str) -> float:
    found = getattr(group, name).value
    assert isinstance(found, float)
    return found


class TestPublished:
    def test_each_model_alone_is_table_16s_row(self) -> None:
        """Table 7 prints eight of these rows."""
        for model, row in TABLE_16.items():
            group = PUBLISHED["model", model]
            ours = tuple(value(group, name) for name in ("acc_atom", "ic_atom", "rc_atom"))
            assert ours == pytest.approx([float(each) for each in row], abs=0.0051), model

    def test_tuned_models_exceed_base_models_in_every_metric(self) -> None:
        """Section 5.3: "the tuned models consistently outperform their base counterparts"."""
        base, tuned = PUBLISHED["tuning", "base"], PUBLISHED["tuning", "tuned"]
        assert (base.models, len(tuned.models)) == (["Davinci-002", "Llama-3-8B", "Mistral-7B"], 9)
        assert value(base, "acc_atom") == pytest.approx((0.39 + 0.41 + 0.41) / 3, abs=0.01)
        for name in ("acc_atom", "ic_atom", "rc_atom"):
            assert value(tuned, name) > value(base, name)

    def test_tuned_models_play_the_less_desired_personas_worse(self) -> None:
        """Section 5.2."""
        tuned = PUBLISHED["tuning", "tuned"]
        assert (tuned.less_desired.n, tuned.others.n) == (9 * 3 * 4, 9 * 3 * 11)
        assert value(tuned, "less_desired") < value(tuned, "others") - 0.2

    def test_sizes_are_those_that_names_tell(self) -> None:
        assert PUBLISHED["parameters", "8B"].models == ["Llama-3-8B", "Llama-3-8B-Instruct"]
        assert published_attributes().keys() == TABLE_16.keys()

    def test_of_tuned_models_one_is_not_trained_on_preferences(self) -> None:
        """Section 5.2 names training on preferences as a reason for its findings."""
        trained, tuned = PUBLISHED["rlhf", "yes"], PUBLISHED["tuning", "tuned"]
        assert set(tuned.models) - set(trained.models) == {"Mistral-7B-Instruct"}
        assert value(trained, "less_desired") < value(trained, "others") - 0.2


class TestOfJobs:
    def test_models_without_attributes_stand_alone(self) -> None:
        cells = read(sample().results).cells
        assert [(group.attribute, group.models) for group in model_groups(cells, {})] == [
            ("model", ["simulated/drifting"]),
            ("model", ["simulated/steady"]),
        ]

    def test_an_attribute_of_some_models_groups_these(self) -> None:
        cells = read(sample().results).cells
        both = {"simulated/steady": {"size": "8B"}, "simulated/drifting": {"size": "8B", "tuning": "base"}}
        groups = {(each.attribute, each.value): each for each in model_groups(cells, both)}
        size, base = groups["size", "8B"], groups["tuning", "base"]
        assert (size.cells, base.cells) == (len(cells), len(cells) // 2)
        alone = [value(groups["model", model], "acc_atom") for model in both]
        assert value(size, "acc_atom") == pytest.approx(sum(alone) / 2)
        assert value(base, "acc_atom") == value(groups["model", "simulated/drifting"], "acc_atom")
        assert size.less_desired.n == 2 * 3  # N-neutral, in three tasks
        assert model_groups(cells, {"somebody": {"size": "1B"}}) == model_groups(cells, {})

    def test_attributes_change_nothing_of_how_a_job_runs(self) -> None:
        plain = {"model": "acme/m", "label": "x"}
        spec = resolved(models=[plain]).spec
        assert resolved(models=[plain | {"attributes": {"size": "8B"}}]).spec == spec


def test_cells_without_a_metric_are_counted_as_left_out() -> None:
    once = read(results_of([response_of("Yes. No.", ("Yes.", 5), ("No.", 1))])).cells
    (group,) = model_groups(once, {})
    assert (group.acc_atom.n, group.acc_atom.left_out) == (1, 0)
    assert (group.rc_atom.n, group.rc_atom.left_out) == (0, 1)  # which needs two runs
