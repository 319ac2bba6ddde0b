"""The libraries that are installed with Errand, and their licences."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_string
from email.message import Message
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from importlib.resources import files
from typing import NamedTuple

OURS = "errand-desktop"

# Those that people install.
_EXTRAS = frozenset(("browser", "memory", "postgres", "vectors"))
_FILE = re.compile(r"(?i)^(licen[cs]e|copying|notice|authors)")
_INFO = ".dist-info"
# Their wheels have no texts.
_OF_QT = ("pyside6", "shiboken6")
_MAX_NAME_LENGTH = 60
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
    """Errand, all that it requires and that is installed here, its icons and the font of formulas; by name.

    Reads some hundred files.
    """
    installed: dict[str, _Installed] = {}
    pending, seen = [(OURS, _EXTRAS)], set[tuple[str, frozenset[str]]]()
    while pending:
        name, extras = pending.pop()
        package = installed.get(name) or _installed(name)
        if package is None or (name, extras) in seen:
            continue
        seen.add((name, extras))
        installed[name] = package
        pending += _required(package, extras)
    icons = (files("errand.resources") / "icons" / "LICENSE").read_text(encoding="utf-8")
    font = (files("errand.resources") / "licences" / "OFL-1.1.txt").read_text(encoding="utf-8")
    own = (Library("Lucide icons", "", "ISC", (icons,)), Library("STIX Two Math", "", "OFL-1.1", (font,)))
    return tuple(sorted((*own, *map(_library, installed.values())), key=lambda one: one.name.lower()))


class _Installed(NamedTuple):
    """A library, and what it says of itself, which is parsed anew each time it is asked for."""

    files: Distribution
    metadata: Message

    def field(self, name: str) -> str:
        return str(self.metadata[name]) if name in self.metadata else ""

    def fields(self, name: str) -> list[str]:
        return [str(value) for value in self.metadata.get_all(name) or ()]


def _installed(name: str) -> _Installed | None:
    try:
        package = distribution(name)
    except PackageNotFoundError:
        return None  # of another platform, or an extra that is not installed
    text = package.read_text("METADATA") or package.read_text("PKG-INFO") or ""
    # What follows the fields is a page that describes the library, which takes longest to parse.
    return _Installed(package, message_from_string(text.partition("\n\n")[0]))


def _required(one: _Installed, extras: frozenset[str]) -> list[tuple[str, frozenset[str]]]:
    """Names with extras: what a library requires on this machine. Some may not be installed."""
    from packaging.requirements import Requirement  # not there while the package is built
    from packaging.utils import canonicalize_name

    rows = map(Requirement, one.fields("Requires-Dist"))
    return [
        (canonicalize_name(row.name), frozenset(row.extras))
        for row in rows
        if row.marker is None or any(row.marker.evaluate({"extra": extra}) for extra in ("", *extras))
    ]


def _library(one: _Installed) -> Library:
    name = one.field("Name")
    texts = [(one.files.read_text(file) or "").strip() for file in _licence_files(one.files)]
    if not any(texts) and name.lower().startswith(_OF_QT):
        folder = files("errand.resources") / "licences"
        texts = [(folder / f"{licence}.txt").read_text(encoding="utf-8") for licence in ("LGPL-3.0", "GPL-3.0")]
    licence_texts = tuple(filter(None, texts))
    return Library(name, one.field("Version"), _licence(one, licence_texts), licence_texts)


def _licence_files(one: Distribution) -> Iterator[str]:
    """Below the folder of its metadata; from the list of its files, which has one a line."""
    for line in (one.read_text("RECORD") or "").splitlines():
        folder, _, rest = line.partition("/")
        file = rest.partition(",")[0].strip('"')
        if folder.endswith(_INFO) and _FILE.match(file.rpartition("/")[2]):
            yield file


def _licence(one: _Installed, texts: tuple[str, ...]) -> str:
    """Return what is declared: an SPDX expression, a short name, or a classifier; else what the text begins with."""
    for declared in (one.field("License-Expression"), one.field("License")):
        if declared and "\n" not in declared and len(declared) <= _MAX_NAME_LENGTH:
            return declared
    classifiers = [line for line in one.fields("Classifier") if line.startswith(_CLASSIFIER)]
    if classifiers:
        return ", ".join(line.rpartition(" :: ")[2] for line in classifiers)
    described = " ".join(" ".join((one.field("License"), *texts)).split())
    return next((name for name, beginning in _BEGINNINGS if beginning.lower() in described.lower()), "")
