"""The size check: a Python file over 500 lines fails, one over 400 is listed. Run by `make lint`."""

import subprocess
import sys
from pathlib import Path

FAILS = 500
NAMED = 400


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], capture_output=True, text=True, check=True
    )
    sizes = {
        name: len(Path(name).read_text(encoding="utf-8").splitlines())
        for name in listed.stdout.split()
        if Path(name).exists()
    }
    for name, lines in sorted(sizes.items(), key=lambda row: -row[1]):
        if lines > NAMED:
            sys.stdout.write(f"{lines:5} lines  {name}{'  too long: split it by concept' if lines > FAILS else ''}\n")
    too_long = sum(lines > FAILS for lines in sizes.values())
    sys.stdout.write(f"{len(sizes)} files, {sum(sizes.values())} lines, {too_long} over {FAILS}\n")
    return 1 if too_long else 0


if __name__ == "__main__":
    sys.exit(main())
