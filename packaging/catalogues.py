"""Texts and their translations: `update` brings the catalogues up to the code, `compile` makes what Errand reads.

`python packaging/catalogues.py [update [LANGUAGE …]]`; without arguments the catalogues are compiled only. A new
language begins with an empty catalogue. setup.py compiles when Errand is installed.
"""

import sys
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_file
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

_ROOT = Path(__file__).resolve().parents[1]
_CODE = _ROOT / "app" / "errand"
_LOCALE = _ROOT / "resources" / "locale"
_WIDTH = 110
_HEADER = "# Translations of Errand. The texts come from the code: `make catalogues` brings them up to date."
_IMPORT = "from errand.translation import"
# The functions of errand/translation.py, with the numbers of the arguments that are texts.
_KEYWORDS: dict[str, tuple[int, ...] | None] = {"tr": None, "marked": None, "trn": (1, 2)}


def catalogue_file(language: str) -> Path:
    return _LOCALE / language / "LC_MESSAGES" / "errand.po"


def languages() -> list[str]:
    return sorted(file.parents[1].name for file in _LOCALE.glob("*/LC_MESSAGES/errand.po"))


def extract() -> Catalog:
    """All texts of the code, each with the files that have it."""
    catalogue = Catalog(project="Errand")
    for file in sorted(_CODE.rglob("*.py")):
        if _IMPORT not in file.read_text(encoding="utf-8"):
            continue
        place = file.relative_to(_ROOT).as_posix()
        for _line, message, comments, context in extract_from_file(
            "python", file, keywords=_KEYWORDS, comment_tags=("Translators:",)
        ):
            catalogue.add(message, None, [(place, 0)], auto_comments=comments, context=context)
    return catalogue


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
    for language in languages():
        with catalogue_file(language).with_suffix(".mo").open("wb") as stream:
            write_mo(stream, read(language))


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
