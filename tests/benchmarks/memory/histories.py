"""Loads and checks the work histories: what was said over weeks, and questions with the entries that answer them."""

from collections.abc import Collection
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args

import msgspec

FOLDER = Path(__file__).parent / "histories"

Split = Literal["tune", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)
# Short turns of people, agents and tools; or long messages of one person and an assistant.
Style = Literal["short", "long"]
STYLES: tuple[Style, ...] = get_args(Style)
EntryRole = Literal["user", "agent", "tool", "task"]
QuestionKind = Literal["fact", "places", "time", "updated", "tool", "none"]
QUESTION_KINDS: tuple[QuestionKind, ...] = get_args(QuestionKind)


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One message, tool result or task description; `at` is local time without a zone."""

    id: str
    session: str
    speaker: str
    role: EntryRole
    at: datetime
    text: str


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A question asked after the last entry; `gold` holds the ids of the entries that answer it."""

    question: str
    kind: QuestionKind
    text: str
    gold: tuple[str, ...]


class History(msgspec.Struct, frozen=True):
    """A whole history, its entries in order of time."""

    name: str
    split: Split
    about: str
    entries: tuple[Entry, ...]
    questions: tuple[Question, ...]
    style: Style = "short"


class _Head(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    history: str
    split: Split
    about: str
    style: Style = "short"


def load(path: Path) -> History:
    """The history in one JSON Lines file.

    Raises:
        ValueError: a line is not of the format, or the file contradicts itself; the text names file and line or id.
    """
    head: _Head | None = None
    entries: list[Entry] = []
    questions: list[Question] = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        try:
            if head is None:
                head = msgspec.json.decode(line, type=_Head)
            elif line.startswith(b'{"question"'):
                questions.append(msgspec.json.decode(line, type=Question))
            else:
                entries.append(msgspec.json.decode(line, type=Entry))
        except msgspec.DecodeError as error:
            raise ValueError(f"{path.name}, line {number}: {error}") from error
    if head is None:
        raise ValueError(f"{path.name} is empty")
    history = History(head.history, head.split, head.about, tuple(entries), tuple(questions), head.style)
    if faults := _faults(history, path.stem):
        raise ValueError(f"{path.name}: {'; '.join(faults)}")
    return history


def all_histories(styles: Collection[Style] = STYLES) -> tuple[History, ...]:
    """Every history of these styles, by name."""
    histories = (load(path) for path in sorted(FOLDER.glob("*.jsonl")))
    return tuple(history for history in histories if history.style in styles)


def _faults(history: History, stem: str) -> list[str]:
    """Return what would make a measurement on this history wrong."""
    faults = [] if history.name == stem else [f"the history calls itself {history.name}"]
    roles: dict[str, EntryRole] = {entry.id: entry.role for entry in history.entries}
    if len(roles) < len(history.entries):
        faults.append("an entry id is used twice")
    if len({question.question for question in history.questions}) < len(history.questions):
        faults.append("a question id is used twice")
    for before, after in pairwise(history.entries):
        if after.at <= before.at:
            faults.append(f"{after.id} is not later than {before.id}")
    faults += [f"{entry.id} says nothing" for entry in history.entries if not entry.text.strip()]
    for question in history.questions:
        faults += [f"{question.question} {fault}" for fault in _question_faults(question, roles)]
    return faults


def _question_faults(question: Question, roles: dict[str, EntryRole]) -> list[str]:
    faults = [f"names {gold}, which does not exist" for gold in question.gold if gold not in roles]
    if len(set(question.gold)) < len(question.gold):
        faults.append("names an entry twice")
    if (question.kind == "none") == bool(question.gold):
        faults.append(f"is of kind {question.kind} and names {len(question.gold)} entries")
    if question.kind == "places" and not 2 <= len(question.gold) <= 4:
        faults.append("is of kind places and needs two to four entries")
    if question.kind == "tool" and not any(roles.get(gold) == "tool" for gold in question.gold):
        faults.append("is of kind tool and names no output of a tool")
    return faults
