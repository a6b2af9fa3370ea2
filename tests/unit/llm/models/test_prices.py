import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime

import genai_prices
import pytest
from genai_prices.data_snapshot import get_snapshot
from genai_prices.types import TieredPrices

from app.domain.providers.model import Model, ModelParameters, Takes, Usage
from app.llm.connections.connections import Connection, Connections, ModelPrices
from app.llm.models.prices import GenaiPriceBook, price_lists
from app.ports import Price

OPENAI = "https://api.openai.com/v1"
ANTHROPIC = "https://api.anthropic.com"


def price(base_url: str, model: str, usage: Usage, **options: object) -> Price:
    connection = Connection("it", "openai", base_url, **options)  # type: ignore[arg-type]  # a test's shorthand
    return GenaiPriceBook(Connections({"it": connection})).price(Model("it", "it", model), usage)


class TestOperatorPrices:
    def test_go_before_the_library(self) -> None:
        prices = {"gpt-4o": ModelPrices(input=1, output=2, cached_input=0.5)}
        # 600 fresh at $1, 400 cached at $0.50, 100 out at $2, per million
        expected = (600 * 1 + 400 * 0.5 + 100 * 2) / 1e6
        found = price(OPENAI, "gpt-4o", Usage(1000, 100, 400), prices=prices)
        assert found.usd == pytest.approx(expected)
        assert found.source == "operator"

    def test_charge_cached_tokens_as_others_unless_they_say_so(self) -> None:
        prices = {"m": ModelPrices(input=1, output=2)}
        found = price("http://localhost/v1", "m", Usage(1000, 100, 400), prices=prices)
        assert found.usd == pytest.approx((1000 * 1 + 100 * 2) / 1e6)

    def test_charge_stored_tokens_a_quarter_more(self) -> None:
        prices = {"m": ModelPrices(input=1, output=2)}
        usage = Usage(1000, 100, written_input_tokens=400)
        found = price("http://localhost/v1", "m", usage, prices=prices)
        assert found.usd == pytest.approx((600 * 1 + 400 * 1.25 + 100 * 2) / 1e6)


OWN = {"gpt-4o": ModelPrices(input=1, output=2)}
LIBRARY = f"genai-prices {genai_prices.__version__}"


class TestReportedCosts:
    """1,000 tokens of gpt-4o's input cost $0.0025 at list price, and $0.001 at the operator's."""

    @pytest.mark.parametrize(
        ("reported", "options", "expected"),
        [
            (0.5, {}, Price(0.5, "provider")),
            (0.0001, {}, Price(0.0025, LIBRARY)),
            (0.0001, {"trust_cost": True}, Price(0.0001, "provider")),
            (0.5, {"tenant": "t"}, Price(0.5, "provider")),
            (0.0001, {"tenant": "t"}, Price(0.0025, LIBRARY)),
            (0.5, {"prices": OWN}, Price(0.5, "provider")),
            (0.0001, {"prices": OWN}, Price(0.001, "operator")),
            (0.0001, {"prices": OWN, "trust_cost": True}, Price(0.0001, "provider")),
        ],
    )
    def test_raise_a_price_and_lower_it_only_on_trusted_connections(
        self, reported: float, options: dict[str, object], expected: Price
    ) -> None:
        found = price(OPENAI, "gpt-4o", Usage(1000, 0, reported_usd=reported), **options)
        assert found.source == expected.source
        assert found.usd == pytest.approx(expected.usd)

    def test_replace_an_unknown_price(self) -> None:
        found = price("http://localhost/v1", "m", Usage(1000, 0, reported_usd=0.2), tenant="t")
        assert found == Price(0.2, "provider")


class TestUnknownConnections:
    def test_have_prices_as_soon_as_they_are_known(self) -> None:
        connections = Connections({})
        book = GenaiPriceBook(connections)
        assert book.price(Model("it", "it@1", "m"), Usage(1000, 100)) == Price(None, None)
        own = {"m": ModelPrices(input=1, output=2)}
        connections.learn(Connection("it@1", "openai", OPENAI, prices=own, tenant="t"))
        assert book.price(Model("it", "it@1", "m"), Usage(1000, 100)).usd == pytest.approx(
            (1000 * 1 + 100 * 2) / 1e6
        )


class TestBatchPrices:
    @staticmethod
    def batched(base_url: str, model: str, own: ModelPrices | None = None) -> float | None:
        connection = Connection("it", "openai", base_url, prices={} if own is None else {model: own})
        book = GenaiPriceBook(Connections({"it": connection}))
        return book.price(Model("it", "it", model), Usage(1000, 100), batched=True).usd

    def test_are_half_unless_the_operator_says_otherwise(self) -> None:
        assert self.batched(OPENAI, "gpt-4o-2024-08-06") == pytest.approx((1000 * 2.5 + 100 * 10) / 1e6 / 2)
        own = ModelPrices(input=1, output=2, batch_share=0.25)
        assert self.batched(OPENAI, "m", own=own) == pytest.approx((1000 * 1 + 100 * 2) / 1e6 / 4)

    def test_stay_unknown_where_direct_ones_are(self) -> None:
        assert self.batched("http://localhost/v1", "m") is None


class TestLibraryPrices:
    def test_of_what_a_provider_stores_in_its_cache(self) -> None:
        # $3 in, $0.30 cached, $3.75 stored, $15 out, per million
        usage = Usage(2000, 100, cached_input_tokens=1200, written_input_tokens=500)
        found = price("https://api.anthropic.com", "claude-3-5-sonnet-20240620", usage)
        assert found.usd == pytest.approx((300 * 3 + 1200 * 0.3 + 500 * 3.75 + 100 * 15) / 1e6)

    def test_of_what_is_stored_where_that_is_not_charged_for(self) -> None:
        found = price(OPENAI, "gpt-4o-2024-08-06", Usage(1000, 100, written_input_tokens=900))
        assert found.usd == pytest.approx((1000 * 2.5 + 100 * 10) / 1e6)

    def test_of_gpt_4o(self) -> None:
        # $2.50 in, $1.25 cached, $10 out, per million
        found = price(OPENAI, "gpt-4o-2024-08-06", Usage(1000, 100, 400))
        assert found.usd == pytest.approx((600 * 2.5 + 400 * 1.25 + 100 * 10) / 1e6)
        assert found.source == f"genai-prices {genai_prices.__version__}"

    @pytest.mark.parametrize(
        "input_tokens", [0, 1000, 128_000, 128_001, 200_000, 200_001, 300_000, 1_000_000]
    )
    @pytest.mark.parametrize(
        ("base_url", "model"),
        [
            (OPENAI, "gpt-4o-mini"),
            (OPENAI, "gpt-5"),
            ("https://api.anthropic.com", "claude-3-haiku-20240307"),
            ("https://api.anthropic.com", "claude-sonnet-4-5"),
            ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-pro"),
            ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-1.5-pro"),
            ("https://api.together.xyz/v1", "meta-llama/Llama-3.3-70B-Instruct-Turbo"),
            ("https://openrouter.ai/api/v1", "openai/gpt-4o"),
            ("https://my-resource.openai.azure.com/openai/v1", "gpt-4o"),
        ],
    )
    def test_are_those_that_the_library_computes(self, base_url: str, model: str, input_tokens: int) -> None:
        cached = input_tokens // 4
        usage = genai_prices.Usage(input_tokens=input_tokens, output_tokens=500, cache_read_tokens=cached)
        expected = genai_prices.calc_price(usage, model, provider_api_url=base_url).total_price
        found = price(base_url, model, Usage(input_tokens, 500, cached))
        assert found.usd == pytest.approx(float(expected), rel=1e-12)

    def test_above_include_models_with_tiers(self) -> None:
        address = "https://generativelanguage.googleapis.com/v1beta/openai"
        _, info = get_snapshot().find_provider_model("gemini-2.5-pro", None, None, address)
        assert isinstance(info.get_prices(datetime(2026, 11, 29, tzinfo=UTC)).input_mtok, TieredPrices)


class TestUnknownPrices:
    @pytest.mark.parametrize(
        ("base_url", "model"), [(OPENAI, "no-such-model"), ("http://localhost:11434/v1", "gpt-4o")]
    )
    def test_are_missing_not_zero(self, base_url: str, model: str) -> None:
        assert price(base_url, model, Usage(1000, 100)) == Price(None, None)

    def test_are_those_of_connections_that_do_not_exist(self) -> None:
        assert GenaiPriceBook(Connections({})).price(Model("it", "nowhere", "m"), Usage(1, 1)) == Price(
            None, None
        )


class TestVariants:
    """What only begins like a listed name is another model, at a price that nobody knows."""

    @pytest.mark.parametrize(
        ("base_url", "model"),
        [
            (OPENAI, "gpt-4o-mini-search-preview"),
            (OPENAI, "gpt-4o-mini-search-preview-2025-03-11"),
            (OPENAI, "gpt-5-search-api"),
            (OPENAI, "o3-deep-research"),
            ("https://openrouter.ai/api/v1", "perplexity/sonar-pro"),
            (OPENAI, "gpt-5-nano-fast"),
            (OPENAI, "ft:gpt-4o-mini-search-preview-2025-03-11:org::id"),
            (ANTHROPIC, "claude-opus-4-6-fast"),
            (ANTHROPIC, "claude-haiku-4-5-20251001-fast"),
            (ANTHROPIC, "claude-opus-4-61"),
            ("https://openrouter.ai/api/v1", "openai/gpt-4o:online"),
            ("https://openrouter.ai/api/v1", "openai/gpt-4o:nitro"),
        ],
    )
    def test_are_unknown(self, base_url: str, model: str) -> None:
        assert price(base_url, model, Usage(1000, 100)) == Price(None, None)

    @pytest.mark.parametrize(
        ("base_url", "model", "named"),
        [
            (OPENAI, "gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
            (OPENAI, "gpt-5-nano-2025-08-07", "gpt-5-nano"),
            (OPENAI, "GPT-4o", "gpt-4o"),
            (ANTHROPIC, "claude-opus-4-6-20260205", "claude-opus-4-6"),
            (ANTHROPIC, "claude-sonnet-5-5@20260928", "claude-sonnet-5-5"),
        ],
    )
    def test_dated_snapshots_cost_what_their_model_does(self, base_url: str, model: str, named: str) -> None:
        found = price(base_url, model, Usage(1000, 100))
        assert found.usd is not None
        assert found == price(base_url, named, Usage(1000, 100))

    def test_fine_tuned_models_cost_what_the_list_says_of_them(self) -> None:
        # $0.30 in per million tokens, twice the price of the model that was tuned
        tuned = price(OPENAI, "ft:gpt-4o-mini-2024-07-18:org::id", Usage(1_000_000, 0))
        assert tuned.usd == pytest.approx(0.3)

    def test_have_the_operators_price(self) -> None:
        own = {"claude-opus-4-6-fast": ModelPrices(input=30, output=150)}
        found = price(ANTHROPIC, "claude-opus-4-6-fast", Usage(1_000_000, 0), prices=own)
        assert found.usd == pytest.approx(30)
        assert found.source == "operator"


class TestFieldsThatTheOperatorAllows:
    """What they make a call cost is for him to say."""

    MODEL = Model(
        "it",
        "it",
        "gpt-4o",
        ModelParameters(extra={"service_tier": "priority"}),
        takes=Takes(allowed_extra=("service_tier",)),
    )

    def test_leave_no_listed_price(self) -> None:
        book = GenaiPriceBook(Connections({"it": Connection("it", "openai", OPENAI)}))
        assert book.price(self.MODEL, Usage(1, 1)) == Price(None, None)
        unset = replace(self.MODEL, parameters=ModelParameters(extra={"top_k": 5}))
        assert book.price(unset, Usage(1, 1)).usd is not None

    def test_are_charged_as_he_says(self) -> None:
        own = {"gpt-4o": ModelPrices(input=5, output=20)}
        book = GenaiPriceBook(Connections({"it": Connection("it", "openai", OPENAI, prices=own)}))
        found = book.price(self.MODEL, Usage(1_000_000, 0))
        assert found.usd == pytest.approx(5)
        assert found.source == "operator"


class TestSimulatedPrices:
    def test_are_zero_and_say_why(self) -> None:
        assert price("http://localhost/v1", "gpt-4o", Usage(1000, 100), simulated=True) == Price(
            0.0, "simulated"
        )


FIRST_PRICE = """
import importlib, sys
from app.domain.providers.model import Model, Usage
from app.llm.connections.connections import Connection, Connections
from app.llm.models.prices import GenaiPriceBook, price_lists

connections = Connections({"it": Connection("it", "openai", "https://api.openai.com/v1")})
for name in price_lists(connections):
    importlib.import_module(name)
there = set(sys.modules)
assert GenaiPriceBook(connections).price(Model("it", "it", "gpt-4o"), Usage(1000, 100)).usd
print(sorted(set(sys.modules) - there))
"""


class TestPriceLists:
    def test_are_all_that_the_first_price_imports(self) -> None:
        looked_up = subprocess.run(
            [sys.executable, "-c", FIRST_PRICE], capture_output=True, text=True, check=True, timeout=120
        )
        assert looked_up.stdout.strip() == "[]"

    def test_are_not_imported_for_the_simulator(self) -> None:
        simulated = Connection("it", "openai", "http://localhost/v1", simulated=True)
        assert price_lists(Connections({"it": simulated})) == []
