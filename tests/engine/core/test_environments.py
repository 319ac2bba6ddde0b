"""Which environment a variable is taken from: the newest client's, then the engine's own."""

from app.engine.core.secrets import ClientEnvironments

KEY, BASE = "OPENAI_API_KEY", "OPENAI_BASE_URL"


def test_the_newest_client_comes_first_and_the_engines_own_environment_last() -> None:
    environments = ClientEnvironments({KEY: "own"})
    environments.offer({KEY: "older"})
    environments.offer({KEY: " newer\n"})
    assert list(environments.values([KEY])) == ["newer", "older", "own"]


def test_a_client_without_a_variable_does_not_take_it_from_the_others() -> None:
    environments = ClientEnvironments({})
    environments.offer({KEY: "set"})
    environments.offer({})
    environments.offer({KEY: "", "XAI_API_KEY": "other"})
    assert list(environments.values([KEY])) == ["set"]


def test_the_same_terminal_again_becomes_the_newest() -> None:
    environments = ClientEnvironments({})
    for value in ("one", "two", "one"):
        environments.offer({KEY: value})
    assert list(environments.values([KEY])) == ["one", "two"]


def test_a_key_stays_with_the_address_of_its_own_environment() -> None:
    environments = ClientEnvironments({KEY: "own"})
    environments.offer({KEY: "elsewhere", BASE: "http://elsewhere/v1"})
    assert environments.value_beside(BASE, [KEY]) == "http://elsewhere/v1"
    assert list(environments.values([KEY], (BASE, "http://elsewhere/v1"))) == ["elsewhere"]
    environments.offer({KEY: "newest"})
    assert environments.value_beside(BASE, [KEY]) == ""
    assert list(environments.values([KEY], (BASE, ""))) == ["newest", "own"]


def test_what_a_client_has_set_for_something_else_hides_no_address() -> None:
    environments = ClientEnvironments({})
    environments.offer({BASE: "http://here/v1"})
    environments.offer({"XAI_API_KEY": "other"})
    assert environments.value_beside(BASE, [KEY]) == "http://here/v1"
