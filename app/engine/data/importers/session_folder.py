"""Finds the files that belong to a session of another program: beside it, in the program's own folder.

Names come from files of others: only names of one kind are looked for, and no link is followed.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from app.regular_file import open_regular

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_DATE_FOLDERS = 3


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
        for found in (file for files in every for file in files):
            try:
                if not any(parent.is_symlink() for parent in (found, *found.parents[:_DATE_FOLDERS])):
                    return open_regular(found, follow_links=False)
            except OSError:
                continue
        return None
