"""What calls cost: the operator's prices, else those of genai-prices (data of the installed package, no network)."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import genai_prices
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import ModelPrice, TieredPrices

from app import clock
from app.domain.providers.model import Model, Usage
from app.domain.providers.parameters import sets_allowed_extra
from app.llm.connections.connections import BATCH_SHARE, Connection, Connections, ModelPrices
from app.llm.models.price_names import is_named
from app.ports import BY_PROVIDER, Price

_LIBRARY = f"genai-prices {genai_prices.__version__}"
_REFRESH_SECONDS = 60.0
"""Prices can depend on the day and the hour (a new price list, off-peak discounts), so they are looked up anew."""

STORED_SHARE = 1.25
"""What Anthropic charges for a prompt token that goes into its cache for five minutes, as a share of one that does not:
https://platform.claude.com/docs/en/build-with-claude/prompt-caching. No one else names tokens that it stores."""

_MOST_KEPT = 10_000
"""Of how many models prices are kept between two looks: plans may ask for any name."""

PRICE_LISTS = "genai_prices.data"
"""The module with the library's price lists, which the first look-up imports: that takes a second, with nothing else done meanwhile."""

_Pricing = Callable[[Usage], Price]


@dataclass(frozen=True, slots=True)
class _Rates:
    """US dollars per token, from a number of input tokens on; a request above it pays them for all its tokens."""

    above_input_tokens: int
    input: float
    output: float
    cached_input: float
    written_input: float
    request: float

    def cost(self, usage: Usage) -> float:
        fresh = usage.input_tokens - usage.cached_input_tokens - usage.written_input_tokens
        tokens = (
            fresh * self.input
            + usage.cached_input_tokens * self.cached_input
            + usage.written_input_tokens * self.written_input
            + usage.output_tokens * self.output
        )
        return tokens + self.request


class GenaiPriceBook:
    """The ``PriceBook`` of an installation's connections; models of the simulator cost nothing."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._pricings: dict[tuple[str, str], tuple[float, _Pricing]] = {}

    def price(self, model: Model, usage: Usage, *, batched: bool = False) -> Price:
        """Return the present cost of ``usage``, without volume discounts.

        List prices do not apply to a model that is sent a field that the operator allows. A cost that the provider reports may raise
        the price. It lowers the price only on connections that the operator trusts.
        """
        name = (model.connection, model.name)
        expires, pricing = self._pricings.get(name, (0.0, _unknown))
        now = clock.monotonic()
        known = self._connections.get(model.connection)
        if now >= expires:
            if known is None:  # at this moment: it may be looked up anew with the next call
                return _unknown(usage)
            pricing = _pricing(known, model.name)
            if len(self._pricings) >= _MOST_KEPT:
                self._pricings.clear()
            self._pricings[name] = (now + _REFRESH_SECONDS, pricing)
        price = pricing(usage)
        if price.source == _LIBRARY and sets_allowed_extra(model):
            price = Price(None, None)
        if batched and price.usd is not None:
            price = price._replace(usd=price.usd * _batch_share(known, model.name))
        reported = usage.reported_usd
        if reported is None:
            return price
        lowers = known is not None and known.trust_cost
        return Price(reported, BY_PROVIDER) if price.usd is None or lowers or reported > price.usd else price


def price_lists(connections: Connections) -> list[str]:
    """What to import before prices of the connections' models are asked for; nothing where they are all the simulator's."""
    return [] if all(each.simulated for each in connections) else [PRICE_LISTS]


def _batch_share(connection: Connection | None, model: str) -> float:
    own = connection.prices.get(model) if connection is not None else None
    return BATCH_SHARE if own is None else own.batch_share


def _pricing(connection: Connection, model: str) -> _Pricing:
    if model in connection.prices:
        return _by_rates([_operator_rates(connection.prices[model])], "operator")
    if connection.simulated:
        return lambda _usage: Price(0.0, "simulated")
    rates = _library_rates(connection.base_url, model)
    return _by_rates(rates, _LIBRARY) if rates else _unknown


def _unknown(_usage: Usage) -> Price:
    return Price(None, None)


def _by_rates(rates: list[_Rates], source: str) -> _Pricing:
    if len(rates) == 1:
        return lambda usage: Price(rates[0].cost(usage), source)
    falling = sorted(rates, key=lambda tier: -tier.above_input_tokens)

    def tiered(usage: Usage) -> Price:
        tier = next((tier for tier in falling if usage.input_tokens > tier.above_input_tokens), falling[-1])
        return Price(tier.cost(usage), source)

    return tiered


def _operator_rates(prices: ModelPrices) -> _Rates:
    cached = prices.input if prices.cached_input is None else prices.cached_input
    stored = prices.input * STORED_SHARE
    return _Rates(-1, prices.input / 1e6, prices.output / 1e6, cached / 1e6, stored / 1e6, 0.0)


def _library_rates(base_url: str, model: str) -> list[_Rates]:
    """The library's rates by tier; empty if it does not know the provider or the model, or not by tokens."""
    try:
        _provider, info = get_snapshot().find_provider_model(model, None, None, base_url)
    except LookupError:
        return []
    if not is_named(info, model):
        return []
    prices = info.get_prices(clock.now())
    if prices.input_mtok is None or prices.output_mtok is None:
        return []
    caching = (prices.cache_read_mtok, prices.cache_write_mtok)
    listed = (prices.input_mtok, prices.output_mtok, *caching, prices.requests_kcount)
    starts = {tier.start for price in listed if isinstance(price, TieredPrices) for tier in price.tiers}
    return [_rates_above(start, prices) for start in sorted(starts | {-1})]


def _rates_above(start: int, prices: ModelPrice) -> _Rates:
    return _Rates(
        start,
        _at(prices.input_mtok, start) / 1e6,
        _at(prices.output_mtok, start) / 1e6,
        _at(prices.input_mtok if prices.cache_read_mtok is None else prices.cache_read_mtok, start) / 1e6,
        _at(prices.input_mtok if prices.cache_write_mtok is None else prices.cache_write_mtok, start) / 1e6,
        _at(prices.requests_kcount, start) / 1e3,
    )


def _at(price: Decimal | TieredPrices | None, start: int) -> float:
    """A price as it stands in the tier that starts above ``start`` input tokens."""
    if isinstance(price, TieredPrices):
        reached = [tier.price for tier in price.tiers if tier.start <= start]
        return float(reached[-1] if reached else price.base)
    return float(price or 0)
