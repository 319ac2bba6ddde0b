"""Takes conversations in, our own and those of other programs: each whole or not at all; those that are here stay."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.engine.broadcast import EventLog
from app.engine.data.arrival import check, moved_in, settled
from app.engine.data.files import own_workspace
from app.engine.data.sources import ERRAND, Found, Sources
from app.engine.errors import Conflict, EngineError, FolderNotAnswering, InvalidParams, StorageError
from app.engine.storage import removal
from app.engine.storage.database import Database
from app.engine.storage.slices import in_slices
from app.engine.storage.transfer import Bundle, Insertion
from app.engine.workspace_threads import in_workspace
from app.paths import Paths
from app.protocol.blocks import ImageBlock, ToolCallBlock, ToolResultBlock
from app.protocol.data import DataImportResult, LeftOut
from app.protocol.events import ConversationUpdate

# One conversation of a very large file may take minutes to come.
_PATIENCE_S = 600.0

T = TypeVar("T")


@dataclass(slots=True)
class _Taken:
    """What came in so far; the programs in the order in which they were met."""

    programs: dict[str, None] = field(default_factory=dict[str, None])
    conversations: int = 0
    nodes: int = 0
    present: int = 0
    calls: int = 0
    pictures: int = 0

    def add(self, bundle: Bundle) -> None:
        blocks = [block for node in bundle.nodes for block in node.blocks]
        self.conversations += 1
        self.nodes += len(bundle.nodes)
        self.calls += sum(isinstance(block, ToolCallBlock) for block in blocks)
        self.pictures += sum(isinstance(block, ImageBlock) for block in blocks)
        self.pictures += sum(len(block.images) for block in blocks if isinstance(block, ToolResultBlock))


@dataclass(frozen=True, slots=True)
class Importer:
    log: EventLog
    database: Database
    paths: Paths

    async def take(self, path: Path) -> DataImportResult:
        """`InvalidParams` says what is wrong with the file, and what was taken in before it came to that."""
        if not path.is_absolute():
            raise InvalidParams(f"path: {str(path)!r} must be an absolute path.")
        taken, sources = _Taken(), Sources(self.paths)
        try:
            await self._take_all(path.parent, sources.of(path), taken, sources)
        except InvalidParams as error:
            raise InvalidParams(f"{path} cannot be imported: {error}. {_kept(taken)}") from error
        except OSError as error:
            raise InvalidParams(f"{path} cannot be read: {error.strerror}. {_kept(taken)}") from error
        except FolderNotAnswering as error:
            raise InvalidParams(f"{error} {_kept(taken)}") from error
        left = (LeftOut(kind=kind, count=count) for kind, count in sources.left.most_common() if count)
        return DataImportResult(
            source=", ".join(taken.programs),
            conversations=taken.conversations,
            nodes=taken.nodes,
            present=taken.present,
            calls=taken.calls,
            pictures=taken.pictures,
            left=tuple(left),
        )

    async def _take_all(self, folder: Path, arriving: Generator[Found], taken: _Taken, sources: Sources) -> None:
        try:
            while (found := await in_workspace(folder, lambda: next(arriving, None), _PATIENCE_S)) is not None:
                taken.programs[found.program] = None
                await self._take_one(found, taken, sources)
        finally:
            # Its files are closed now, not when it is forgotten; where a thread is still in it, by that one's end.
            with suppress(ValueError):
                await in_workspace(folder, arriving.close, _PATIENCE_S)

    async def _take_one(self, found: Found, taken: _Taken, sources: Sources) -> None:
        bundle = found.arrival.bundle
        if await self.database.conversations.get(bundle.conversation.id) is not None:
            taken.present += 1
            return
        try:
            fitting = await asyncio.to_thread(_fitted, found, self.paths)
            await self._insert(fitting)
        except InvalidParams as error:
            if found.program != ERRAND:
                sources.left["conversations that do not hold together"] += 1
                return
            title, line = bundle.conversation.title, found.arrival.line
            raise InvalidParams(f"the conversation “{title}” in line {line}: {error}") from error
        await self._tell(fitting)
        taken.add(fitting)

    async def _insert(self, bundle: Bundle) -> None:
        """In slices, all or nothing: what fails is taken away again, what a crash cuts short by the next start."""
        journal, insertion = self.database.journal, Insertion(bundle)
        conversation_id = bundle.conversation.id
        if await self.database.conversations.is_there(conversation_id):
            title = bundle.conversation.title
            raise Conflict(f"“{title}” is being taken in or deleted at this moment. Import the file again in a while.")
        await journal.transact(_refusing(insertion.begin))
        try:
            await in_slices(journal, _refusing(insertion.step))
        except EngineError:
            with suppress(StorageError):  # it is marked: the next start takes it away
                await removal.undo(journal, conversation_id)
            raise

    async def _tell(self, bundle: Bundle) -> None:
        workspace = own_workspace(self.paths, bundle.conversation.id)
        await asyncio.to_thread(workspace.mkdir, 0o700, exist_ok=True)
        event = ConversationUpdate(conversation=bundle.conversation)
        self.log.publish(event, also=(removal.done(bundle.conversation.id),))
        await self.log.flush()


def _fitted(found: Found, paths: Paths) -> Bundle:
    arrival = found.arrival
    check(arrival.bundle)
    return moved_in(settled(arrival.bundle), arrival.pictures, found.home, paths)


def _refusing(step: Callable[[AsyncConnection], Awaitable[T]]) -> Callable[[AsyncConnection], Awaitable[T]]:
    """What the database refuses because of the file itself, in words about that."""

    async def refusing(connection: AsyncConnection) -> T:
        try:
            return await step(connection)
        except IntegrityError as error:
            raise InvalidParams(f"parts of it are here already, in another conversation ({error.orig})") from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise InvalidParams(f"it has values that cannot be stored ({error})") from error

    return refusing


def _kept(taken: _Taken) -> str:
    if not taken.conversations:
        return "Nothing was taken in."
    return f"{taken.conversations} conversations before that were taken in whole; what is here was left as it is."
