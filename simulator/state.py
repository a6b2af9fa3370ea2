"""What the provider's endpoints and the simulator's own share."""

from dataclasses import dataclass, field

from simulator.accounts import Account
from simulator.config import Config
from simulator.ledger import Counters, Ledger
from simulator.provider_profiles import load_provider_profile


@dataclass(slots=True)
class State:
    """A running simulator.

    Attributes:
        config: Settings in force; replaced as a whole when they change.
        counters: Requests and replies so far.
        ledger: Where every request is written to, if anywhere.
        accounts: What was taken of each provider profile that was asked for, by its name.
    """

    config: Config
    ledger: Ledger | None = None
    counters: Counters = field(default_factory=Counters)
    accounts: dict[str, Account] = field(default_factory=dict)

    def account(self, profile: str) -> Account:
        """The account at a provider profile, which exists from its first request on."""
        found = self.accounts.get(profile)
        if found is None:
            found = self.accounts[profile] = Account(load_provider_profile(profile))
        return found
