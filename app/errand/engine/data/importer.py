"""Imports our own exports and those of other programs; each conversation atomically."""

import asyncio
import os
import zipfile
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, TypeVar

import msgspec
from sqlalchemy.exc import IntegrityError

from errand.engine.agent.tasks.conversation_changes import ConversationChanges
from errand.engine.agent.tasks.locks import AgentLocks
from errand.engine.core.errors import Conflict, EngineError, FolderNotAnswering, InvalidParams, NotFound, StorageError
from errand.engine.core.fair_share import short_switches
from errand.engine.core.input_limits import MAX_RECORD_BYTES
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.data.conversation_files import default_workspace
from errand.engine.data.export_format import ExportReader, ImportedConversation
from errand.engine.data.import_growth import Growth, find_growth, stands_where_imported
from errand.engine.data.import_normalization import check, normalized, with_local_paths
from errand.engine.data.importers.archive import open_archive
from errand.engine.data.importers.conversation import ForeignConversation, to_bundle
from errand.engine.data.importers.foreign_database import SIGN
from errand.engine.data.importers.import_context import Asset, ImportContext
from errand.engine.data.importers.json_documents import documents
from errand.engine.data.importers.registry import DATABASES, HEAD, PROGRAMS, database_format_of, format_of
from errand.engine.data.importers.session_folder import SessionFolder
from errand.engine.event_log import EventLog
from errand.engine.storage.database import Database
from errand.engine.storage.records import removal
from errand.engine.storage.records.transfer import Bundle, Insertion
from errand.engine.storage.sql.async_engine import AsyncConnection
from errand.engine.storage.sql.slices import in_slices
from errand.engine.tools.files.file_walk import WALK_TIMEOUT_S, TooLong, walk
from errand.engine.tools.plain_text import clean_name
from errand.protocol.blocks import ImageBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Conversation, Node
from errand.protocol.data import DataImportResult, LeftOut
from errand.protocol.events import AgentUpdate, ConversationUpdate, TaskMessage
from errand.system.paths import Paths
from errand.system.regular_file import open_regular, read_regular

ERRAND = "Errand"
_DATABASE_NAMES = tuple(database_format.file_name for database_format in DATABASES)
_ERRAND_EXPORT = b'{"errand_export"'
_MAX_FILES = 100_000
_NODES_AT_ONCE = 50
_MAX_ASSET_BYTES = 10 * 1024 * 1024
_UNKNOWN = (
    f"it is not a file that Errand exported, nor conversations of {', '.join(PROGRAMS[:-1])} or {PROGRAMS[-1]} "
    "in a form that is known here"
)

# One conversation of a very large file may take minutes to read.
_PATIENCE_S = 600.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """A conversation and the program that wrote it. `home` is the source's data folder for our own exports."""

    program: str
    imported: ImportedConversation
    home: str = ""


@dataclass(slots=True)
class Sources:
    """`left` counts skipped content by kind, in plain words."""

    paths: Paths
    skipped: Counter[str] = field(default_factory=Counter[str])
    sub_agents: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def of(self, path: Path) -> Generator[FoundConversation]:
        """Yield the conversations. Raises `InvalidParams` for a faulty file; in a folder it is only counted."""
        if path.is_dir():
            yield from self._of_folder(path)
            return
        with open_regular(path) as file:
            is_database = file.read(len(SIGN)) == SIGN
        # It is opened again by SQLite: closing a second descriptor would release its locks.
        if is_database:
            yield from self.of_database(path)
            return
        with open_regular(path) as file:
            if zipfile.is_zipfile(file):
                yield from self._of_zip(file)
            else:
                file.seek(0)
                yield from self._of_file(file, clean_name(path.stem), _assets_in(path.parent), path, must=True)

    def _of_folder(self, folder: Path) -> Iterator[FoundConversation]:
        every = (entry for _, entry in walk(folder, lambda: False))
        candidates = (
            Path(entry.path) for entry in every if _may_have_conversations(entry.name) and self._is_inside(entry)
        )
        try:
            files = sorted(islice((file for file in candidates if file.is_file()), _MAX_FILES + 1))
        except TooLong as error:
            raise InvalidParams(f"looking through it takes more than {WALK_TIMEOUT_S:g} s") from error
        if len(files) > _MAX_FILES:
            raise InvalidParams(f"there are more than {_MAX_FILES:,} files in it")
        if not files:
            raise InvalidParams(f"there is no .json or .jsonl file in it, nor {' or '.join(_DATABASE_NAMES)}")
        for path in files:
            try:
                if path.name in _DATABASE_NAMES:
                    yield from self.of_database(path, must=False)
                    continue
                with open_regular(path) as file:
                    yield from self._of_file(file, clean_name(path.stem), _assets_in(path.parent), path, must=False)
            except (InvalidParams, OSError):
                self.skipped["files that cannot be read to their end"] += 1

    def _is_inside(self, entry: os.DirEntry[str]) -> bool:
        """Return a link may lead out of the folder."""
        self.skipped["links to files"] += entry.is_symlink()
        return not entry.is_symlink()

    def _of_zip(self, file: IO[bytes]) -> Iterator[FoundConversation]:
        with open_archive(file) as archive:
            self.skipped["other files"] += archive.others()
            is_empty = True
            for name in archive.names():
                with archive.unpacked(name, self.paths.home) as member:
                    for conversation in self._of_file(member, Path(name).stem, archive.asset, None, must=False):
                        is_empty = False
                        yield conversation
            if is_empty:
                raise InvalidParams(f"{_UNKNOWN}; neither is any file in the zip")

    def _of_file(
        self, file: IO[bytes], name: str, asset: Asset, path: Path | None, *, must: bool
    ) -> Iterator[FoundConversation]:
        head = file.read(HEAD)
        file.seek(0)
        form = format_of(head)
        if form is None and b"\n" not in head:
            # A first line may hold a whole document that a person pasted: the next lines tell the format.
            file.seek(len(head))
            head += file.readline(MAX_RECORD_BYTES) + file.read(HEAD)
            file.seek(0)
            form = format_of(head)
        if head.startswith(_ERRAND_EXPORT):
            reader = ExportReader(file, self.paths.attachments)
            while (imported := reader.next()) is not None:
                yield FoundConversation(ERRAND, imported, reader.home)
        elif form is None and must:
            raise InvalidParams(_UNKNOWN)
        elif form is None:
            self.skipped["other files"] += 1
        else:
            folder = SessionFolder(path) if path is not None else None
            context = ImportContext(self.paths.attachments, asset, self.skipped, folder)
            yield from self._converted(form.read(documents(file, form.shape), context), form.program, name)

    def of_database(
        self, path: Path, only: Collection[str] | None = None, *, must: bool = True
    ) -> Iterator[FoundConversation]:
        """Yield the conversations of another program's database; with `only`, those of these session ids."""
        form = database_format_of(path)
        if form is None and must:
            programs = " or ".join(database_format.program for database_format in DATABASES)
            raise InvalidParams(f"it is a database, but not one with the tables of {programs}")
        if form is None:
            self.skipped["other files"] += 1
            return
        context = ImportContext(self.paths.attachments, lambda beginning: None, self.skipped)
        yield from self._converted(form.read(path, context, only), form.program, path.stem)

    def _converted(
        self, conversations: Iterator[ForeignConversation], program: str, name: str
    ) -> Iterator[FoundConversation]:
        for foreign in conversations:
            foreign.source_id = foreign.source_id or name
            if foreign.caller is not None:
                # Sub-agents come with their session, and again with their own file.
                if (program, foreign.source_id) in self.sub_agents:
                    continue
                self.sub_agents.add((program, foreign.source_id))
            if not foreign.nodes:
                self.skipped["empty conversations"] += 1
                continue
            try:
                yield FoundConversation(program, ImportedConversation(to_bundle(foreign, program, self.paths), 0))
            except InvalidParams:
                self.skipped["conversations whose messages are in a circle"] += 1


def _may_have_conversations(name: str) -> bool:
    """Return False for descriptions of Claude Code's sub-agents, read with sessions, and for gemini-cli's log."""
    return name in _DATABASE_NAMES or (".json" in name and not name.endswith(".meta.json") and name != "logs.json")


def _assets_in(folder: Path) -> Asset:
    """Return a look-up of files beside an unpacked export, at most one folder deep."""
    names: dict[str, Path] = {}

    def find(beginning: str) -> bytes | None:
        if not names:
            names.update({file.name: file for file in (*folder.glob("*.*"), *folder.glob("*/*.*"))})
        file_path = next((file for name, file in names.items() if beginning and name.startswith(beginning)), None)
        try:
            return read_regular(file_path, _MAX_ASSET_BYTES) if file_path is not None else None
        except OSError:
            return None

    return find


@dataclass(slots=True)
class _ImportTotals:
    """The result so far, with the programs in order of appearance."""

    programs: dict[str, None] = field(default_factory=dict[str, None])
    conversations: int = 0
    nodes: int = 0
    present: int = 0
    grown: int = 0
    calls: int = 0
    pictures: int = 0

    def add(self, bundle: Bundle) -> None:
        """Count a conversation. Takes tens of milliseconds for a long one: call it in a thread."""
        self.conversations += 1
        self.add_nodes(bundle.nodes)

    def add_nodes(self, nodes: Sequence[Node]) -> None:
        blocks = [block for node in nodes for block in node.blocks]
        self.nodes += len(nodes)
        self.calls += sum(isinstance(block, ToolCallBlock) for block in blocks)
        self.pictures += sum(isinstance(block, ImageBlock) for block in blocks)
        self.pictures += sum(len(block.images) for block in blocks if isinstance(block, ToolResultBlock))


@dataclass(frozen=True, slots=True)
class Importer:
    log: EventLog
    database: Database
    changes: ConversationChanges
    locks: AgentLocks
    paths: Paths

    async def run(self, path: Path) -> DataImportResult:
        """Import files. Raises `InvalidParams` with the fault of a file, and with what was imported before it."""
        if not path.is_absolute():
            raise InvalidParams(f"path: {str(path)!r} must be an absolute path.")
        totals, sources = _ImportTotals(), Sources(self.paths)
        try:
            with short_switches():
                await self._import_all(path.parent, sources.of(path), totals, sources)
        except InvalidParams as error:
            raise InvalidParams(f"{path} cannot be imported: {error}. {_imported_before_text(totals)}") from error
        except OSError as error:
            raise InvalidParams(f"{path} cannot be read: {error.strerror}. {_imported_before_text(totals)}") from error
        except FolderNotAnswering as error:
            raise InvalidParams(f"{error} {_imported_before_text(totals)}") from error
        left = (LeftOut(kind=kind, count=count) for kind, count in sources.skipped.most_common() if count)
        return DataImportResult(
            source=", ".join(totals.programs),
            conversations=totals.conversations,
            nodes=totals.nodes,
            present=totals.present,
            grown=totals.grown,
            calls=totals.calls,
            pictures=totals.pictures,
            left=tuple(left),
        )

    async def _import_all(
        self, folder: Path, conversations: Generator[FoundConversation], totals: _ImportTotals, sources: Sources
    ) -> None:
        try:
            while (
                conversation := await in_workspace(folder, lambda: next(conversations, None), _PATIENCE_S)
            ) is not None:
                totals.programs[conversation.program] = None
                await self._import_one(conversation, totals, sources)
        finally:
            # Close its files now, not on garbage collection; if a thread still runs it, that thread closes them.
            with suppress(ValueError):
                await in_workspace(folder, conversations.close, _PATIENCE_S)

    async def _import_one(self, conversation: FoundConversation, totals: _ImportTotals, sources: Sources) -> None:
        bundle = conversation.imported.bundle
        if await self.database.conversations.get(bundle.conversation.id) is not None:
            await self._extend(conversation, totals, sources)
            return
        try:
            fitting = await asyncio.to_thread(_normalized, conversation, self.paths)
            await self._insert(fitting)
        except InvalidParams as error:
            if conversation.program != ERRAND:
                sources.skipped["conversations that do not hold together"] += 1
                return
            title, line = bundle.conversation.title, conversation.imported.line
            raise InvalidParams(f"the conversation “{title}” in line {line}: {error}") from error
        await self._publish(fitting)
        await asyncio.to_thread(totals.add, fitting)

    async def _extend(self, conversation: FoundConversation, totals: _ImportTotals, sources: Sources) -> None:
        """Add what a session of another program has got since. After a crash the next import adds the rest."""
        if conversation.program == ERRAND:
            totals.present += 1
            return
        try:
            bundle = await asyncio.to_thread(_normalized, conversation, self.paths)
        except InvalidParams:
            sources.skipped["conversations that do not hold together"] += 1
            return
        growth = await find_growth(bundle, self.database)
        if not growth.nodes:
            totals.present += 1
            return
        await self._publish_growth(bundle, growth)
        await asyncio.to_thread(totals.add_nodes, growth.nodes)
        totals.grown += 1

    async def _publish_growth(self, bundle: Bundle, growth: Growth) -> None:
        for number, node in enumerate(growth.nodes, 1):
            self.log.publish(TaskMessage(node=node))
            if number % _NODES_AT_ONCE == 0:
                await self.log.flush()
        await self.log.flush()
        for imported in bundle.agents:
            async with self.locks.while_idle(imported) as agent:  # none while a task works: it goes on where it is
                if agent is not None and stands_where_imported(agent.head_id, bundle):
                    moved = msgspec.structs.replace(agent, head_id=growth.head_id, version=agent.version + 1)
                    self.log.publish(AgentUpdate(agent=moved))
                    await self.log.flush()

        def touch(present: Conversation) -> Conversation:
            return msgspec.structs.replace(present, updated_at=max(present.updated_at, bundle.conversation.updated_at))

        with suppress(NotFound):  # deleted meanwhile
            await self.changes.change(bundle.conversation.id, touch)
            await self.log.flush()

    async def _insert(self, bundle: Bundle) -> None:
        """Insert in slices, atomically: a failure is rolled back at once, after a crash by the next start."""
        journal, insertion = self.database.journal, Insertion(bundle)
        conversation_id = bundle.conversation.id
        if await self.database.conversations.exists(conversation_id):
            title = bundle.conversation.title
            raise Conflict(f"“{title}” is being imported or deleted right now. Import the file again later.")
        await journal.transact(_with_import_errors(insertion.begin))
        try:
            await in_slices(journal, _with_import_errors(insertion.step))
        except EngineError:
            with suppress(StorageError):  # it is marked: the next start removes it
                await removal.undo(journal, conversation_id)
            raise

    async def _publish(self, bundle: Bundle) -> None:
        workspace = default_workspace(self.paths, bundle.conversation.id)
        await asyncio.to_thread(workspace.mkdir, 0o700, exist_ok=True)
        event = ConversationUpdate(conversation=bundle.conversation)
        self.log.publish(event, also=(removal.done(bundle.conversation.id),))
        await self.log.flush()


def _normalized(conversation: FoundConversation, paths: Paths) -> Bundle:
    imported = conversation.imported
    check(imported.bundle)
    return with_local_paths(normalized(imported.bundle), imported.pictures, conversation.home, paths)


def _with_import_errors(step: Callable[[AsyncConnection], Awaitable[T]]) -> Callable[[AsyncConnection], Awaitable[T]]:
    """Convert database errors caused by the file's content to errors about the file."""

    async def refusing(connection: AsyncConnection) -> T:
        try:
            return await step(connection)
        except IntegrityError as error:
            raise InvalidParams(f"parts of it are here already, in another conversation ({error.orig})") from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise InvalidParams(f"it has values that cannot be stored ({error})") from error

    return refusing


def _imported_before_text(totals: _ImportTotals) -> str:
    if not totals.conversations:
        return "Nothing was imported."
    return f"{totals.conversations} conversations before that were imported completely; existing ones were not changed."
