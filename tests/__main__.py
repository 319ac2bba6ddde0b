"""`make test`: all tests, in three parallel sessions of pytest.

Each test always belongs to the same session and runs in the same order. The sessions spend much of their time waiting
for engines, disks and timers. The first session's output is shown as it comes, that of the others after it.
"""

import subprocess
import sys
import tempfile
from contextlib import ExitStack

# The first session runs everything else, so no test is left out.
_OTHERS = (("tests/end_to_end",), ("tests/engine",))


def main() -> int:
    pytest = (sys.executable, "-m", "pytest")
    with ExitStack() as stack:
        outputs = [stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8")) for _ in _OTHERS]
        others = [
            stack.enter_context(
                subprocess.Popen([*pytest, "-p", "no:cacheprovider", *folders], stdout=output, stderr=subprocess.STDOUT)
            )
            for folders, output in zip(_OTHERS, outputs, strict=True)
        ]
        try:
            failed = subprocess.call([*pytest, *(f"--ignore={one}" for folders in _OTHERS for one in folders), "tests"])
        except KeyboardInterrupt:
            for session in others:
                session.terminate()
            raise
        for session, output in zip(others, outputs, strict=True):
            failed = session.wait() or failed
            output.seek(0)
            sys.stdout.write(output.read())
    return failed


if __name__ == "__main__":
    sys.exit(main())
