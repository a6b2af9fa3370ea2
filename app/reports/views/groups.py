"""Groups of models and personas as the report shows them."""

from collections.abc import Sequence

from app.domain.results.baselines import Baselines
from app.domain.results.contract import Results
from app.domain.results.model_groups import OF_MODEL, Attributes, ModelGroup, model_groups


def shown_groups(
    results: Results, attributes: Attributes, baselines: Baselines | None
) -> tuple[Sequence[ModelGroup], Sequence[ModelGroup]]:
    """A job's groups and the published ones; none of a job without attributes and less desired personas, which has its models elsewhere."""
    own = model_groups(results.cells, attributes)
    if all(group.attribute == OF_MODEL and group.less_desired.value is None for group in own):
        return (), ()
    published = [] if baselines is None else baselines.groups
    return own, [group for group in published if group.attribute != OF_MODEL]
