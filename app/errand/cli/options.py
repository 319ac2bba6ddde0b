"""The options of a command: a struct whose fields declare the arguments that argparse reads.

A field that is a struct of options adds the arguments of that struct.
"""

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Literal, NamedTuple, TypeAlias, TypeVar, Union, get_args, get_origin

import msgspec

from errand.text.translation import tr


class CommandOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all options. Each field is annotated with an `Argument`, an `Option`, a `Flag` or `Rest`."""


OptionsT = TypeVar("OptionsT", bound=CommandOptions)


# What a value names, for completion in a shell.
Named: TypeAlias = Literal[
    "conversation",
    "task",
    "model",
    "provider",
    "personality",
    "setting",
    "server",
    "skill",
    "message",
    "agent",
    "grant",
    "fact",
    "background",
    "program",
    "command",
    "file",
    "folder",
]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that a command of several does: `usage` begins with its name, with several such as `on|off`, or none.

    `first` is what the word after the name stands for.
    """

    usage: str
    help: str
    first: Named | None = None

    @property
    def names(self) -> list[str]:
        first = self.usage.partition(" ")[0]
        return first.split("|") if first[:1].isalpha() else []


@dataclass(frozen=True, slots=True)
class Argument:
    """A value by its place. A field with a default may be left out; a tuple takes several."""

    metavar: str | None
    help: str


@dataclass(frozen=True, slots=True)
class Option:
    """A value by its name. A tuple is given one by one; `const` is the value of the name alone."""

    name: str
    help: str
    metavar: str | None = None
    const: str | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """Everything that follows `--`, as a tuple."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A name without a value. Of the flags with one `group` only one may be given."""

    name: str
    help: str
    group: str | None = None


class Described(NamedTuple):
    """An option or argument, for help outside of the parser.

    `name` is that of the option with its dashes, or the placeholder of the argument. `metavar` is empty for a flag.
    `named` is what completes its value.
    """

    name: str
    help: str
    metavar: str = ""
    choices: tuple[str, ...] = ()
    named: Named | None = None
    repeats: bool = False

    @property
    def is_option(self) -> bool:
        return self.name.startswith("-")


# What completes a value, by the field that takes it, else by its placeholder.
_BY_FIELD: dict[str, Named] = {
    "command": "command",
    "task_id": "task",
    "ask_id": "task",
    "conversation": "conversation",
    "conversation_id": "conversation",
    "ids": "conversation",
    "model": "model",
    "models": "model",
    "personality": "personality",
    "agent": "agent",
    "moderator": "agent",
}
_BY_METAVAR: dict[str, Named] = {
    "FILE": "file",
    "PATH": "file",
    "F": "file",
    "DIR": "folder",
    "CONVERSATION": "conversation",
    "MESSAGE": "message",
    "NODE": "message",
}


def described(options: type[CommandOptions]) -> list[Described]:
    """Return the options and arguments, in their order; not what follows `--`."""
    parts: list[Described] = []
    for field in msgspec.structs.fields(options):
        kind, how = _annotation(field.type)
        match how:
            case None:
                parts += described(kind)
            case Flag():
                parts.append(Described(how.name, tr(how.help)))
            case Rest():
                pass
            case Argument() | Option():
                value = _value(kind)
                metavar = how.metavar or field.name.upper()
                named = _BY_METAVAR.get(how.metavar or "") or _BY_FIELD.get(field.name)
                name = how.name if isinstance(how, Option) else metavar
                parts.append(
                    Described(name, tr(how.help), metavar, value.choices or (), named, value.nargs is not None)
                )
    return parts


def declare(options: type[CommandOptions], parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `options` to the parser."""
    fields = [(field, *_annotation(field.type)) for field in msgspec.structs.fields(options)]
    names = dict.fromkeys(how.group for _, _, how in fields if isinstance(how, Flag) and how.group)
    groups = {name: parser.add_mutually_exclusive_group() for name in names}
    for field, kind, how in fields:
        value = _value(kind)
        match how:
            case Argument():
                nargs = value.nargs or (None if field.required else "?")
                parser.add_argument(
                    field.name,
                    metavar=how.metavar,
                    nargs=nargs,
                    type=value.read,
                    choices=value.choices,
                    help=tr(how.help),
                )
            case Option():
                parser.add_argument(
                    how.name,
                    dest=field.name,
                    action="append" if value.nargs else "store",
                    metavar=how.metavar,
                    nargs=None if how.const is None else "?",
                    const=how.const,
                    type=value.read,
                    choices=value.choices,
                    required=field.required,
                    help=tr(how.help),
                )
            case Flag():
                group = groups[how.group] if how.group else parser
                group.add_argument(how.name, dest=field.name, action="store_true", help=tr(how.help))
            case Rest():
                pass  # see `rest_of`
            case None:
                declare(kind, parser)


def rest_of(options: type[CommandOptions]) -> str | None:
    """Return the name of the field that takes what follows `--`, if there is one."""
    fields = msgspec.structs.fields(options)
    return next((field.name for field in fields if isinstance(_annotation(field.type)[1], Rest)), None)


def read(options: type[OptionsT], values: Mapping[str, object]) -> OptionsT:
    """Return the options from the parser's result; a field for which that has None keeps its default."""
    return msgspec.convert(_collect(options, values), options)


def _collect(options: type[CommandOptions], values: Mapping[str, object]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for field in msgspec.structs.fields(options):
        kind, how = _annotation(field.type)
        if how is None:
            fields[field.name] = _collect(kind, values)
        elif (value := values[field.name]) is not None:
            fields[field.name] = value
    return fields


class _Value(NamedTuple):
    """The arguments of argparse for a value."""

    read: Callable[[str], object]
    choices: tuple[str, ...] | None = None
    nargs: int | str | None = None


def _annotation(annotated: type) -> tuple[type, Argument | Option | Flag | Rest | None]:
    """Return the type of the value and its argument declaration, which is None for a struct of options."""
    if get_origin(annotated) is not Annotated:
        return annotated, None
    kind, how = get_args(annotated)
    return kind, how


def _value(kind: type) -> _Value:
    if get_origin(kind) in (Union, UnionType):  # of a type and None
        (kind,) = (member for member in get_args(kind) if member is not NoneType)
    members = get_args(kind)
    if get_origin(kind) is Literal:
        return _Value(str, choices=members)
    if get_origin(kind) is tuple:
        choices = get_args(members[0]) if get_origin(members[0]) is Literal else None
        return _Value(str, choices, nargs="*" if Ellipsis in members else len(members))
    return _Value({int: _positive_integer, float: _positive_number}.get(kind, str))


def _positive_integer(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(tr("{text!r} is not a whole number above 0").format(text=text))
    return number


def _positive_number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(tr("{text!r} is not an amount above 0").format(text=text))
    return number
