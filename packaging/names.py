"""The name check: a constant that is a superlative, such as `_MOST_FILES`, fails. Run by `make lint`."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

_VAGUE_CONSTANT = re.compile(
    r"_?(?:MOST|LONGEST|LARGEST|DEEPEST|LEAST|FEWEST|SHORTEST|SMALLEST|WIDEST|HIGHEST|LATEST)(?:_[A-Z0-9_]+)?"
)


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], capture_output=True, text=True, check=True
    )
    files = [Path(name) for name in listed.stdout.split() if Path(name).exists()]
    vague = [f"{file}:{constant}" for file in files for constant in vague_names(file)]
    for constant in vague:
        sys.stdout.write(f"{constant}  say MAX_ or MIN_ with the thing and its unit\n")
    return 1 if vague else 0


def vague_names(file: Path) -> Iterator[str]:
    """Line and name of each constant that does not say what it limits."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and _VAGUE_CONSTANT.fullmatch(node.id):
            yield f"{node.lineno} {node.id}"


if __name__ == "__main__":
    sys.exit(main())
