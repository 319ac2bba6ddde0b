"""Finds the sessions of other programs on this machine, and what an import of them would bring. Takes nothing.

A session is recognised by its id at the beginning of its file: the id of its conversation ends with a digest of that.
Files that were written to since their import, and small new ones, are read whole, for a bounded time.
"""

import os
import re
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from errand.engine.core.errors import FolderNotAnswering, InvalidParams
from errand.engine.core.fair_share import short_switches
from errand.engine.core.workspace_threads import in_workspace
from errand.engine.data.import_growth import find_growth
from errand.engine.data.importer import FoundConversation, Sources
from errand.engine.data.importers.conversation import conversation_id
from errand.engine.data.importers.registry import (
    GOOSE_DATABASE,
    HEAD,
    OPENCODE_DATABASE,
    DatabaseFormat,
    database_format_of,
)
from errand.engine.storage.database import Database
from errand.engine.tools.files.file_walk import is_file, is_folder
from errand.protocol.data import DataFindResult, FoundSessions
from errand.system.paths import Paths
from errand.system.regular_file import open_regular

_CODEX, _CLAUDE_CODE, _GEMINI, _PI = "Codex", "Claude Code", "gemini-cli", "pi"
_MAX_DEPTH = 5  # Codex has a folder for each year, month and day
_MAX_FILES = 100_000
_PATIENCE_S = 60.0
_LOOKED_AT_S = 5.0  # for the beginnings of the files of one folder
_COUNT_CHANGES_S = 5.0  # for all that is read whole in one folder
_MAX_READ_BYTES = 32 * 1024 * 1024
_SMALL = 64 * 1024
_DIGEST = 12
# The session's id in its first lines.
_ID = re.compile(rb'"(?:sessionId|id)"\s*:\s*"([^"\\]{1,200})"')
_SESSION_ID = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{1,200})"')


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of a program in which sessions are files whose names match, or a `database`."""

    program: str
    path: Path
    names: re.Pattern[str] = re.compile(r".+\.jsonl")
    id_sign: re.Pattern[bytes] = _ID
    database: DatabaseFormat | None = None


@dataclass(slots=True)
class _Session:
    """A session in one or several files: gemini-cli begins another when it is resumed. `end` is the last change."""

    source_id: str
    paths: tuple[Path, ...]
    size: int
    end: datetime


@dataclass(slots=True)
class _Look:
    """The sessions of one place. `not_looked_at` counts the files for which time did not suffice."""

    sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])
    bytes: int = 0
    not_looked_at: int = 0
    problem: str = ""


def places(environment: Mapping[str, str]) -> list[Place]:
    """Return where the programs keep their sessions, by their variables in `environment` and their defaults."""
    home = Path(environment.get("HOME") or Path.home())

    def folder(variable: str, default: str) -> Path:
        value = environment.get(variable, "").strip()
        return Path(os.path.expanduser(value)) if os.path.isabs(os.path.expanduser(value)) else home / default

    codex = folder("CODEX_HOME", ".codex")
    rollout = re.compile(r"rollout-.+\.jsonl")
    claude = [folder("CLAUDE_CONFIG_DIR", ".claude")]
    if "CLAUDE_CONFIG_DIR" not in environment:
        claude.append(home / ".config/claude")
    data = folder("XDG_DATA_HOME", ".local/share")
    gemini = folder("GEMINI_CLI_HOME", ".") / ".gemini"
    return [
        Place(_CODEX, codex / "sessions", rollout),
        Place(_CODEX, codex / "archived_sessions", rollout),
        *(
            Place(_CLAUDE_CODE, folder_path / "projects", re.compile(r"(?!agent-).+\.jsonl"), _SESSION_ID)
            for folder_path in claude
        ),
        _database_place(OPENCODE_DATABASE, data / "opencode"),
        Place(_GEMINI, gemini / "tmp", re.compile(r"session-.+\.jsonl?"), _SESSION_ID),
        Place(_PI, folder("PI_CODING_AGENT_DIR", ".pi/agent") / "sessions"),
        _database_place(GOOSE_DATABASE, data / "goose" / "sessions"),
    ]


def _database_place(database: DatabaseFormat, folder: Path) -> Place:
    return Place(database.program, folder / database.file_name, database=database)


@dataclass(frozen=True, slots=True)
class Discovery:
    database: Database

    async def run(self, environment: Mapping[str, str]) -> DataFindResult:
        """Look into every place. A folder that cannot be read is a row with the reason."""
        every = places(environment)
        imported = {one_id[-_DIGEST:]: (one_id, at) for one_id, at in await self.database.conversations.changes()}
        with short_switches():
            results = [await self._look(session_place, imported) for session_place in every]
        return DataFindResult(
            found=tuple(result for result in results if result is not None),
            searched=tuple(str(session_place.path) for session_place in every),
        )

    async def _look(self, session_place: Place, imported: Mapping[str, tuple[str, datetime]]) -> FoundSessions | None:
        try:
            look = await in_workspace(session_place.path.parent, lambda: _look_into(session_place), _PATIENCE_S)
        except FolderNotAnswering as error:
            look = _Look(problem=str(error))
        if not look.sessions and not look.problem:
            return None
        new, changed, present = _sorted_out(session_place, look, imported)
        empty, grown = await self._count_changes(session_place, new, changed)
        newest = max((session.end for session in look.sessions.values()), default=None)
        return FoundSessions(
            program=session_place.program,
            path=str(session_place.path),
            sessions=len(look.sessions) - empty,
            new=len(new) - empty,
            grown=grown,
            present=present + len(changed) - grown,
            bytes=look.bytes,
            newest_at=newest,
            not_looked_at=look.not_looked_at,
            problem=look.problem,
        )

    async def _count_changes(
        self, session_place: Place, new: Collection[_Session], changed: Collection[_Session]
    ) -> tuple[int, int]:
        """Return how many new sessions are empty, and how many of the changed ones have new messages."""
        give_up_at, left = time.monotonic() + _COUNT_CHANGES_S, _MAX_READ_BYTES
        empty = grown = 0
        with tempfile.TemporaryDirectory(prefix="errand-") as folder:
            paths = Paths(Path(folder))
            small = ((conversation, True) for conversation in new if conversation.size <= _SMALL)
            for session, is_new in (*((conversation, False) for conversation in changed), *small):
                left -= session.size
                if left < 0 or time.monotonic() > give_up_at:
                    grown += not is_new  # probably
                    continue
                try:
                    conversations = await in_workspace(
                        session_place.path,
                        lambda session=session: _read(session_place, session, paths),
                        _PATIENCE_S,
                    )
                except (InvalidParams, OSError, FolderNotAnswering):
                    conversations = []
                if is_new:
                    empty += not conversations
                else:
                    growths = [
                        (await find_growth(conversation.imported.bundle, self.database)).nodes
                        for conversation in conversations
                    ]
                    grown += any(growths)
        return empty, grown


def _look_into(session_place: Place) -> _Look:
    look = _Look()
    try:
        if session_place.database is not None:
            _look_into_database(session_place, session_place.database, look)
        else:
            _look_into_folder(session_place, look)
    except FileNotFoundError:
        return _Look()
    except (OSError, InvalidParams) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        look.problem = f"{session_place.path} cannot be read: {reason}."
    return look


def _look_into_database(session_place: Place, database: DatabaseFormat, look: _Look) -> None:
    if not session_place.path.is_file():
        return
    look.bytes = session_place.path.stat().st_size
    if database_format_of(session_place.path) is not database:  # its tables may be views
        raise InvalidParams(f"it is not the database of {session_place.program}")
    for source_id, milliseconds in database.sessions(session_place.path):
        end = datetime.fromtimestamp(milliseconds / 1000, UTC)
        look.sessions[source_id] = _Session(source_id, (session_place.path,), 0, end)


def _look_into_folder(session_place: Place, look: _Look) -> None:
    """Look at the newest files first: the time may not suffice for all."""
    every = islice(_files(session_place.path, session_place.names, 0), _MAX_FILES)
    files = sorted(every, key=lambda entry: entry[1].st_mtime, reverse=True)
    give_up_at = time.monotonic() + _LOOKED_AT_S
    for path, facts in files:
        if time.monotonic() > give_up_at:
            look.not_looked_at += 1
            continue
        look.bytes += facts.st_size
        source_id = ""
        with suppress(OSError):
            source_id = _id_in(path, session_place.id_sign)
        if source_id:
            end = datetime.fromtimestamp(facts.st_mtime, UTC)
            newer = look.sessions.get(source_id)
            if newer is None:
                look.sessions[source_id] = _Session(source_id, (path,), facts.st_size, end)
            else:
                paths = (*newer.paths, path)
                look.sessions[source_id] = replace(newer, paths=paths, size=newer.size + facts.st_size)
    if len(files) == _MAX_FILES:
        look.problem = (
            f"There are more than {_MAX_FILES:,} files in {session_place.path}: the others were not looked at."
        )


def _files(folder: Path, names: re.Pattern[str], depth: int) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield the files below the folder, without following links; unreadable folders are left out."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_folder(entry, follow_links=False) and depth < _MAX_DEPTH and entry.name != "subagents":
                with suppress(OSError):
                    yield from _files(Path(entry.path), names, depth + 1)
            elif names.fullmatch(entry.name) and is_file(entry):
                with suppress(OSError):
                    yield Path(entry.path), entry.stat(follow_symlinks=False)


def _id_in(path: Path, sign: re.Pattern[bytes]) -> str:
    """Empty if its beginning has none: then it is no session."""
    with open_regular(path, follow_links=False) as file:
        head = file.read(_SMALL)
        match = sign.search(head) or sign.search(head + file.read(HEAD))
    return match[1].decode("utf-8", "replace") if match is not None else ""


def _sorted_out(
    session_place: Place, look: _Look, imported: Mapping[str, tuple[str, datetime]]
) -> tuple[list[_Session], list[_Session], int]:
    """New ones, those written to since they were taken, and how many are as they were."""
    new: list[_Session] = []
    changed: list[_Session] = []
    for session in look.sessions.values():
        digest = conversation_id(session_place.program, session.source_id, None)[-_DIGEST:]
        taken = imported.get(digest)
        if taken is None:
            new.append(session)
        elif session.end > taken[1]:
            changed.append(session)
    return new, changed, len(look.sessions) - len(new) - len(changed)


def _read(session_place: Place, session: _Session, paths: Paths) -> list[FoundConversation]:
    """Return the conversation of a session, once for each file with a part of it. Its pictures are temporary."""
    sources = Sources(paths)
    if session_place.database is not None:
        return list(sources.of_database(session_place.path, (session.source_id,)))
    return [conversation for path in session.paths for conversation in _first_with_messages(sources, path)]


def _first_with_messages(sources: Sources, path: Path) -> list[FoundConversation]:
    return [conversation for conversation in sources.of(path) if conversation.imported.bundle.nodes][:1]
