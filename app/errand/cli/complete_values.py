"""`errand complete KIND TEXT`, which the scripts of `errand completion` run: the values that begin so, one a line.

Prints nothing if no engine runs. Imports little: a shell waits for it at each press of Tab.
"""

import os
import sys
from collections.abc import Iterator, Mapping
from typing import cast

from errand.client.quick_call import quick_call
from errand.paths import default_paths
from errand.printable import printable

_MOST = 200
_LONGEST = 60
# The method that lists a kind, its parameters, and the list in its result.
_LISTS: dict[str, tuple[str, dict[str, object], str]] = {
    "task": ("task/list", {"limit": _MOST}, "tasks"),
    "conversation": ("conversation/list", {"limit": _MOST}, "conversations"),
    "model": ("model/list", {}, "models"),
    "provider": ("model/list", {}, "providers"),
    "personality": ("personality/list", {}, "personalities"),
    "setting": ("settings/get", {}, "settings"),
    "server": ("mcp/list", {"workspace": ""}, "servers"),
    "skill": ("skill/list", {"workspace": ""}, "skills"),
}


def main(arguments: list[str]) -> int:
    kind, beginning = (*arguments, "", "")[:2]
    if kind not in _LISTS:
        return 2
    try:
        for value, about in _values(kind, beginning):
            sys.stdout.write(f"{printable(value)}\t{printable(about)}\n")
        sys.stdout.flush()
    except (OSError, ValueError, KeyError, TypeError):
        return 1  # no engine, or one of another version: a shell then completes nothing
    return 0


def _values(kind: str, beginning: str) -> Iterator[tuple[str, str]]:
    method, params, name = _LISTS[kind]
    folder = {"workspace": os.getcwd()} if "workspace" in params else {}
    result = quick_call(default_paths(), method, {**params, **folder})
    every = cast("list[Mapping[str, object]]", result[name])
    if kind == "model":
        providers = cast("list[Mapping[str, object]]", result["providers"])
        ready = {one["name"] for one in providers if one["ready"]}
        every = [one for one in every if one["provider"] in ready]
    for one in every:
        for value, about in _named(kind, one, beginning):
            if value.casefold().startswith(beginning.casefold()) and "\n" not in value:
                yield value, " ".join(about.split())[:_LONGEST]


def _named(kind: str, one: Mapping[str, object], beginning: str) -> Iterator[tuple[str, str]]:
    match kind:
        case "task":
            yield _short(str(one["id"]), beginning), f"{one['status']}: {one.get('title') or one['prompt']}"
        case "conversation":
            yield _short(str(one["id"]), beginning), str(one["title"])
        case "model":
            yield str(one["id"]), ""
        case "provider" | "setting":
            yield str(one["name"]), str(one["title"])
        case "server":
            yield str(one["name"]), str(one["state"])
        case "skill":
            yield str(one["name"]), str(one["description"])
        case _:
            yield str(one["name"]), ""


def _short(whole: str, beginning: str) -> str:
    """The end of an id, as lists show it, unless a person has begun with its beginning."""
    return whole if beginning and whole.startswith(beginning) else whole[-8:]
