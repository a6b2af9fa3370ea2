"""All metrics. A new one is a file like its neighbours', and a line here."""

from app.domain.metrics.acc import ACC
from app.domain.metrics.acc_atom import ACC_ATOM
from app.domain.metrics.acc_atom_corrected import ACC_ATOM_CORRECTED
from app.domain.metrics.definition import Family, MetricDefinition
from app.domain.metrics.ic_atom import IC_ATOM
from app.domain.metrics.ic_atom_corrected import IC_ATOM_CORRECTED
from app.domain.metrics.mean import MEAN
from app.domain.metrics.rc import RC
from app.domain.metrics.rc_atom import RC_ATOM
from app.domain.metrics.rc_atom_corrected import RC_ATOM_CORRECTED
from app.domain.metrics.rc_corrected import RC_CORRECTED

METRICS: tuple[MetricDefinition, ...] = (
    MEAN,
    ACC,
    RC,
    ACC_ATOM,
    IC_ATOM,
    RC_ATOM,
    ACC_ATOM_CORRECTED,
    IC_ATOM_CORRECTED,
    RC_CORRECTED,
    RC_ATOM_CORRECTED,
)
"""In the order of results and exports."""

BY_NAME = {metric.name: metric for metric in METRICS}

RANGES = {name: metric.range for metric in METRICS for name in metric.names}
"""By the name of a metric or of a part."""


def names(*families: Family) -> tuple[str, ...]:
    """The metrics of these families, family by family; of all, in the order of results, without any."""
    if not families:
        return tuple(metric.name for metric in METRICS)
    return tuple(metric.name for family in families for metric in METRICS if metric.family is family)


def range_of(name: str, scale: tuple[float, float]) -> tuple[float, float]:
    """The least and greatest value of a metric, or of a part, on a scale."""
    return RANGES[name] or scale
