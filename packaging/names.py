"""The check of names and docstrings: what says nothing to a newcomer fails. Run by `make lint`.

Constants that are superlatives, such as `_MOST_FILES`, vague local names, such as `found`, and docstrings that are
fragments, such as "Of all rows.".
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

VAGUE_CONSTANT = re.compile(
    r"_?(?:MOST|LONGEST|LARGEST|DEEPEST|LEAST|FEWEST|SHORTEST|SMALLEST|WIDEST|HIGHEST|LATEST)(?:_[A-Z0-9_]+)?"
)
VAGUE_NAMES = frozenset(
    {"found", "one", "ones", "place", "places", "words", "known", "kept", "shown", "wanted", "given", "told", "said"}
    | {"made", "whole", "beside", "beyond", "aside", "way"}
)
FRAGMENT = re.compile(
    r"(?:That|Those|Of|As|Where|By|From|To|What|Which|Whose|Whether|How|With|In|On|At|For|If|When|Than)\b"
)

# Packages below app/errand with names that are stored or on the wire. Take out what has become clean, add nothing.
NAMES_TO_MEND = ("protocol", "window/stores")

ADVICE = {
    "constant": "say MAX_ or MIN_ with the thing and its unit, as in MAX_BODY_BYTES",
    "name": "say what it holds there, as in matches, session, visible_rows",
    "docstring": "let it stand alone: a verb first for a function, a noun first for a class",
}


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.py"], capture_output=True, text=True, check=True
    )
    files = [Path(name) for name in listed.stdout.split() if Path(name).exists()]
    faults = [f"{file}:{line} {text}  {ADVICE[kind]}" for file in files for line, kind, text in sorted(faults_of(file))]
    for fault in faults:
        sys.stdout.write(f"{fault}\n")
    return 1 if faults else 0


def faults_of(file: Path) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the kind and the text of each name or docstring that has to be changed."""
    checks_names = not any(file.is_relative_to(Path("app/errand") / package) for package in NAMES_TO_MEND)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            if VAGUE_CONSTANT.fullmatch(node.id):
                yield node.lineno, "constant", node.id
            elif checks_names and node.id.lstrip("_") in VAGUE_NAMES:
                yield node.lineno, "name", node.id
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            docstring = ast.get_docstring(node) or ""
            if FRAGMENT.match(docstring):
                yield node.lineno, "docstring", f"“{docstring.splitlines()[0]}”"


if __name__ == "__main__":
    sys.exit(main())
