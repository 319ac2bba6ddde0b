"""The supported formats of other programs; docs/export.md describes what is imported from each."""

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from errand.engine.data.importers import (
    chatgpt,
    claude,
    claude_code,
    codex,
    gemini,
    goose,
    goose_database,
    opencode,
    opencode_database,
    pi,
)
from errand.engine.data.importers.conversation import ForeignConversation
from errand.engine.data.importers.foreign_database import tables
from errand.engine.data.importers.import_context import ImportContext
from errand.engine.data.importers.json_documents import Documents, Shape

Read: TypeAlias = Callable[[Documents, ImportContext], Iterator[ForeignConversation]]

ReadDatabase: TypeAlias = Callable[[Path, ImportContext, Collection[str] | None], Iterator[ForeignConversation]]

# The part of a file that is enough to detect its format.
HEAD = 256 * 1024


@dataclass(frozen=True, slots=True)
class Format:
    """A file matches if its head has all `signs` and it begins with the character `begins`."""

    program: str
    begins: bytes
    signs: tuple[re.Pattern[bytes], ...]
    shape: Shape
    read: Read


@dataclass(frozen=True, slots=True)
class DatabaseFormat:
    """A database matches if it has all `tables`. `sessions` and `read` are described in the modules of the programs."""

    program: str
    file_name: str
    tables: tuple[str, ...]
    sessions: Callable[[Path], list[tuple[str, int]]]
    read: ReadDatabase


def _key(name: str, value: str = "") -> re.Pattern[bytes]:
    return re.compile(rf'"{name}"\s*:\s*{value}'.encode())


# The first match applies: the most specific signs come first.
FORMATS: tuple[Format, ...] = (
    Format("Codex", b"{", (_key("type", '"session_meta"'), _key("payload")), "lines", codex.read),
    Format("pi", b"{", (re.compile(rb'\A\s*\{"type"\s*:\s*"session"'), _key("cwd")), "lines", pi.read),
    Format("OpenCode", b"{", (re.compile(rb'\A\s*\{\s*"info"\s*:'), _key("directory")), "whole", opencode.read),
    Format(
        "gemini-cli", b"{", (re.compile(rb'\A\s*\{"sessionId":[^\n]*"projectHash"[^\n]*\}\r?\n'),), "lines", gemini.read
    ),
    Format("gemini-cli", b"{", (re.compile(rb'\A\s*\{\s*"sessionId"'), _key("projectHash")), "whole", gemini.read),
    Format(goose.PROGRAM, b"{", (_key("working_dir"), _key("conversation", r"\[")), "whole", goose.read),
    Format(goose.PROGRAM, b"{", (re.compile(rb'\A[^\n]*"working_dir"'),), "lines", goose.read),
    Format("ChatGPT", b"[", (_key("mapping", r"\{"),), "whole", chatgpt.read),
    Format("ChatGPT", b"{", (_key("mapping", r"\{"), _key("current_node")), "whole", chatgpt.read),
    Format("Claude", b"[", (_key("chat_messages", r"\["),), "whole", claude.read),
    Format("Claude", b"{", (_key("chat_messages", r"\["),), "whole", claude.read),
    Format("Claude Code", b"{", (_key("parentUuid"), _key("(?:sessionId|isSidechain)")), "lines", claude_code.read),
    Format(
        "Codex", b"{", (re.compile(rb'\A\s*\{(?>[^\n]*?"instructions")[^\n]*+\n\{[^\n]*"type"'),), "lines", codex.read
    ),
)
OPENCODE_DATABASE = DatabaseFormat(
    opencode.PROGRAM, "opencode.db", opencode_database.TABLES, opencode_database.sessions, opencode_database.read
)
GOOSE_DATABASE = DatabaseFormat(
    goose.PROGRAM, "sessions.db", goose_database.TABLES, goose_database.sessions, goose_database.read
)
DATABASES = (OPENCODE_DATABASE, GOOSE_DATABASE)
PROGRAMS = tuple(dict.fromkeys(known_format.program for known_format in FORMATS))


def format_of(head: bytes) -> Format | None:
    """Detect the format by the content, whatever the file's name."""
    begins = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    return next(
        (
            known_format
            for known_format in FORMATS
            if known_format.begins == begins and all(sign.search(head) for sign in known_format.signs)
        ),
        None,
    )


def database_format_of(path: Path) -> DatabaseFormat | None:
    """Detect the format by the tables. Raises `InvalidParams` for a database that cannot be read."""
    there = set(tables(path))
    return next((known_format for known_format in DATABASES if there.issuperset(known_format.tables)), None)
