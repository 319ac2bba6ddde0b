"""`errand complete KIND TEXT WORD…`, for the scripts of `errand completion`: prints the values that begin with TEXT.

The words are the rest of the command line: if they name a conversation, only its messages and agents are offered.
Prints nothing if no engine runs. Imports little: a shell waits for it at each press of Tab.
"""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import cast

from errand.client.quick_call import QuickCall, quick_calls
from errand.system.paths import default_paths
from errand.text.printable import printable

_MAX_VALUES = 200
_MAX_TEXT_LENGTH = 60
# The method that lists a kind, its parameters, and the list in its result.
_LISTS: dict[str, tuple[str, dict[str, object], str]] = {
    "task": ("task/list", {"limit": _MAX_VALUES}, "tasks"),
    "conversation": ("conversation/list", {"limit": _MAX_VALUES}, "conversations"),
    "model": ("model/list", {}, "models"),
    "provider": ("model/list", {}, "providers"),
    "personality": ("personality/list", {}, "personalities"),
    "setting": ("settings/get", {}, "settings"),
    "server": ("mcp/list", {"workspace": ""}, "servers"),
    "skill": ("skill/list", {"workspace": ""}, "skills"),
    "message": ("conversation/find_nodes", {"limit": 2 * _MAX_VALUES}, "nodes"),
    "agent": ("agent/list", {}, "agents"),
    "grant": ("grant/list", {}, "grants"),
    "background": ("background/list", {}, "commands"),
    "fact": ("memory/facts", {}, "facts"),
}
_WRITTEN = {"user": "you", "assistant": "agent"}
_OF_CONVERSATIONS = ("message", "agent")
_MAX_WORDS = 4  # that may name a conversation


def main(arguments: list[str]) -> int:
    kind, beginning, *line = (*arguments, "", "")[: max(2, len(arguments))]
    if kind not in _LISTS:
        return 2
    try:
        for value, about in _values(kind, beginning, line):
            sys.stdout.write(f"{printable(value)}\t{printable(about)}\n")
        sys.stdout.flush()
    except (OSError, ValueError, KeyError, TypeError):
        return 1  # no engine, or one of another version: a shell then completes nothing
    return 0


def _values(kind: str, beginning: str, line: Sequence[str]) -> Iterator[tuple[str, str]]:
    method, params, name = _LISTS[kind]
    with quick_calls(default_paths()) as call:
        folder = {"workspace": os.getcwd()} if "workspace" in params else {}
        conversation = _conversation(line, call) if kind in _OF_CONVERSATIONS else None
        of = {"conversationId": conversation} if conversation is not None else {}
        result = call(method, {**params, **folder, **of})
    records = cast("list[Mapping[str, object]]", result[name])
    if kind == "model":
        providers = cast("list[Mapping[str, object]]", result["providers"])
        ready = {provider["name"] for provider in providers if provider["ready"]}
        records = [model for model in records if model["provider"] in ready]
    if kind == "agent" and conversation is not None:
        kind = "name"  # enough among the agents of one conversation
    for record in records:
        for value, about in _named(kind, record, beginning):
            if value.casefold().startswith(beginning.casefold()) and "\n" not in value:
                yield value, " ".join(about.split())[:_MAX_TEXT_LENGTH]


def _conversation(line: Sequence[str], call: QuickCall) -> str | None:
    """Return the id of the conversation that a word of the line names, by a part of its id or title."""
    named = [word for word in line[1:] if word and not word.startswith("-")]
    after = [word for option, word in pairwise(line) if option == "--conversation"]
    for word in [*after, *named][:_MAX_WORDS]:
        for part in ("idPart", "titlePart"):
            params = {part: word[:_MAX_TEXT_LENGTH], "archived": None, "limit": 2}
            conversations = cast("list[Mapping[str, object]]", call("conversation/list", params)["conversations"])
            if len(conversations) == 1:
                return str(conversations[0]["id"])
    return None


def _named(kind: str, record: Mapping[str, object], beginning: str) -> Iterator[tuple[str, str]]:
    match kind:
        case "task":
            activity, origin, request = (
                cast("Mapping[str, object]", record[group]) for group in ("activity", "origin", "request")
            )
            yield (
                _short(str(record["id"]), beginning),
                f"{activity['status']}: {origin['title'] or request['prompt']}",
            )
        case "conversation":
            yield _short(str(record["id"]), beginning), str(record["title"])
        case "model":
            yield str(record["id"]), ""
        case "provider" | "setting":
            yield str(record["name"]), str(record["title"])
        case "server":
            yield str(record["name"]), str(record["state"])
        case "message":
            if record["role"] in _WRITTEN:
                yield _short(str(record["id"]), beginning), f"{_WRITTEN[str(record['role'])]}: {record['text']}"
        case "agent" | "fact":
            yield _short(str(record["id"]), beginning), str(record.get("name") or record.get("text"))
        case "background":
            yield str(record["id"]), str(record["command"])
        case "grant":
            yield _short(str(record["id"]), beginning), str(record["exact"])
        case "skill":
            yield str(record["name"]), str(record["description"])
        case _:
            yield str(record["name"]), ""


def _short(full_id: str, beginning: str) -> str:
    """Return the end of an id, as lists show it, unless a person has begun with its beginning."""
    return full_id if beginning and full_id.startswith(beginning) else full_id[-8:]
