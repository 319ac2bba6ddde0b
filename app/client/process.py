"""The engine as a process of its own, which outlives the client that started it."""

import os
import subprocess
import sys
from pathlib import Path

import app
from app.environment import without_secrets
from app.paths import Paths

_WORDS = 2_000


class _Detached(subprocess.Popen[bytes]):
    """Popen warns when it is forgotten while its process runs; here that is the purpose."""

    def __del__(self) -> None:
        pass


class EngineProcess:
    """Started at once, in its own session, with its output in `logs/engine.out`."""

    def __init__(self, paths: Paths) -> None:
        self._output = paths.logs / "engine.out"
        if self._output.exists():
            os.replace(self._output, self._output.with_suffix(".old"))
        with open(self._output, "wb") as output:
            self._process = _spawn(paths, output.fileno())

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def last_words(self) -> str:
        """The end of its output, for people."""
        text = self._output.read_text(encoding="utf-8", errors="replace").strip()[-_WORDS:]
        said = f"It said:\n{text}" if text else "It said nothing."
        return (
            f"{said}\nIts exit code was {self._process.returncode}; {self._output} and engine.log beside it have more."
        )


def _spawn(paths: Paths, output: int) -> _Detached:
    command = [sys.executable, "engine"] if _is_frozen() else [sys.executable, "-m", "app", "engine"]
    environment = without_secrets(os.environ) | {"ERRAND_HOME": str(paths.home)}
    # `-m app` finds the package in the working directory, installed or not.
    folder = paths.home if _is_frozen() else Path(app.__path__[0]).parent
    if sys.platform == "win32":
        flags = subprocess.DETACHED_PROCESS | subprocess.CREATE_NEW_PROCESS_GROUP
        return _Detached(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=folder, env=environment,
            creationflags=flags,
        )  # fmt: skip
    return _Detached(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )


def _is_frozen() -> bool:
    """True in an installed bundle, whose executable is errand itself."""
    return bool(getattr(sys, "frozen", False))
