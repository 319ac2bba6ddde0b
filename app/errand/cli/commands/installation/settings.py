"""`errand settings`: list, read, set and reset the settings of the engine."""

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError, wrong_arguments
from errand.cli.command import Command
from errand.cli.options import Action, Argument, CommandOptions, Flag
from errand.cli.output import CommandOutput
from errand.cli.parser import did_you_mean
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import one_line, plain, wrapped
from errand.client.connection import Connection
from errand.client.launch import connect
from errand.client.texts.model_settings import MODEL_SETTINGS
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
_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")


class SettingsOptions(CommandOptions, frozen=True, kw_only=True):
    arguments: Annotated[
        tuple[str, ...], Argument("WHAT", "list (the default), get, set or reset, and the setting")
    ] = ()
    changed: Annotated[bool, Flag("--changed", "with list: only settings that differ from their defaults")] = False


async def settings(options: SettingsOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand settings") as connection:
        settings = (await connection.call(SETTINGS_GET, SettingsGetParams())).settings
        match options.arguments or ("list",):
            case ["list"]:
                _list(settings, output, changed_only=options.changed)
            case ["get", name]:
                setting = _named(settings, name)
                output.result(_for_program(setting), *_lines(setting, output.width, output.style))
            case ["set", name, *words] if words:
                setting = _named(settings, name)
                await _set(connection, setting, typed_value(setting, " ".join(words)), output)
            case ["reset", name]:
                setting = _named(settings, name)
                await _set(connection, setting, setting.default, output)
            case _:
                raise wrong_arguments("settings", _ACTIONS, options.arguments)
    return 0


SETTINGS = Command(SettingsOptions, settings, actions=_ACTIONS)


def _named(settings: Sequence[Setting], name: str) -> Setting:
    field = name.replace("-", "_").lower()
    for setting in settings:
        if setting.name == field:
            return setting
    near = did_you_mean(field, [setting.name for setting in settings])
    raise UsageError(tr("There is no setting {name!r}.{near} List them: errand settings").format(name=name, near=near))


def typed_value(setting: Setting, text: str) -> JsonValue:
    """Return the typed text as a value of the setting's kind; raises `UsageError` that says what it takes."""
    word = text.strip().lower()
    match setting.kind:
        case "boolean" if word in (*_YES, *_NO):
            return word in _YES
        case "integer" if re.fullmatch(r"\d{1,18}", word) and int(word) >= (setting.minimum or 0):
            return int(word)
        case "number" if re.fullmatch(r"\d{1,18}(\.\d{1,9})?", word) and float(word) >= (setting.minimum or 0):
            return float(word)
        case "string" if setting.name in MODEL_SETTINGS and text and not text.strip("/").count("/"):
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
    kinds = {
        "boolean": tr("yes or no"),
        "integer": tr("a whole number"),
        "number": tr("a number"),
        "string": tr("a text"),
        "null": "–",
    }
    least = tr(" of at least {minimum:g}").format(minimum=setting.minimum) if setting.minimum is not None else ""
    return f"{kinds[setting.kind]}{least}"


async def _set(connection: Connection, setting: Setting, value: JsonValue, output: CommandOutput) -> None:
    params = SettingsSetParams(name=setting.name, value=value)
    now = _named((await connection.call(SETTINGS_SET, params)).settings, setting.name)
    before = (
        tr(" (was: {value})").format(value=_text(setting.value)) if now.value != setting.value else tr(" (unchanged)")
    )
    text = tr("{name} is {value}{before}").format(name=now.name, value=_text(now.value), before=before)
    output.result(_for_program(now), plain(text))


def _list(settings: Sequence[Setting], output: CommandOutput, *, changed_only: bool) -> None:
    output.each(
        [_for_program(setting) for setting in settings if setting.value != setting.default or not changed_only],
        lambda setting: [setting_line(setting, output.width, output.style)],
        empty=tr("All settings are at their defaults. List them: errand settings"),
    )


def setting_line(setting: Setting, width: int, style: Style) -> str:
    """Return a line with name, value, and the default if another value is set."""
    value = _text(setting.value)
    if setting.value == setting.default:
        return style.dim(f"{setting.name:<24} {one_line(value, max(12, width - 26))}")
    default = style.dim(tr("  default: {default}").format(default=_text(setting.default)))
    return f"{style.bold(f'{setting.name:<24}')} {one_line(value, max(12, width - 44))}{default}"


def _lines(setting: Setting, width: int, style: Style) -> list[str]:
    takes = tr("Takes {setting}. Change it: errand settings set {name} VALUE")
    return [
        setting_line(setting, width, style),
        wrapped(f"{tr(setting.title)}: {plain(tr(setting.help))}", width),
        style.dim(takes.format(setting=_takes(setting), name=setting.name)),
    ]


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


def _for_program(setting: Setting) -> Setting:
    """Return the setting without secrets in its value."""
    value = setting.value
    return msgspec.structs.replace(setting, value=_without_secrets(value)) if isinstance(value, str) else setting
