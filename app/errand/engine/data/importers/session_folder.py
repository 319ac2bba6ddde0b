"""Finds the files that belong to a session of another program: beside it, in the program's own folder.

Names come from files of others: only names of one kind are looked for, and no link is followed.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from errand.system.regular_file import open_regular, read_at_most

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_FILE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")
_DATE_FOLDERS = 3
_MAX_OUTPUT_LENGTH = 200_000
_MAX_SUB_AGENTS = 1_000


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """The surroundings of the session in the file `path`."""

    path: Path

    def codex_session(self, session_id: str) -> IO[bytes] | None:
        """Another session of Codex, in the same folder or that of another day."""
        if not _ID.fullmatch(session_id):
            return None
        name, folder = f"rollout-*-{session_id}.jsonl", self.path.parent
        is_dated = all(part.isdigit() for part in folder.parts[-_DATE_FOLDERS:])
        every = [folder.glob(name)]
        if is_dated and len(folder.parts) > _DATE_FOLDERS:
            every.append(folder.parents[_DATE_FOLDERS - 1].glob(f"*/*/*/{name}"))
        for file in (file for files in every for file in files):
            try:
                if not any(parent.is_symlink() for parent in (file, *file.parents[:_DATE_FOLDERS])):
                    return open_regular(file, follow_links=False)
            except OSError:
                continue
        return None

    def gemini_sub_agent(self, session_id: str, agent_id: str) -> IO[bytes] | None:
        """Return the file of a sub-agent that the session called."""
        folder = self.path.parent / session_id
        if not (_ID.fullmatch(session_id) and _ID.fullmatch(agent_id)) or folder.is_symlink():
            return None
        try:
            return open_regular(folder / f"{agent_id}.jsonl", follow_links=False)
        except OSError:
            return None

    def gemini_caller(self) -> Iterator[IO[bytes]]:
        """Yield the files of the session that called this sub-agent, oldest first, named by parts of its id."""
        name = self.path.parent.name
        if not _ID.fullmatch(name):
            return
        for file in sorted(islice(self.path.parents[1].glob(f"session-*-{name[:8]}.jsonl"), _MAX_SUB_AGENTS)):
            try:
                yield open_regular(file, follow_links=False)
            except OSError:
                continue

    def claude_output(self, name: str) -> str | None:
        """Return a long output that Claude Code put into a file of the session; None if it is not there."""
        file = self._claude_folder() / "tool-results" / name
        if not _FILE.fullmatch(name) or any(part.is_symlink() for part in (file, *file.parents[:2])):
            return None
        try:
            with open_regular(file, follow_links=False) as opened:
                size = os.fstat(opened.fileno()).st_size
                text = read_at_most(opened, _MAX_OUTPUT_LENGTH).decode("utf-8", "replace")
        except OSError:
            return None
        return text if size <= _MAX_OUTPUT_LENGTH else f"{text}\n\n[{size:,} bytes; the rest was not imported]"

    def claude_sub_agents(self) -> list[Path]:
        """Return the files of the session's sub-agents."""
        folder = self._claude_folder() / "subagents"
        if folder.is_symlink() or folder.parent.is_symlink():
            return []
        return sorted(islice((file for file in folder.glob("agent-*.jsonl") if not file.is_symlink()), _MAX_SUB_AGENTS))

    def claude_caller(self) -> Path | None:
        """Return the file of the session that called this sub-agent."""
        folder = self.path.parent.parent
        caller = folder.with_name(f"{folder.name}.jsonl")
        return caller if caller.is_file() and not caller.is_symlink() else None

    def _claude_folder(self) -> Path:
        return self.path.parent.parent if self.path.parent.name == "subagents" else self.path.with_suffix("")
