"""What the report says of the control arm."""

from app.domain.results.control import ControlArm
from app.domain.results.gains import GainTotal

SMALLEST_GAINS = 5


def smallest_gains(control: ControlArm | None) -> list[GainTotal]:
    """The personas that change a model's ACC_atom least, or for the worse; fewest points first."""
    if control is None:
        return []
    known = [
        (row.acc_atom.gain.value, row.model, row.persona or "", row)
        for row in control.totals
        if row.persona is not None and row.acc_atom.gain.value is not None
    ]
    return [row for *_, row in sorted(known, key=lambda each: each[:3])[:SMALLEST_GAINS]]
