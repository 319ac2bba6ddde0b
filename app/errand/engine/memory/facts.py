"""The facts that every task gets: checks, adds, changes and removes them, and selects those for a task."""

import asyncio
import logging
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from errand.engine.core.errors import Conflict, InvalidParams, NotFound, StorageError
from errand.engine.core.ids import new_id
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.engine.storage.records import events, forgetting, memory_log
from errand.engine.storage.sql.statements import to_json
from errand.engine.tools.context import Proposal
from errand.engine.tools.plain_text import without_hidden
from errand.protocol.conversations import Position
from errand.protocol.events import FactRemoved, FactUpdate
from errand.protocol.memory import (
    MAX_FACT_LENGTH,
    MEMORY_PIN,
    Fact,
    FactScope,
    FactStatus,
    MemoryAction,
    MemoryPinResult,
)
from errand.protocol.tasks.task import Task
from errand.text.redaction import Redactor

_logger = logging.getLogger(__name__)

MAX_PINNED = 100
# Proposals have a limit of their own, so that agents cannot use up what people may pin.
MAX_PROPOSED = 50
MAX_PROPOSED_BY_TASK = 5

# These characters reverse the direction of the text after them.
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True)
class FactDraft:
    """A checked fact that has no id yet. `folder` is a real path, empty for the other scopes."""

    text: str
    scope: FactScope
    folder: str = ""
    conversation_id: str = ""
    node_id: str = ""


def checked_text(typed: str) -> str:
    """Return the text in one line, without characters that nobody sees. Raises `InvalidParams` with the reason."""
    text = " ".join(without_hidden(typed).split())
    if not text:
        raise InvalidParams("text: a fact is a sentence or a short paragraph; this one is empty.")
    if len(text) > MAX_FACT_LENGTH:
        raise InvalidParams(
            f"text: more than {MAX_FACT_LENGTH} characters. A fact is a sentence or a short paragraph; longer "
            "instructions for a folder belong into its AGENTS.md."
        )
    for character in text:
        if unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTIONS:
            raise InvalidParams(f"text: it has the control character U+{ord(character):04X}. Leave it out.")
    return text


def checked_folder(scope: FactScope, folder: str | None) -> str:
    """Return the folder of a fact with this scope. Raises `InvalidParams` if it is missing, or not allowed."""
    if scope == "folder" and not folder:
        raise InvalidParams("folder: name the folder that the fact is about by its absolute path.")
    if scope != "folder" and folder:
        raise InvalidParams(f"folder: only a fact with the scope `folder` has one, not one with `{scope}`.")
    return folder or ""


class Facts:
    """All facts. Each change is stored with its line in the audit before a method returns.

    An earlier text of a fact is then gone from the files of the database, as after forgetting.
    """

    def __init__(self, log: EventLog, database: Database, redactor: Redactor) -> None:
        self._log = log
        self._database = database
        self._redactor = redactor
        # Between the check and the commit.
        self._lock = asyncio.Lock()

    async def for_task(self, workspace: Path) -> tuple[Fact, ...]:
        """Return the pinned facts for a task in this folder, oldest first, without secrets."""
        chosen = [
            fact
            for fact in await self._database.facts.all()
            if fact.status == "pinned" and (fact.scope != "folder" or workspace.is_relative_to(fact.folder))
        ]
        # About a millisecond for each.
        return await asyncio.to_thread(self._without_secrets, chosen) if chosen else ()

    def _without_secrets(self, chosen: Sequence[Fact]) -> tuple[Fact, ...]:
        return tuple(msgspec.structs.replace(fact, text=self._redactor(fact.text)) for fact in chosen)

    def has_secret(self, text: str) -> bool:
        return self._redactor(text) != text

    async def pin(self, draft: FactDraft, fact_id: str, by: str) -> Fact:
        """Pin a new fact under this id. One with the id is returned as it is; an equal one is pinned instead."""
        async with self._lock:
            all_facts = await self._database.facts.all()
            existing = _with_id(all_facts, fact_id) or _equal(all_facts, draft.text, draft.scope, draft.folder)
            if existing is None:
                fact = _new(fact_id, draft, "pinned", by)
                return await self._save(fact, "pinned", by, all_facts)
            if existing.status == "pinned":
                return existing
            return await self._save(msgspec.structs.replace(existing, status="pinned"), "accepted", by, all_facts)

    async def change(
        self, fact_id: str, by: str, *, text: str | None, scope: FactScope | None, folder: str | None
    ) -> Fact:
        """Change what is not None, and accept a proposed fact. Raises `NotFound`, and `Conflict` if it equals another.

        `folder` is a real path, for the scope `folder`.
        """
        async with self._lock:
            all_facts = await self._database.facts.all()
            before = _with_id(all_facts, fact_id)
            if before is None:
                raise _not_there(fact_id)
            scope = before.scope if scope is None else scope
            if folder is None and scope == "folder":
                folder = before.folder
            folder = checked_folder(scope, folder)
            text = before.text if text is None else text
            fact = msgspec.structs.replace(before, status="pinned", text=text, scope=scope, folder=folder)
            if fact == before:
                return before
            other = _equal(all_facts, fact.text, fact.scope, fact.folder)
            if other is not None and other.id != fact.id:
                raise Conflict("There is the same fact already. Remove one of the two.")
            await self._save(fact, "edited" if before.status == "pinned" else "accepted", by, all_facts)
        if fact.text != before.text:
            await self._clear()
        return fact

    async def unpin(self, fact_id: str, by: str) -> None:
        """Remove a fact, or decline a proposed one. Raises `NotFound`."""
        async with self._lock:
            fact = _with_id(await self._database.facts.all(), fact_id)
            if fact is None:
                raise _not_there(fact_id)
            action = "unpinned" if fact.status == "pinned" else "declined"
            await self._supersede(FactRemoved(fact_id=fact.id), msgspec.structs.replace(fact, text=""), action, by)
        await self._clear()

    async def propose(self, draft: FactDraft, by: str) -> tuple[Fact, bool]:
        """Store it until a person accepts it; an equal fact is returned instead, with False.

        Raises `Conflict` if too many proposals wait.
        """
        async with self._lock:
            all_facts = await self._database.facts.all()
            existing = _equal(all_facts, draft.text, draft.scope, draft.folder)
            if existing is not None:
                return existing, False
            fact = _new(new_id("fact"), draft, "proposed", by)
            return await self._save(fact, "proposed", by, all_facts), True

    async def _save(self, fact: Fact, action: MemoryAction, by: str, all_facts: tuple[Fact, ...]) -> Fact:
        others = sum(other.status == fact.status and other.id != fact.id for other in all_facts)
        if fact.status == "pinned" and others >= MAX_PINNED:
            raise Conflict(f"{MAX_PINNED} facts are pinned, which is the most. Remove one first, or join some.")
        if fact.status == "proposed" and others >= MAX_PROPOSED:
            raise Conflict(f"{MAX_PROPOSED} proposed facts wait for a person already, which is the most.")
        if _with_id(all_facts, fact.id) is not None:
            await self._supersede(FactUpdate(fact=fact), fact, action, by)
        else:
            self._log.publish(FactUpdate(fact=fact), also=(memory_log.add(action, by, _about(fact)),))
            await self._log.flush()
        return fact

    async def _supersede(self, event: FactUpdate | FactRemoved, fact: Fact, action: MemoryAction, by: str) -> None:
        """Store the fact, without a text if it is removed.

        Earlier texts leave the event log, since a client that replays it needs only the newest state, and the results
        of the commands that pinned or changed the fact.
        """
        earlier = map(events.delete, await self._database.events.of_fact(fact.id))
        results = (
            forgetting.save_result(stored, to_json(MemoryPinResult(fact=fact)))
            for stored in await self._database.forgets.results((fact.id,))
            if stored.method == MEMORY_PIN.name
        )
        self._log.publish(event, also=(*earlier, *results, memory_log.add(action, by, _about(fact))))
        await self._log.flush()

    async def _clear(self) -> None:
        """Clear the earlier text of a fact from the free pages and the log of the database."""
        try:
            problem = await self._database.clear_rows()
        except StorageError as error:  # the fact is changed
            problem = str(error)
        if problem:
            _logger.warning("an earlier text of a fact is still in the file of the database: %s", problem)


class FactProposals:
    """The proposals of the agent of one task. `position` returns where it is now."""

    def __init__(self, facts: Facts, task: Task, agent: str, position: Callable[[], Position]) -> None:
        self._facts = facts
        self._workspace = task.request.workspace
        self._agent = agent
        self._position = position
        self._count = 0

    async def propose(self, text: str, scope: FactScope) -> Proposal:
        """Store a fact until a person accepts it. Raises `InvalidParams` and `Conflict` with what is wrong."""
        text, position = checked_text(text), self._position()
        if self._facts.has_secret(text):
            raise InvalidParams("text: it holds what looks like a key or a password. Those are never remembered.")
        if self._count >= MAX_PROPOSED_BY_TASK:
            raise Conflict(
                f"This task has proposed {MAX_PROPOSED_BY_TASK} facts, which is the most. Go on with the work."
            )
        folder = self._workspace if scope == "folder" else ""
        draft = FactDraft(text, scope, folder, position.conversation_id, position.node_id or "")
        self._count += 1  # before the wait: calls of one reply run in parallel
        is_new = False
        try:
            fact, is_new = await self._facts.propose(draft, self._agent)
        finally:
            self._count -= not is_new
        return "new" if is_new else "waiting" if fact.status == "proposed" else "pinned"


def _new(fact_id: str, draft: FactDraft, status: FactStatus, by: str) -> Fact:
    return Fact(
        id=fact_id,
        scope=draft.scope,
        text=draft.text,
        status=status,
        at=datetime.now(UTC),
        folder=draft.folder,
        by=by,
        conversation_id=draft.conversation_id,
        node_id=draft.node_id,
    )


def _with_id(facts: tuple[Fact, ...], fact_id: str) -> Fact | None:
    return next((fact for fact in facts if fact.id == fact_id), None)


def _equal(facts: tuple[Fact, ...], text: str, scope: FactScope, folder: str) -> Fact | None:
    """Return the fact with the same text, whatever its case, for the same scope and folder."""
    sought = (text.casefold(), scope, folder)
    return next((fact for fact in facts if (fact.text.casefold(), fact.scope, fact.folder) == sought), None)


def _not_there(fact_id: str) -> NotFound:
    return NotFound(f"There is no fact {fact_id!r}. It may have been removed meanwhile.")


def _about(fact: Fact) -> str:
    """Return how the audit names a fact: without its text."""
    return f"{fact.id} ({fact.folder or fact.scope})"
