"""Texts and their translations: `update` brings the catalogues up to the code, `compile` makes what Errand reads.

`python packaging/catalogues.py [update [LANGUAGE …]]`; without arguments the catalogues are compiled only. A new
language begins with an empty catalogue. setup.py compiles when Errand is installed.
"""

import ast
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

_ROOT = Path(__file__).resolve().parents[1]
_CODE = _ROOT / "app" / "errand"
_LOCALE = _ROOT / "resources" / "locale"
_WIDTH = 110
_HEADER = "# Translations of Errand. The texts come from the code: `make catalogues` brings them up to date."
# Modules with texts: calls of errand.text.translation, how tools are shown, and the declarations of the command line.
_IMPORTS = (
    "from errand.text.translation import",
    "from errand.cli.options import",
    "from errand.cli.command import",
    "CallDisplay(",
    "_setting(",
)


def catalogue_file(language: str) -> Path:
    return _LOCALE / language / "LC_MESSAGES" / "errand.po"


def languages() -> list[str]:
    return sorted(file.parents[1].name for file in _LOCALE.glob("*/LC_MESSAGES/errand.po"))


def extract() -> Catalog:
    """All texts of the code, each with the files that have it."""
    catalogue = Catalog(project="Errand")
    for file in sorted(_CODE.rglob("*.py")):
        code = file.read_text(encoding="utf-8")
        if any(line in code for line in _IMPORTS):
            for text in _texts_in(ast.parse(code)):
                catalogue.add(text, None, [(file.relative_to(_ROOT).as_posix(), 0)])
    return catalogue


def _texts_in(code: ast.Module) -> Iterator[str | tuple[str, str]]:
    """Literals alone: what a variable holds is marked where it is written."""
    for call in ast.walk(code):
        match call:
            case ast.Call(ast.Name("trn"), [ast.Constant(str(singular)), ast.Constant(str(plural)), *_]):
                yield singular, plural
            case ast.Call(ast.Name("tr" | "marked" | "Group"), [ast.Constant(str(text)), *_]):
                yield text
            case ast.Call(ast.Name("_setting"), [ast.Constant(str(title)), ast.Constant(str(about))]):
                yield from (title, about)
            case ast.Call(ast.Name("CallDisplay"), [], keywords):
                yield from _literals(keyword.value for keyword in keywords if keyword.arg in ("running", "done"))
            case ast.Call(
                ast.Name("Entry" | "Action" | "Argument" | "Option" | "Flag"), [_, ast.Constant(str(text)), *_]
            ):
                yield text
            case _:
                pass


def _literals(values: Iterable[ast.expr]) -> Iterator[str]:
    """The texts of expressions such as `"read" if is_read else "listed"`."""
    plain_values = (value for value in values if not isinstance(value, ast.JoinedStr))
    for part in (part for value in plain_values for part in ast.walk(value)):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value


def read(language: str) -> Catalog:
    """The catalogue of a language, empty if it has none."""
    file = catalogue_file(language)
    if not file.exists():
        return Catalog(locale=language, project="Errand", header_comment=_HEADER, fuzzy=False)
    with file.open("rb") as stream:
        return read_po(stream, locale=language)


def texts(catalogue: Catalog) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Its texts, one or two forms each, and their translations."""
    return {_forms(message.id): _forms(message.string) for message in catalogue if message.id}


def _forms(text: "str | list[str] | tuple[str, ...] | None") -> tuple[str, ...]:
    return (text or "",) if isinstance(text, str | None) else tuple(text)


def update(language: str, template: Catalog) -> None:
    """Add the new texts of the code without a translation, and drop those that left it."""
    catalogue = read(language)
    catalogue.update(template, no_fuzzy_matching=True, update_header_comment=False, update_creation_date=False)
    catalogue.obsolete.clear()
    file = catalogue_file(language)
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        write_po(stream, catalogue, width=_WIDTH, sort_output=True, include_lineno=False)


def compile_all() -> None:
    """Each is replaced in one step, since Errand may read it at this moment."""
    for language in languages():
        file = catalogue_file(language).with_suffix(".mo")
        part = file.with_name(f"{file.name}.{os.getpid()}")
        with part.open("wb") as stream:
            write_mo(stream, read(language))
        os.replace(part, file)


def main() -> int:
    if sys.argv[1:2] == ["update"]:
        template = extract()
        for language in sys.argv[2:] or languages():
            update(language, template)
            translations = texts(read(language)).values()
            missing = sum(not all(forms) for forms in translations)
            sys.stdout.write(f"{language}: {len(translations)} texts, {missing} without a translation\n")
    compile_all()
    return 0


if __name__ == "__main__":
    sys.exit(main())
