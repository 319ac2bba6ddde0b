"""The libraries that are installed with Errand, and their licences."""

import re
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files

OURS = "errand-desktop"

# Those that people install.
_EXTRAS = frozenset(("browser", "memory", "postgres", "vectors"))
_FILE = re.compile(r"(?i)^(licen[cs]e|copying|notice|authors)")
_INFO = ".dist-info"
# Their wheels have no texts.
_OF_QT = ("pyside6", "shiboken6")
_LONGEST_NAME = 60
_CLASSIFIER = "License :: "
# As the whole text of a licence begins, of libraries that declare nothing shorter.
_BEGINNINGS = (
    ("MIT", "Permission is hereby granted, free of charge"),
    ("Apache-2.0", "Apache License"),
    ("BSD", "Redistribution and use in source and binary forms"),
    ("MPL-2.0", "Mozilla Public License Version 2.0"),
)


@dataclass(frozen=True, slots=True)
class Library:
    """`licence` is what the library declares, empty if nothing does; `texts` are its licence files."""

    name: str
    version: str
    licence: str
    texts: tuple[str, ...] = ()


def libraries() -> tuple[Library, ...]:
    """Errand, all that it requires and that is installed here, and its icons; by name. Reads some hundred files."""
    found: dict[str, Distribution] = {}
    wanted, seen = [(OURS, _EXTRAS)], set[tuple[str, frozenset[str]]]()
    while wanted:
        name, extras = wanted.pop()
        one = _installed(name)
        if one is None or (name, extras) in seen:
            continue
        seen.add((name, extras))
        found[name] = one
        wanted += _required(one, extras)
    icons = (files("errand.resources") / "icons" / "LICENSE").read_text(encoding="utf-8")
    own = Library("Lucide icons", "", "ISC", (icons,))
    return tuple(sorted((own, *map(_library, found.values())), key=lambda one: one.name.lower()))


def _required(one: Distribution, extras: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    """Names with extras: what a library requires on this machine. Some may not be installed."""
    from packaging.requirements import Requirement  # not there while the package is built
    from packaging.utils import canonicalize_name

    rows = map(Requirement, one.requires or ())
    return [
        (canonicalize_name(row.name), frozenset(row.extras))
        for row in rows
        if row.marker is None or any(row.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None  # of another platform, or an extra that is not installed


def _library(one: Distribution) -> Library:
    name = one.metadata["Name"]
    texts = [_text(one, str(file)) for file in one.files or () if _FILE.match(file.name) and _INFO in file.parts[0]]
    if not any(texts) and name.lower().startswith(_OF_QT):
        folder = files("errand.resources") / "licences"
        texts = [(folder / f"{licence}.txt").read_text(encoding="utf-8") for licence in ("LGPL-3.0", "GPL-3.0")]
    kept = tuple(filter(None, texts))
    return Library(name, one.version, _licence(one, kept), kept)


def _text(one: Distribution, file: str) -> str:
    return (one.read_text(file.partition("/")[2]) or "").strip()


def _field(one: Distribution, name: str) -> str:
    return str(one.metadata[name]) if name in one.metadata else ""


def _licence(one: Distribution, texts: tuple[str, ...]) -> str:
    """What is declared: an SPDX expression, a short name, or a classifier; else what the text begins with."""
    for declared in (_field(one, "License-Expression"), _field(one, "License")):
        if declared and "\n" not in declared and len(declared) <= _LONGEST_NAME:
            return declared
    classifiers = [line for line in one.metadata.get_all("Classifier") or () if line.startswith(_CLASSIFIER)]
    if classifiers:
        return ", ".join(line.rpartition(" :: ")[2] for line in classifiers)
    whole = " ".join(" ".join((_field(one, "License"), *texts)).split())
    return next((name for name, beginning in _BEGINNINGS if beginning.lower() in whole.lower()), "")
