"""Takes exported conversations in: each whole or not at all, and those that are here are left alone."""

import asyncio
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.engine.broadcast import EventLog
from app.engine.data.arrival import check, moved_in, settled
from app.engine.data.files import own_workspace
from app.engine.data.reading import Arrival, ExportReader
from app.engine.errors import InvalidParams
from app.engine.storage.database import Database
from app.engine.storage.transfer import Bundle, insert
from app.paths import Paths
from app.protocol.data import DataImportResult
from app.protocol.events import ConversationUpdate, TaskUpdate


@dataclass(frozen=True, slots=True)
class Importer:
    log: EventLog
    database: Database
    paths: Paths

    async def take(self, path: Path) -> DataImportResult:
        """`InvalidParams` says what is wrong with the file, and what was taken in before it came to that."""
        if not path.is_absolute():
            raise InvalidParams(f"path: {str(path)!r} must be an absolute path.")
        result = DataImportResult(conversations=0, nodes=0, present=0)
        try:
            with await asyncio.to_thread(path.open, "rb") as file:
                reader = await asyncio.to_thread(ExportReader, file, self.paths.attachments)
                while (arrival := await asyncio.to_thread(reader.next)) is not None:
                    result = await self._take_one(arrival, reader.home, result)
        except InvalidParams as error:
            raise InvalidParams(f"{path} cannot be imported: {error}. {_kept(result)}") from error
        except OSError as error:
            raise InvalidParams(f"{path} cannot be read: {error.strerror}. {_kept(result)}") from error
        return result

    async def _take_one(self, arrival: Arrival, old_home: str, before: DataImportResult) -> DataImportResult:
        bundle = arrival.bundle
        if await self.database.conversations.get(bundle.conversation.id) is not None:
            return DataImportResult(conversations=before.conversations, nodes=before.nodes, present=before.present + 1)
        try:
            fitting = await asyncio.to_thread(_fitted, arrival, old_home, self.paths)
            await self.database.journal.transact(lambda connection: _insert(connection, fitting))
        except InvalidParams as error:
            title = bundle.conversation.title
            raise InvalidParams(f"the conversation “{title}” in line {arrival.line}: {error}") from error
        await self._tell(fitting)
        return DataImportResult(
            conversations=before.conversations + 1, nodes=before.nodes + len(fitting.nodes), present=before.present
        )

    async def _tell(self, bundle: Bundle) -> None:
        workspace = own_workspace(self.paths, bundle.conversation.id)
        if bundle.conversation.workspace == str(workspace):
            await asyncio.to_thread(workspace.mkdir, 0o700, exist_ok=True)
        self.log.publish(ConversationUpdate(conversation=bundle.conversation))
        for task in bundle.tasks:
            if task.ended_at is None:
                self.log.publish(TaskUpdate(task=task))
        await self.log.flush()


def _fitted(arrival: Arrival, old_home: str, paths: Paths) -> Bundle:
    check(arrival.bundle)
    return moved_in(settled(arrival.bundle), arrival.pictures, old_home, paths)


async def _insert(connection: AsyncConnection, bundle: Bundle) -> None:
    try:
        await insert(connection, bundle)
    except IntegrityError as error:
        raise InvalidParams(f"parts of it are here already, in another conversation ({error.orig})") from error


def _kept(result: DataImportResult) -> str:
    if not result.conversations:
        return "Nothing was taken in."
    return f"{result.conversations} conversations before that were taken in whole; what is here was left as it is."
