"""Context windows that a refusal named: kept for the next engine, until the server says something else."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from errand.engine.models.catalog import model_facts
from errand.engine.models.catalog.model_facts import parse_facts
from errand.engine.models.catalog.served_facts import ServedFacts

MODEL, ADDRESS = "llama_cpp/qwen", "http://127.0.0.1:8080/v1"


def served(window: int | None) -> dict[str, model_facts.ModelFacts]:
    return {MODEL: parse_facts(window, None, None, None, None, None)}


def window(address: str | None = None) -> int | None:
    facts = model_facts.facts(MODEL, address)
    return None if facts is None else facts.context_tokens


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    """The file of an engine to which a server that stated 8,192 tokens refused a request as longer than 4,096."""
    file = tmp_path / "learned_windows.json"
    model_facts.use_served(ServedFacts(file))
    model_facts.register_served(served(8_192), ADDRESS)
    model_facts.register_window(MODEL, 4_096, ADDRESS)
    assert window() == 4_096
    yield file
    model_facts.use_served(ServedFacts())


def test_the_next_engine_knows_the_window(file: Path) -> None:
    model_facts.use_served(ServedFacts(file))
    assert window() == 4_096
    model_facts.register_served(served(8_192), ADDRESS)
    assert window() == 4_096


def test_it_is_forgotten_if_the_server_states_another_window(file: Path) -> None:
    model_facts.register_served(served(16_384), ADDRESS)
    assert window() == 16_384
    model_facts.use_served(ServedFacts(file))
    assert window() is None


@pytest.mark.parametrize("other", ["http://127.0.0.1:8081/v1", "http://127.0.0.1:80"])
def test_it_is_not_that_of_a_model_of_the_same_name_at_another_address(other: str, file: Path) -> None:
    model_facts.register_served(served(16_384), other)
    assert (window(ADDRESS), window(other), window()) == (4_096, 16_384, 16_384)
    model_facts.use_served(ServedFacts(file))
    assert (window(ADDRESS), window(other), window()) == (4_096, None, 4_096)
    model_facts.register_window(MODEL, 2_048, f"{other}/chat/completions")
    assert (window(ADDRESS), window(other), window()) == (4_096, 2_048, 2_048)


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"http://127.0.0.1:8080/v1 llama_cpp/qwen": {"tokens": 4096, "address": "", "at": "2099-01-01T00:00:00"}}',
        '{"http://127.0.0.1:8080/v1 llama_cpp/qwen": {"tokens": 0, "address": "", "at": "2099-01-01T00:00:00Z"}}',
        '{"llama_cpp/qwen": {"other": ' + "[" * 100_000 + "]" * 100_000 + "}}",
    ],
    ids=["cut", "time without a zone", "no window", "deeply nested"],
)
def test_an_unreadable_file_is_like_none(content: str, file: Path) -> None:
    file.write_text(content)
    model_facts.use_served(ServedFacts(file))
    assert window() is None
    model_facts.register_window(MODEL, 4_096, ADDRESS)
    model_facts.use_served(ServedFacts(file))
    assert window() == 4_096
