"""What the provider's endpoints and the simulator's own share."""

from dataclasses import dataclass, field

from simulator.config import Config
from simulator.ledger import Counters, Ledger


@dataclass(slots=True)
class State:
    """A running simulator.

    Attributes:
        config: Settings in force; replaced as a whole when they change.
        counters: Requests and replies so far.
        ledger: Where every request is written to, if anywhere.
    """

    config: Config
    ledger: Ledger | None = None
    counters: Counters = field(default_factory=Counters)
