"""`make test`: all tests, in three parallel sessions of pytest, and the type check beside them.

Each test always belongs to the same session and runs in the same order. The sessions spend some of their time waiting
for engines, disks and timers. The first session's output is shown as it comes, that of the others after it. A type
error ends all of them at once.
"""

import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from typing import IO

_PYTEST = (sys.executable, "-m", "pytest")
_TYPES = (sys.executable, "-m", "pyright", "--pythonpath", sys.executable)

# Arguments of the other sessions: each takes about as long. The first runs everything else, so no test is left out.
_MOVED = ("tests/engine/data", "tests/engine/memory")
_OTHERS = (("tests/end_to_end", *_MOVED), ("tests/engine", *(f"--ignore={one}" for one in _MOVED)))
_ELSEWHERE = ("tests", "--ignore=tests/end_to_end", "--ignore=tests/engine")


def main() -> int:
    with ExitStack() as stack:

        def start(*command: str) -> tuple["subprocess.Popen[bytes]", IO[str]]:
            output = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
            process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            return stack.enter_context(process), output

        types, found = start(*_TYPES)
        others = [start(*_PYTEST, "-p", "no:cacheprovider", *session) for session in _OTHERS]
        shown = stack.enter_context(subprocess.Popen([*_PYTEST, *_ELSEWHERE]))
        sessions = [shown, *(session for session, _ in others)]
        try:
            if failed := types.wait():
                for session in sessions:
                    session.send_signal(signal.SIGINT)
                    session.wait()
                _show(found)
                return failed
            failed = shown.wait()
        except KeyboardInterrupt:
            for process in (types, *sessions):
                process.terminate()
            raise
        for session, output in others:
            failed = session.wait() or failed
            _show(output)
        _show(found)
    return failed


def _show(output: IO[str]) -> None:
    output.seek(0)
    sys.stdout.write(output.read())
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
