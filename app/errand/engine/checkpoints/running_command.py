"""A command that runs in a workspace with a baseline, to which changes of files are attributed."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from errand.engine.permissions.shell.named_files import named_files
from errand.protocol.changes import FOLDER, Change

# Makes the record of a path and its content from before.
NewChange: TypeAlias = Callable[[Path, str], Change]


@dataclass(eq=False)
class RunningCommand:
    """The `CommandFiles` of a command. `line` runs in `folder`; code of another language has no line.

    `end` records what has changed in the workspace, whose path is `root`.
    """

    root: Path
    new_change: NewChange
    publish: Callable[[Change], None]
    end: Callable[["RunningCommand"], None]
    line: str = ""
    folder: str = ""
    home: str = ""

    def record_changes(self) -> None:
        self.end(self)

    @cached_property
    def note(self) -> Change:
        """The record by which the next engine knows the command if this one is killed."""
        return self.new_change(self.root, FOLDER)

    @cached_property
    def names(self) -> frozenset[str]:
        """The paths that the command line names."""
        named = named_files(self.line, self.folder, self.home) if self.line else ()
        return frozenset(named_path.path for named_path in named)
