"""Running programs as a second user of the machine, which only the superuser can arrange."""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

NOBODY = 65534
_USER = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
# Where Python is below root's own folder: they may read any file then, and look into no more processes than without.
_READER = (*_USER, "--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search")


def nobody() -> tuple[str, ...]:
    """What stands before a command so that the user `nobody` runs it; skips the test where that cannot be."""
    prefix = _prefix()
    if prefix is None:
        pytest.skip("needs Linux, the superuser and setpriv: a second user is played by `nobody`")
    return prefix


@contextmanager
def folder_of_nobody() -> Generator[Path]:
    """A folder that belongs to `nobody`."""
    folder = Path(tempfile.mkdtemp(prefix="errand-nobody-"))
    os.chown(folder, NOBODY, NOBODY)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _prefix() -> tuple[str, ...] | None:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("setpriv") is None:
        return None
    return next((prefix for prefix in (_USER, _READER) if _works(prefix)), None)


def _works(prefix: tuple[str, ...]) -> bool:
    program = "import subprocess, sys, app; subprocess.run([sys.executable, '-c', 'import sqlalchemy'], check=True)"
    command = [*prefix, sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, cwd=Path(__file__).parents[2], check=False).returncode == 0
