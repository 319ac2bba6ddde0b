"""Paths of Errand's files: one data directory, relocated by ERRAND_HOME."""

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path

_OTHERS_PERMISSIONS = stat.S_IRWXG | stat.S_IRWXO

# Relative to the home directory: a person's skills for all workspaces.
USER_SKILLS = (".config/errand/skills", ".agents/skills")


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths under one `home`. `prepare` creates the directories and makes them private to their owner."""

    home: Path

    @property
    def database(self) -> Path:
        return self.home / "errand.db"

    @property
    def copies(self) -> Path:
        return self.home / "copies"

    @property
    def outputs(self) -> Path:
        """Long tool output, one folder per task."""
        return self.home / "outputs"

    @property
    def attachments(self) -> Path:
        """Attached pictures, one folder each, named by their content."""
        return self.home / "attachments"

    @property
    def replaced(self) -> Path:
        """The file of what tasks replaced in files, named by its hash, to undo changes."""
        return self.home / "replaced"

    @property
    def logs(self) -> Path:
        return self.home / "logs"

    @property
    def settings(self) -> Path:
        return self.home / "settings.json"

    @property
    def models(self) -> Path:
        """The model lists fetched from providers."""
        return self.home / "models.json"

    @property
    def embedding(self) -> Path:
        """The files of the model that embeds texts."""
        return self.home / "embedding"

    @property
    def local_models(self) -> Path:
        """Downloaded models that run on this machine, and the program that runs them."""
        return self.home / "local-models"

    @property
    def memory(self) -> Path:
        """The indexes of memory, made from the database: they can be deleted at any time."""
        return self.home / "memory"

    @property
    def mcp_known(self) -> Path:
        """The MCP servers of workspaces that a person trusts, and what the tools of servers said when last seen."""
        return self.home / "mcp.json"

    @property
    def keys(self) -> Path:
        """The encrypted key file and its own key, for machines without a keyring."""
        return self.home / "keys"

    @property
    def skills(self) -> Path:
        """The file that says where installed skills come from, and which skills are switched off."""
        return self.home / "skills.json"

    @property
    def removed_skills(self) -> Path:
        """The folders of removed skills, which can be restored for a time."""
        return self.home / "removed-skills"

    @property
    def staging(self) -> Path:
        """Copies of repositories while a skill of theirs is read."""
        return self.home / "staging"

    @property
    def workspaces(self) -> Path:
        """Scratch folders, for the tour."""
        return self.home / "workspaces"

    @property
    def cache(self) -> Path:
        """Caches of package managers, for sandboxed commands."""
        return self.home / "cache"

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def endpoint(self) -> Path:
        """The 0600 file with the address of the running engine."""
        return self.run / "engine.json"

    @property
    def lock(self) -> Path:
        return self.run / "engine.lock"

    @property
    def disk_reserve(self) -> Path:
        """A filler file that reserves disk space for a start on a full disk."""
        return self.run / "room"

    @property
    def stall(self) -> Path:
        """The running engine writes the stack of a stalled event loop here."""
        return self.run / "stall.txt"

    @property
    def last_stall(self) -> Path:
        """A report on the last engine that stalled; its first line is for people."""
        return self.logs / "last_stall.txt"

    @property
    def window_instance_file(self) -> Path:
        """The 0600 file with the address of an open window, for a second start."""
        return self.run / "window.json"

    @property
    def window_lock(self) -> Path:
        return self.run / "window.lock"

    def prepare(self) -> None:
        """Create the directories and restrict their permissions. Raises OSError."""
        try:
            str(self.home).encode()
        except UnicodeEncodeError as error:
            raise OSError(errno.EILSEQ, "its name is not UTF-8", ascii(str(self.home))) from error
        folders = (
            self.copies,
            self.outputs,
            self.attachments,
            self.replaced,
            self.logs,
            self.keys,
            self.workspaces,
            self.run,
        )
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A directory that also holds other files stays readable: other users may be meant to read those.
        is_new = not any(self.home.iterdir())
        _restrict(self.home, _OTHERS_PERMISSIONS if is_new else stat.S_IWGRP | stat.S_IWOTH)
        for folder in folders:
            folder.mkdir(mode=0o700, exist_ok=True)
            _restrict(folder, _OTHERS_PERMISSIONS)
        for file in (*self.home.glob(f"{self.database.name}*"), self.settings, self.models):
            if file.is_file() and not file.is_symlink():
                _restrict(file, _OTHERS_PERMISSIONS)
        if os.name == "posix" and self.run.stat().st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user", str(self.run))


def _restrict(path: Path, to_others: int) -> None:
    """Remove other users' permissions from a path of ours; shared folders such as /tmp stay unchanged."""
    if os.name != "posix":
        return
    status = path.stat()
    if status.st_mode & to_others and status.st_uid == os.geteuid() and not status.st_mode & stat.S_ISVTX:
        path.chmod(stat.S_IMODE(status.st_mode) & ~to_others)


def default_paths() -> Paths:
    """ERRAND_HOME if set, else the platform's directory for a user's application data."""
    home = os.environ.get("ERRAND_HOME")
    if home:
        return Paths(Path(os.path.expanduser(home)).absolute())
    from platformdirs import user_data_path  # only without ERRAND_HOME; it costs 20 ms

    return Paths(user_data_path("errand", appauthor=False))
