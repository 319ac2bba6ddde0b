"""`make test`: all tests, in two parallel sessions of pytest.

Each test always belongs to the same session and runs in the same order. Both sessions spend much of their time waiting
for engines, disks and timers. The output of the second session follows that of the first.
"""

import subprocess
import sys
import tempfile

# The first session runs everything else, so no test is left out.
_SECOND = ("tests/attacks", "tests/end_to_end")


def main() -> int:
    pytest = (sys.executable, "-m", "pytest")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
        with subprocess.Popen(
            [*pytest, "-p", "no:cacheprovider", *_SECOND], stdout=output, stderr=subprocess.STDOUT
        ) as second:
            try:
                first = subprocess.call([*pytest, *(f"--ignore={folder}" for folder in _SECOND), "tests"])
            except KeyboardInterrupt:
                second.terminate()
                raise
        output.seek(0)
        sys.stdout.write(output.read())
    return first or second.returncode


if __name__ == "__main__":
    sys.exit(main())
