"""A place for processes that has little memory: the kernel kills who wants more. Needs the right to make it."""

import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import pytest

_GROUPS = Path("/sys/fs/cgroup/memory")


@contextmanager
def little_memory(megabytes: int) -> Generator[Path]:
    """The file into which a process writes its id to come into it. Skips the test where there are no such groups."""
    group = _GROUPS / f"errand-test-{uuid4().hex}"
    limit = str(megabytes * 1024 * 1024)
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(limit)
    except OSError:
        pytest.skip("this user may not make a control group")
    memory_and_swap = group / "memory.memsw.limit_in_bytes"
    if memory_and_swap.exists():
        memory_and_swap.write_text(limit)
    try:
        yield group / "cgroup.procs"
    finally:
        subprocess.run(["rmdir", str(group)], check=False)
