"""Processes are told apart by their start, and one that has ended is no longer any of them."""

import os
import subprocess
import sys

import pytest

from errand.system.local_trust import is_same_process, process_start

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux provides the start of a process")


def test_running_process_is_the_one_that_began_at_its_start() -> None:
    start = process_start(os.getpid())
    assert start is not None
    assert is_same_process(os.getpid(), start)
    assert not is_same_process(os.getpid(), start + 1)


def test_ended_process_is_the_same_as_none() -> None:
    ended = subprocess.Popen((sys.executable, "-c", ""))
    ended.wait()
    assert process_start(ended.pid) is None
    assert not is_same_process(ended.pid, None)
    assert not is_same_process(ended.pid, 1)
    assert not is_same_process(ended.pid, 0)


def test_a_process_that_has_ended_counts_as_ended_before_its_parent_has_noticed() -> None:
    zombie = subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    start = process_start(zombie.pid)
    assert start is not None and is_same_process(zombie.pid, start)
    zombie.kill()
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and stays a zombie
    assert process_start(zombie.pid) is None
    assert not is_same_process(zombie.pid, start)
    zombie.communicate()
