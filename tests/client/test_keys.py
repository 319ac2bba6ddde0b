"""What a client tells the engine of its environment."""

from app.client.keys import keys_in
from app.engine.models.catalog import PROVIDERS
from app.protocol.engine import InitializeParams, is_offered


def test_keys_and_addresses_are_told_and_nothing_else() -> None:
    environment = {"HOME": "/root", "MY_API_KEY": "k", "OLLAMA_HOST": "box", "OPENAI_BASE_URL": "u", "API_KEYS": "x"}
    assert keys_in(environment) == {"MY_API_KEY": "k", "OLLAMA_HOST": "box", "OPENAI_BASE_URL": "u"}


def test_a_value_that_is_no_text_and_one_that_is_endless_do_not_spoil_the_first_message() -> None:
    environment = {"A_API_KEY": "caf\udce9", "B_API_KEY": "x" * 1_000_000, "C_API_KEY": "good"}
    assert keys_in(environment) == {"A_API_KEY": "caf?", "C_API_KEY": "good"}


def test_every_variable_that_a_provider_reads_is_told() -> None:
    names = {name for row in PROVIDERS for name in (*row.key_variables, row.base_variable) if name}
    assert {name for name in names if not is_offered(name)} == set()


def test_the_values_are_not_part_of_the_text_of_the_first_message() -> None:
    params = InitializeParams(client_id="c", client_name="test", keys={"OPENAI_API_KEY": "sk-secret"})
    assert "OPENAI_API_KEY" in repr(params)
    assert "sk-secret" not in repr(params) + str(params)
