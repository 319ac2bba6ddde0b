"""Stores the settings as JSON, checks new values, and describes the fields of `setting_values.py` for clients."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from errand.engine.core.addresses import check_address
from errand.engine.core.errors import ConfigurationError, InvalidParams
from errand.engine.core.outgoing import UnusableRoute, tls_context
from errand.engine.core.setting_lists import folders_of, parse_own_models, writable_folders_of
from errand.engine.core.setting_values import FolderPair, McpServer, ModelServer, SettingValues
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.settings import Setting
from errand.system.regular_file import atomic_writer, read_regular
from errand.text.url_secrets import MASK, with_url_secrets, without_url_secrets

# What people change in the first days; clients show the rest on request.
_EVERYDAY = frozenset(
    {
        "default_model",
        "fallback_models",
        "title_model",
        "language",
        "thinking_level",
        "max_turns",
        "max_minutes",
        "budget_usd",
        "day_budget_usd",
        "command_sandbox",
    }
)
_MAX_FILE_BYTES = 1_000_000
_Kind = Literal["string", "integer", "number", "boolean", "null"]
_SEPARATE = ("model_servers", "mcp_servers", "chosen_models", "folder_pairs", "not_given_again")
_ADDRESSES = ("default_api_base", "model_hub", "llama_cpp_downloads", "proxy_url", "vector_server")
_KINDS: dict[object, _Kind] = {str: "string", int: "integer", float: "number", bool: "boolean"}


class Settings:
    """The current settings. `set` replaces `values` as a whole."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.values = _read(file)

    def all(self) -> tuple[Setting, ...]:
        defaults = SettingValues()
        return tuple(
            Setting(
                name=field.name,
                title=_meta(field.name).title or field.name,
                help=_meta(field.name).description or "",
                kind=_kind(field.name),
                value=_shown(getattr(self.values, field.name)),
                default=_as_json(getattr(defaults, field.name)),
                choices=_choices(field.name),
                minimum=_minimum(field.name),
                advanced=field.name not in _EVERYDAY,
            )
            for field in msgspec.structs.fields(SettingValues)
            if field.name not in _SEPARATE
        )

    def set(self, name: str, value: JsonValue) -> None:
        """Validate, store atomically, then apply. `InvalidParams` names the problem."""
        current: JsonObject = msgspec.to_builtins(self.values)
        if name not in current or name in _SEPARATE:
            names = ", ".join(other for other in current if other not in _SEPARATE)
            raise InvalidParams(f"There is no setting {name!r}. Settings are: {names}.")
        if isinstance(value, str):
            value = _with_stored_secrets(name, value, str(current[name]))
        try:
            values = msgspec.convert({**current, name: value}, SettingValues)
        except msgspec.ValidationError as error:
            reason = str(error).partition(" - at ")[0].replace("`", "")
            raise InvalidParams(f"Setting {name}: {reason}.") from error
        parse_own_models(values.own_models)
        writable_folders_of(values.writable_folders)
        folders_of(values.not_remembered_folders, "Folders not remembered")
        folders_of(values.not_recalled_folders, "Folders without recall")
        if name in _ADDRESSES:
            check_address(str(value))
        if name == "ca_file":
            try:
                tls_context(values.ca_file)
            except UnusableRoute as error:
                raise InvalidParams(str(error)) from error
        self._store(values)

    def set_model_servers(self, servers: tuple[ModelServer, ...]) -> None:
        self._store(msgspec.structs.replace(self.values, model_servers=servers))

    def set_chosen_models(self, chosen: dict[str, tuple[str, ...]]) -> None:
        self._store(msgspec.structs.replace(self.values, chosen_models=chosen))

    def set_folder_pairs(self, pairs: tuple[FolderPair, ...]) -> None:
        self._store(msgspec.structs.replace(self.values, folder_pairs=pairs))

    def set_not_given_again(self, node_ids: tuple[str, ...]) -> None:
        self._store(msgspec.structs.replace(self.values, not_given_again=node_ids))

    def set_mcp_servers(self, servers: tuple[McpServer, ...]) -> None:
        self._store(msgspec.structs.replace(self.values, mcp_servers=servers))

    def _store(self, values: SettingValues) -> None:
        _write(self._file, values)
        self.values = values


def _read(file: Path) -> SettingValues:
    try:
        values = msgspec.convert(_migrated(read_regular(file, _MAX_FILE_BYTES)), SettingValues)
        parse_own_models(values.own_models)
    except FileNotFoundError:
        return SettingValues()
    except (msgspec.DecodeError, InvalidParams) as error:
        raise ConfigurationError(f"The settings file {file} is not right: {error}. Mend it or move it away.") from error
    except OSError as error:
        raise ConfigurationError(
            f"The settings file {file} cannot be read: {error.strerror}. Mend it or move it away."
        ) from error
    return values


def _migrated(data: bytes) -> JsonObject:
    """Return the stored values in their present form: the sandbox was a switch, and off was its default."""
    stored = msgspec.json.decode(data, type=JsonObject)
    if isinstance(stored.get("command_sandbox"), bool):
        stored["command_sandbox"] = "required" if stored["command_sandbox"] else "auto"
    return stored


def _write(file: Path, values: SettingValues) -> None:
    data = msgspec.json.format(msgspec.json.encode(values), indent=2)
    if len(data) > _MAX_FILE_BYTES:
        raise InvalidParams(f"All settings together may have {_MAX_FILE_BYTES:,} bytes. Nothing was changed.")
    try:
        # If the user replaced the file with a link, write the link's target.
        with atomic_writer(Path(os.path.realpath(file)), overwrite=True) as new:
            new.write(data)
    except OSError as error:
        raise ConfigurationError(
            f"The settings file {file} cannot be written: {error.strerror}. Nothing was changed."
        ) from error


def _meta(name: str) -> msgspec.Meta:
    return _metas(name)[-1]


def _minimum(name: str) -> float | None:
    return next((meta.ge for meta in _metas(name) if meta.ge is not None), None)


def _metas(name: str) -> list[msgspec.Meta]:
    hint = _hints_with_notes()[name]
    return [note for note in get_args(hint)[1:] if isinstance(note, msgspec.Meta)]


def _kind(name: str) -> _Kind:
    hint = _hints()[name]
    return "string" if get_origin(hint) is Literal else _KINDS[hint]


def _choices(name: str) -> tuple[str, ...]:
    hint = _hints()[name]
    return tuple(str(choice) for choice in get_args(hint)) if get_origin(hint) is Literal else ()


@cache
def _hints() -> Mapping[str, Any]:
    """Cached, because evaluating the annotations takes 2 ms, and a list of the settings needs them for each field."""
    return get_type_hints(SettingValues)


@cache
def _hints_with_notes() -> Mapping[str, Any]:
    return get_type_hints(SettingValues, include_extras=True)


def _shown(value: str | float | bool) -> JsonValue:
    """Return the value for clients, without the password of an address."""
    return without_url_secrets(value) if isinstance(value, str) else value


def _with_stored_secrets(name: str, value: str, current: str) -> str:
    """Return the value with stored secrets: one that is sent back as it is shown means the stored one.

    Raises `InvalidParams`.
    """
    complete = with_url_secrets(value, current)
    if complete is None:
        raise InvalidParams(f"Setting {name}: write the password in place of the {MASK}, which hides the stored one.")
    return complete


def _as_json(value: str | float | bool) -> JsonValue:
    return value
