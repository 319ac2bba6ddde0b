"""Writes docs/protocol.json, docs/protocol.md and docs/tools.md from the code.

`python packaging/reference_pages.py [--check]`: with `--check`, names the files that are not current and ends with 1.
"""

import sys
from pathlib import Path

import msgspec
from protocol_reference import protocol_page, protocol_schema
from tools_reference import tools_page

_DOCS = Path(__file__).resolve().parents[1] / "docs"


def reference_pages(docs: Path) -> dict[Path, str]:
    """Each file with its expected text. The introductions in the same folder are written by hand."""
    schema = protocol_schema()
    as_json = msgspec.json.format(msgspec.json.encode(schema), indent=2).decode()
    return {
        docs / "protocol.json": as_json + "\n",
        docs / "protocol.md": protocol_page(schema, _read(docs / "protocol_intro.md")),
        docs / "tools.md": tools_page(_read(docs / "tools_intro.md")),
    }


def main(arguments: list[str], docs: Path = _DOCS) -> int:
    outdated = {file: text for file, text in reference_pages(docs).items() if not file.exists() or _read(file) != text}
    if "--check" in arguments:
        for file in outdated:
            sys.stderr.write(f"{file} is not current: run `make docs`\n")
        return 1 if outdated else 0
    for file, text in outdated.items():
        file.write_text(text, encoding="utf-8")
    return 0


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
