"""Which environment a variable is taken from: the newest client's, then the engine's own."""

from errand.engine.core.secrets import ClientEnvironments

KEY, BASE = "OPENAI_API_KEY", "OPENAI_BASE_URL"


def test_the_newest_client_comes_first_and_the_engines_own_environment_last() -> None:
    environments = ClientEnvironments({KEY: "own"})
    environments.add({KEY: "older"})
    environments.add({KEY: " newer\n"})
    assert list(environments.values([KEY])) == [(KEY, "newer"), (KEY, "older"), (KEY, "own")]


def test_variable_missing_in_one_client_is_not_taken_from_others() -> None:
    environments = ClientEnvironments({})
    environments.add({KEY: "set"})
    environments.add({})
    environments.add({KEY: "", "XAI_API_KEY": "other"})
    assert list(environments.values([KEY])) == [(KEY, "set")]


def test_the_same_terminal_again_becomes_the_newest() -> None:
    environments = ClientEnvironments({})
    for value in ("one", "two", "one"):
        environments.add({KEY: value})
    assert list(environments.values([KEY])) == [(KEY, "one"), (KEY, "two")]


def test_key_is_used_only_with_the_address_of_its_own_environment() -> None:
    environments = ClientEnvironments({KEY: "own"})
    environments.add({KEY: "elsewhere", BASE: "http://elsewhere/v1"})
    assert environments.value_set_with(BASE, [KEY]) == "http://elsewhere/v1"
    assert list(environments.values([KEY], (BASE, "http://elsewhere/v1"))) == [(KEY, "elsewhere")]
    environments.add({KEY: "newest"})
    assert environments.value_set_with(BASE, [KEY]) == ""
    assert list(environments.values([KEY], (BASE, ""))) == [(KEY, "newest"), (KEY, "own")]


def test_unrelated_variables_of_a_client_do_not_hide_an_address() -> None:
    environments = ClientEnvironments({})
    environments.add({BASE: "http://here/v1"})
    environments.add({"XAI_API_KEY": "other"})
    assert environments.value_set_with(BASE, [KEY]) == "http://here/v1"
