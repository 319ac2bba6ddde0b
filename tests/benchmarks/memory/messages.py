"""Loads the messages that need a planted fact, and those that a store has nothing on; builds the stores for them."""

import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Literal

import msgspec

from tests.benchmarks.memory.histories import Entry, EntryRole, History, Split

FOLDER = Path(__file__).parent / "messages"

PlantedKind = Literal["told", "answered", "identifier", "german"]
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_PAGE_POINTS = 9


class Turn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    role: EntryRole
    text: str


class Planted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message, and the turns of an earlier conversation with what it needs: each of `keys` must be given.

    The conversation is `around` others: whole histories, or the first conversations of one (`travel:3`). With `is_long`
    its last answer stands within a page on other things; with `is_within` the turns are part of another conversation.
    """

    planted: str
    kind: PlantedKind
    around: tuple[str, ...]
    turns: tuple[Turn, ...]
    keys: tuple[str, ...]
    message: str
    is_long: bool = False
    is_within: bool = False


class Stranger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A message to a store that has nothing on it."""

    stranger: str
    store: tuple[str, ...]
    message: str


@dataclass(frozen=True, slots=True)
class Messages:
    planted: tuple[Planted, ...]
    strangers: tuple[Stranger, ...]


def messages_of(split: Split) -> Messages:
    lines = (FOLDER / f"{split}.jsonl").read_bytes().splitlines()
    is_planted = [line.startswith(b'{"planted"') for line in lines]
    return Messages(
        tuple(msgspec.json.decode(line, type=Planted) for line, yes in zip(lines, is_planted, strict=True) if yes),
        tuple(msgspec.json.decode(line, type=Stranger) for line, yes in zip(lines, is_planted, strict=True) if not yes),
    )


def entries_around(names: Iterable[str], histories: Mapping[str, History]) -> list[Entry]:
    """Return the entries of these histories, one after the other; ids and sessions with the name of their history."""
    entries: list[Entry] = []
    for name in names:
        history_name, _, count = name.partition(":")
        sessions = groupby(histories[history_name].entries, key=lambda entry: entry.session)
        for number, (session, turns) in enumerate(sessions):
            if count and number == int(count):
                break
            entries += (
                msgspec.structs.replace(turn, id=f"{history_name}/{turn.id}", session=f"{history_name}/{session}")
                for turn in turns
            )
    return entries


def planted_entries(planted: Planted, around: Sequence[Entry], histories: Mapping[str, History]) -> list[Entry]:
    """Return the planted turns with times between those of the others."""
    rnd = random.Random(planted.planted)
    before = rnd.choice(around[:-1])
    session = before.session if planted.is_within else "planted"
    entries: list[Entry] = []
    for number, turn in enumerate(planted.turns):
        text = turn.text
        if planted.is_long and number == len(planted.turns) - 1:
            text = "\n".join(_page(text, _points(histories, planted.around), rnd))
        speaker = "User" if turn.role == "user" else "Errand"
        moment = before.at + timedelta(milliseconds=number + 1)
        entries.append(Entry(f"planted/{number}", session, speaker, turn.role, moment, text))
    return entries


def with_planted(around: Sequence[Entry], planted: Sequence[Entry]) -> list[Entry]:
    """Return all entries, those planted behind the last of the others that is earlier in the same conversation."""
    earlier = [
        index
        for index, entry in enumerate(around)
        if planted and entry.session == planted[0].session and entry.at < planted[0].at
    ]
    end = earlier[-1] + 1 if earlier else len(around)
    return [*around[:end], *planted, *around[end:]]


def _points(histories: Mapping[str, History], names: Sequence[str]) -> list[str]:
    """Return sentences of agents, of histories that are not in the store."""
    used = {name.partition(":")[0] for name in names}
    others = (history for name, history in histories.items() if name not in used)
    return [text for history in others for text in _sentences(history)]


def _sentences(history: History) -> Iterator[str]:
    for entry in history.entries:
        if entry.role == "agent":
            yield from (text for text in _SENTENCE.split(entry.text) if 6 <= len(text.split()) <= 40)


def _page(text: str, points: Sequence[str], rnd: random.Random) -> list[str]:
    lines = [f"- {' '.join(rnd.choice(points).split())}" for _ in range(_PAGE_POINTS)]
    lines.insert(rnd.randint(1, len(lines) - 1), text)
    return lines
