import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from errand.system.regular_file import write_atomically

WRITER = """
import sys
from pathlib import Path
from errand.system.regular_file import write_atomically
path = Path(sys.argv[1])
print("ready", flush=True)
while True:
    for letter in (b"a", b"b"):
        write_atomically(path, letter * 3_000_000)
"""


def test_a_writer_killed_at_any_instant_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"a" * 3_000_000)
    chance = random.Random(7)
    for _ in range(5):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
            time.sleep(chance.random() / 20)  # the moment of the kill, not a wait
            writer.send_signal(signal.SIGKILL)
        content = path.read_bytes()
        assert len(content) == 3_000_000 and len(set(content)) == 1


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError):
        write_atomically(tmp_path / "folder", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_long_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    write_atomically(path, b"x")
    assert path.read_bytes() == b"x"
