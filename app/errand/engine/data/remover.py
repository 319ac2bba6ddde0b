"""Deletes conversations permanently: the records in slices, then their files."""

import asyncio
import logging
import os
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import msgspec

from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.checkpoints.baselines import Baselines
from errand.engine.checkpoints.notes import contents_in, noted_changes
from errand.engine.core.errors import AgentBusy, Conflict, EngineError, InvalidParams, NotFound
from errand.engine.data import conversation_files
from errand.engine.event_log import EventLog
from errand.engine.permissions.grants import Grants
from errand.engine.storage.database import Database
from errand.engine.storage.records import removal
from errand.engine.storage.records.removal import Removal
from errand.protocol.data import DataPruneResult
from errand.protocol.events import ConversationDeleted, GrantUpdate
from errand.system.paths import Paths

_log = logging.getLogger(__name__)

# Folders of long output checked per start: listing and querying more takes seconds.
_MAX_FOLDERS_AT_START = 10_000
_PIECE = 500
_EVER = datetime(1970, 1, 1, tzinfo=UTC)


class ConversationLocks(Protocol):
    def lock_conversation(self, conversation_id: str) -> AbstractAsyncContextManager[None]:
        """Prevent its agents from starting anything; raises `AgentBusy` if one is running."""
        ...


class Remover:
    def __init__(
        self,
        log: EventLog,
        database: Database,
        changes: ConversationChanges,
        locks: ConversationLocks,
        grants: Grants,
        baselines: Baselines,
        paths: Paths,
    ) -> None:
        self._log = log
        self._database = database
        self._changes = changes
        self._locks = locks
        self._grants = grants
        self._paths = paths
        self._baselines = baselines
        self._contents = baselines.contents

    async def delete(self, conversation_id: str) -> None:
        """Delete a conversation. Raises `Conflict` unless it is archived, `AgentBusy` while a task runs."""
        await self._remove(conversation_id)
        await self.delete_remaining_files()

    async def prune(self, days: int, *, dry_run: bool) -> DataPruneResult:
        """Delete archived conversations unchanged for `days` days, except those with a running agent."""
        if not 1 <= days <= 36_500:
            raise InvalidParams("days: a number from 1 to 36,500.")
        before = datetime.now(UTC) - timedelta(days=days)
        weight = await self._database.storage_stats.size_before(before)
        folders = conversation_files.output_folders(self._paths, weight.task_ids)
        size = await asyncio.to_thread(lambda: sum(conversation_files.size_of(folder)[0] for folder in folders))
        if dry_run:
            return DataPruneResult(conversations=weight.conversations, nodes=weight.nodes, bytes=weight.bytes + size)
        removed = nodes = 0
        for conversation_id in await self._database.storage_stats.archived_before(before):
            count = await self._remove_old(conversation_id)
            removed, nodes = removed + (count is not None), nodes + (count or 0)
        await self.delete_remaining_files()
        await self._delete_unused_pictures()
        return DataPruneResult(conversations=removed, nodes=nodes, bytes=weight.bytes + size)

    async def sweep(self) -> None:
        """Run at start: completes deletions after a crash, and deletes output of unknown tasks."""
        try:
            for removal_entry in await self._database.removals.pending():
                with suppress(AgentBusy):  # a task was started in it: the next start continues
                    await self._finish(removal_entry.conversation_id)
            await self.delete_remaining_files()
            await self._delete_unknown_outputs()
        except (EngineError, OSError) as error:
            _log.warning("left files were not deleted: %s", error)

    async def delete_remaining_files(self) -> None:
        """Delete the files of conversations whose records are deleted."""
        is_there = self._database.conversations.exists
        pending = [
            removal_entry
            for removal_entry in await self._database.removals.pending()
            if not await is_there(removal_entry.conversation_id)
        ]
        if not pending:
            return
        await removal.scrub(self._database.journal)
        left = [file for removal_entry in pending for file in removal_entry.files]
        used = await self._database.changes.contents(_EVER)
        await self._delete_files(left)
        await asyncio.to_thread(
            self._delete_contents, left, frozenset(removal_entry.conversation_id for removal_entry in pending), used
        )
        for removal_entry in pending:
            self._database.journal.put(removal.done(removal_entry.conversation_id))
        await self._log.flush()

    async def _finish(self, conversation_id: str) -> None:
        """Complete a deletion, or undo an import, that the end of an engine interrupted."""
        if not await self._database.conversations.exists(conversation_id):
            return
        async with self._locks.lock_conversation(conversation_id):
            await removal.delete_rows(self._database.journal, conversation_id)
            self._log.publish(ConversationDeleted(conversation_id=conversation_id))
            await self._log.flush()
        await self._forget_grants(conversation_id)

    async def _remove_old(self, conversation_id: str) -> int | None:
        """Return the number of its nodes; None if it stays because it was used meanwhile."""
        try:
            count = await self._database.storage_stats.count_nodes(conversation_id)
            await self._remove(conversation_id)
        except EngineError as error:
            _log.info("%s was not pruned: %s", conversation_id, error)
            return None
        return count

    async def _remove(self, conversation_id: str) -> None:
        async with self._locks.lock_conversation(conversation_id):
            # A change that has read the conversation would restore its row; once this is stored, none finds it.
            async with self._changes.exclusive(conversation_id):
                await self._log.flush()  # what was changed a moment ago counts
                await self._check(conversation_id)
                gone = Removal(conversation_id, await self._files(conversation_id))
                self._database.journal.put(removal.begin(gone))
                await self._log.flush()
            await removal.delete_rows(self._database.journal, conversation_id)
            self._log.publish(ConversationDeleted(conversation_id=conversation_id), also=(removal.begin(gone),))
            await self._log.flush()
        await self._forget_grants(conversation_id)

    async def _forget_grants(self, conversation_id: str) -> None:
        """Finish the deletion. An import may create another conversation with this id and workspace."""
        self._grants.forget_conversation(conversation_id)
        own = conversation_files.default_workspace(self._paths, conversation_id)
        names = (str(own), await asyncio.to_thread(os.path.realpath, own))
        for grant in self._grants.all():
            if grant.scope == "workspace" and grant.scope_id in names:
                revoked = msgspec.structs.replace(grant, revoked_at=datetime.now(UTC))
                self._grants.add(revoked)
                self._log.publish(GrantUpdate(grant=revoked))
        await self._log.flush()

    async def _check(self, conversation_id: str) -> None:
        conversation = await self._database.conversations.get(conversation_id)
        if conversation is None:
            raise NotFound(f"There is no conversation {conversation_id!r}.")
        if not conversation.archived:
            raise Conflict(f"“{conversation.title}” is not archived. Archive it first, then delete it.")

    async def _files(self, conversation_id: str) -> tuple[str, ...]:
        stats = self._database.storage_stats
        folders = (
            *conversation_files.output_folders(self._paths, await stats.task_ids(conversation_id)),
            conversation_files.default_workspace(self._paths, conversation_id),
        )
        contents = await self._database.changes.contents_of(conversation_id)
        replaced = (str(self._paths.replaced / digest) for digest in sorted(contents))
        return (*map(str, folders), *sorted(await stats.pictures(conversation_id)), *replaced)

    async def _delete_files(self, files: list[str]) -> None:
        pictures = str(self._paths.attachments)
        named = any(file.startswith(pictures) for file in files)
        used = await self._database.storage_stats.pictures() if named else frozenset[str]()
        await asyncio.to_thread(conversation_files.delete_files, self._paths, files, used)

    def _delete_contents(self, files: list[str], conversations: frozenset[str], used: frozenset[str]) -> None:
        """Delete what tasks of deleted conversations replaced in files, and the notes of it."""
        noted = noted_changes(self._contents)
        gone = [change.id for change in noted if change.conversation_id in conversations]
        self._contents.drop_notes(gone)
        self._baselines.forget()
        used |= (
            contents_in(change for change in noted if change.id not in gone) | self._contents.contents_of_baselines()
        )
        named = {Path(file).name for file in files if Path(file).parent == self._paths.replaced}
        self._contents.delete(named - used)

    async def _delete_unused_pictures(self) -> None:
        used = await self._database.storage_stats.pictures()
        unused = await asyncio.to_thread(conversation_files.unused_pictures, self._paths, used)
        await asyncio.to_thread(conversation_files.delete_files, self._paths, unused, used)

    async def _delete_unknown_outputs(self) -> None:
        names = (await asyncio.to_thread(conversation_files.output_names, self._paths))[:_MAX_FOLDERS_AT_START]
        for first in range(0, len(names), _PIECE):
            piece = names[first : first + _PIECE]
            known_ids = await self._database.storage_stats.known_tasks(piece)
            unknown = conversation_files.output_folders(self._paths, (name for name in piece if name not in known_ids))
            await asyncio.to_thread(conversation_files.delete_files, self._paths, map(str, unknown), frozenset[str]())
