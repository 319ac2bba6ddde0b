"""Settings on the wire: every declared one with its value and where it comes from."""

from typing import Literal

from app.protocol.json import JsonValue
from app.protocol.struct import Wire


class Setting(Wire, frozen=True, kw_only=True):
    """One declared setting. `kind` is the JSON type of `value`.

    Where `choices` are given, the value is one of them; a number is not below `minimum`.
    """

    name: str
    title: str
    help: str
    kind: Literal["string", "integer", "number", "boolean", "null"]
    value: JsonValue
    default: JsonValue
    choices: tuple[str, ...] = ()
    minimum: float | None = None


class SettingsGetParams(Wire, frozen=True, kw_only=True):
    pass


class SettingsGetResult(Wire, frozen=True, kw_only=True):
    settings: tuple[Setting, ...]


class SettingsSetParams(Wire, frozen=True, kw_only=True):
    name: str
    value: JsonValue


class SettingsSetResult(Wire, frozen=True, kw_only=True):
    settings: tuple[Setting, ...]


class KeySetParams(Wire, frozen=True, kw_only=True):
    """Store a provider's key in the keyring, or the encrypted file where there is none. An empty key removes it."""

    provider: str
    key: str


class KeySetResult(Wire, frozen=True, kw_only=True):
    """`notice` says where the key went, in plain words."""

    notice: str
