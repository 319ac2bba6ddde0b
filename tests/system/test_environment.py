"""Which variables are keys, and which of them a client sends to the engine."""

import pytest

from errand.engine.models.catalog.providers import PROVIDERS
from errand.protocol.engine import InitializeParams, is_offered
from errand.system.environment import for_commands, is_secret, keys_in, without_secrets


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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OPENAI_API_KEY", "x"),
        ("GITHUB_TOKEN", "x"),
        ("DB_PASS", "x"),
        ("PGPASSWORD", "x"),
        ("MYSQL_PWD", "x"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_PROFILE", "x"),
        ("AZURE_CLIENT_SECRET", "x"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json"),
        ("npm_config_//registry.npmjs.org/:_authToken", "x"),
        ("my-api-key", "x"),
        ("OPENAI_API_KEY2", "x"),
        ("TS_AUTHKEY", "x"),
        ("MINIO_SECRETKEY", "x"),
        ("REGISTRY_CREDS", "x"),
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=b"),
        ("EXTRA_HEADERS", "Authorization: Bearer sk-0123456789abcdef"),
        ("SENTRY_DSN", "https://0123456789abcdef0123@o1.ingest.sentry.io/1"),
        ("SPARE", "sk-0123456789abcdef"),
        ("SIGNING", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc"),
        ("DATABASE_URL", "postgres://me:secret@db/shop"),
        ("OPENAI_BASE_URL", "https://me:secret@host/v1"),
    ],
)
def test_a_key_a_token_and_a_password_are_secrets_by_name_or_by_shape(name: str, value: str) -> None:
    assert is_secret(name, value)


def test_what_commands_need_is_no_secret() -> None:
    environment = {
        "PATH": "/bin",
        "PWD": "/home/me",
        "OLDPWD": "/",
        "SSH_AUTH_SOCK": "/run/agent",
        "XAUTHORITY": "/run/auth",
        "KEYBOARD": "us",
        "MONKEY": "yes",
        "EDGE": "/opt/sk-0123456789abcdef:/opt/a",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        "https_proxy": "http://me:secret@proxy:3128",
        "DATABASE_URL": "postgres://db/shop",
        "LANG": "C",
        "EMPTY": "",
    }
    assert without_secrets(environment) == environment


def test_what_commands_get_is_text_that_fits_and_nothing_a_shell_says_of_itself() -> None:
    environment = {
        "LANG": "C",
        "PWD": "/",
        "GPG_TTY": "/dev/pts/1",
        "_": "/bin/env",
        "NAME": "caf\udce9",
        "LONG": "x" * 40_000,
        "A_TOKEN": "t",
    }
    many = {f"V{number}": "x" * 30_000 for number in range(9)}
    assert for_commands(environment) == {"LANG": "C"}
    assert list(for_commands(environment | many)) == ["LANG", "V0", "V1", "V2", "V3"]
