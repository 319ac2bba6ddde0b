"""Ctrl+C while a command is still being loaded."""

import signal
import subprocess
import sys

_INTERRUPTED = """
import sys
import errand.__main__
import errand.text.translation


def interrupt(language):
    raise KeyboardInterrupt


errand.text.translation.use_language = interrupt
sys.argv = ["errand", "tasks"]
sys.exit(errand.__main__.main())
"""


def test_ctrl_c_before_a_command_has_begun_ends_it_without_a_traceback() -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
