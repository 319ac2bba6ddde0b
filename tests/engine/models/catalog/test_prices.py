"""The cost of a call for each row of the price file, compared with the library's own computation."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import litellm
import pytest

# The public function takes no time of day.
from litellm.litellm_core_utils.llm_cost_calc.utils import (  # pyright: ignore[reportMissingTypeStubs]
    generic_cost_per_token,
)

from errand.engine.core.messages import Usage
from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.providers import PROVIDERS

# A Wednesday morning in Beijing: no night discounts apply.
DAY = datetime(2026, 11, 18, 2, 0, tzinfo=UTC)
CALLS = [
    Usage(input_tokens=1_000, output_tokens=500),
    Usage(input_tokens=50_000, output_tokens=2_000, cache_read_tokens=40_000, cache_write_tokens=5_000),
    *(
        Usage(size + more, 1_000, cache_read_tokens=size // 2, cache_write_tokens=1_000)
        for size in (100_000, 128_000, 200_000, 272_000, 512_000)
        for more in (0, 1)
    ),
]


def table() -> dict[str, dict[str, object]]:
    file = Path(litellm.__file__).with_name("model_prices_and_context_window_backup.json")
    return json.loads(file.read_bytes())


def priced_rows() -> Iterator[tuple[str, str, str]]:
    """Our id, the library's provider and its name, for every priced row of our providers."""
    own = {row.price_prefix: row.name for row in PROVIDERS if row.price_prefix}
    for name, row in table().items():
        provider = str(row.get("litellm_provider"))
        has_price = row.get("input_cost_per_token") is not None and row.get("output_cost_per_token") is not None
        if provider in own and row.get("mode") in ("chat", "responses") and has_price:
            bare = name.removeprefix(f"{provider}/")
            yield f"{own[provider]}/{bare}", provider, bare


def theirs(provider: str, name: str, usage: Usage) -> float:
    litellm_usage = litellm.Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        cache_read_input_tokens=usage.cache_read_tokens,
        cache_creation_input_tokens=usage.cache_write_tokens,
        prompt_tokens_details={"cached_tokens": usage.cache_read_tokens},
    )
    return sum(generic_cost_per_token(name, litellm_usage, provider, current_time=DAY))


def test_every_row_costs_what_the_library_says() -> None:
    rows = list(priced_rows())
    assert len(rows) > 200
    wrong: list[str] = []
    for model_id, provider, name in rows:
        facts = model_facts.facts(model_id)
        assert facts is not None, model_id
        for usage in CALLS:
            ours, other = facts.cost(usage), theirs(provider, name, usage)
            if ours != pytest.approx(other):
                wrong.append(f"{model_id}: {usage}: {ours}, the library says {other}")
    assert wrong == []


def test_every_threshold_of_the_file_is_known() -> None:
    thresholds = {
        int(size) for row in table().values() for name in row for size in re.findall(r"_above_(\d+)k_tokens", name)
    }
    assert thresholds == {100, 128, 200, 272, 512}
