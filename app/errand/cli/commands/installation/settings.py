"""`errand settings`: list, read, set and reset the settings of the engine."""

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError, wrong_words
from errand.cli.command import Command
from errand.cli.options import Action, Argument, CommandOptions, Flag
from errand.cli.parser import did_you_mean
from errand.cli.terminal.style import Style
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import one_line, plain, wrapped
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.protocol.base import JsonValue
from errand.protocol.settings import (
    SETTINGS_GET,
    SETTINGS_SET,
    Setting,
    SettingsGetParams,
    SettingsSetParams,
)
from errand.system.paths import Paths
from errand.text.redaction import redact
from errand.text.translation import tr
from errand.text.url_secrets import without_url_secrets

_ACTIONS = (
    Action("list", "list all settings with their values and defaults (the default)"),
    Action("get NAME", "show a setting and what it does", first="setting"),
    Action("set NAME VALUE", "set a value: a number, yes or no, one of the choices, or a text", first="setting"),
    Action("reset NAME", "reset a setting to its default", first="setting"),
)
_MODELS = ("default_model", "title_model")
_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


class SettingsOptions(CommandOptions, frozen=True, kw_only=True):
    words: Annotated[tuple[str, ...], Argument("WHAT", "list (the default), get, set or reset, and the setting")] = ()
    changed: Annotated[bool, Flag("--changed", "with list: only settings that differ from their defaults")] = False
    json: Annotated[bool, Flag("--json", "print JSON lines")] = False


async def settings(options: SettingsOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand settings") as connection:
        every = (await connection.call(SETTINGS_GET, SettingsGetParams())).settings
        match options.words or ("list",):
            case ["list"]:
                _list(every, options, terminal)
            case ["get", name]:
                _show(_named(every, name), options, terminal)
            case ["set", name, *words] if words:
                setting = _named(every, name)
                await _set(connection, setting, typed_value(setting, " ".join(words)), options, terminal)
            case ["reset", name]:
                setting = _named(every, name)
                await _set(connection, setting, setting.default, options, terminal)
            case _:
                raise wrong_words("settings", _ACTIONS, options.words)
    return 0


SETTINGS = Command(SettingsOptions, settings, actions=_ACTIONS)


def _named(every: Sequence[Setting], name: str) -> Setting:
    wanted = name.replace("-", "_").lower()
    found = next((setting for setting in every if setting.name == wanted), None)
    if found is None:
        near = did_you_mean(wanted, [setting.name for setting in every])
        raise UsageError(
            tr("There is no setting {name!r}.{near} List them: errand settings").format(name=name, near=near)
        )
    return found


def typed_value(setting: Setting, text: str) -> JsonValue:
    """What was typed as a value of the setting's kind; raises `UsageError` that says what it takes."""
    word = text.strip().lower()
    match setting.kind:
        case "boolean" if word in (*_YES, *_NO):
            return word in _YES
        case "integer" if re.fullmatch(r"\d{1,18}", word) and int(word) >= (setting.minimum or 0):
            return int(word)
        case "number" if re.fullmatch(r"\d{1,18}(\.\d{1,9})?", word) and float(word) >= (setting.minimum or 0):
            return float(word)
        case "string" if setting.name in _MODELS and text and not text.strip("/").count("/"):
            raise UsageError(
                tr("{name} takes the id of a model, provider/model, as listed by errand models, not {text!r}.").format(
                    name=setting.name, text=text[:80]
                )
            )
        case "string" if not setting.choices or text in setting.choices:
            return text
        case "null":
            return None
        case _:
            near = did_you_mean(word, setting.choices)
            raise UsageError(
                tr("{name} takes {setting}, not {text!r}.{near}").format(
                    name=setting.name, setting=_takes(setting), text=text[:80], near=near
                )
            )


def _takes(setting: Setting) -> str:
    if setting.choices:
        return tr("one of {names}").format(names=", ".join(setting.choices))
    what = {
        "boolean": tr("yes or no"),
        "integer": tr("a whole number"),
        "number": tr("a number"),
        "string": tr("a text"),
        "null": "–",
    }
    least = tr(" of at least {minimum:g}").format(minimum=setting.minimum) if setting.minimum is not None else ""
    return f"{what[setting.kind]}{least}"


async def _set(
    connection: Connection, setting: Setting, value: JsonValue, options: SettingsOptions, terminal: Terminal
) -> None:
    params = SettingsSetParams(name=setting.name, value=value)
    every = (await connection.call(SETTINGS_SET, params)).settings
    now = _named(every, setting.name)
    if options.json:
        _print_json(now, terminal)
        return
    before = (
        tr(" (was: {value})").format(value=_text(setting.value)) if now.value != setting.value else tr(" (unchanged)")
    )
    terminal.line(plain(tr("{name} is {value}{before}").format(name=now.name, value=_text(now.value), before=before)))


def _list(every: Sequence[Setting], options: SettingsOptions, terminal: Terminal) -> None:
    shown = [setting for setting in every if setting.value != setting.default or not options.changed]
    if options.json:
        for setting in shown:
            _print_json(setting, terminal)
        return
    for setting in shown:
        terminal.line(setting_line(setting, terminal.width, terminal.style))
    if not shown:
        terminal.line(tr("All settings are at their defaults. List them: errand settings"))


def setting_line(setting: Setting, width: int, style: Style) -> str:
    """Name, value, and what the default is if another value is set."""
    value = _text(setting.value)
    if setting.value == setting.default:
        return style.dim(f"{setting.name:<24} {one_line(value, max(12, width - 26))}")
    default = style.dim(tr("  default: {default}").format(default=_text(setting.default)))
    return f"{style.bold(f'{setting.name:<24}')} {one_line(value, max(12, width - 44))}{default}"


def _show(setting: Setting, options: SettingsOptions, terminal: Terminal) -> None:
    if options.json:
        _print_json(setting, terminal)
        return
    style = terminal.style
    terminal.line(setting_line(setting, terminal.width, style))
    terminal.line(wrapped(f"{tr(setting.title)}: {plain(tr(setting.help))}", terminal.width))
    terminal.line(
        style.dim(
            tr("Takes {setting}. Change it: errand settings set {name} VALUE").format(
                setting=_takes(setting), name=setting.name
            )
        )
    )


def _text(value: JsonValue) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None | "":
            return "–"
        case float():
            return f"{value:g}"
        case str():
            return _without_secrets(value)
        case _:
            return str(value)


def _without_secrets(text: str) -> str:
    """Addresses may have a password in them."""
    return redact(without_url_secrets(text))


def _print_json(setting: Setting, terminal: Terminal) -> None:
    value = setting.value
    hidden = msgspec.structs.replace(setting, value=_without_secrets(value) if isinstance(value, str) else value)
    terminal.line(msgspec.json.encode(hidden).decode())
