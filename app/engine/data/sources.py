"""What an import reads: a file that Errand exported, or conversations of other programs in a file, a zip or a folder.

Synchronous: meant for a thread. One conversation at a time is in memory.
"""

import zipfile
from collections import Counter
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

from app.engine.data.foreign.archive import open_archive
from app.engine.data.foreign.documents import documents
from app.engine.data.foreign.formats import HEAD, PROGRAMS, format_of
from app.engine.data.foreign.intake import Asset, Intake
from app.engine.data.foreign.settling import settled_in
from app.engine.data.reading import Arrival, ExportReader
from app.engine.errors import InvalidParams
from app.engine.tools.plain_text import tidy_name
from app.engine.tools.walk import LONGEST_S, TooLong, walk
from app.paths import Paths
from app.regular_file import open_regular, read_regular

ERRAND = "Errand"
_OURS = b'{"errand_export"'
_MOST_FILES = 100_000
_LARGEST_ASSET = 10 * 1024 * 1024
_UNKNOWN = (
    f"it is not a file that Errand exported, nor conversations of {', '.join(PROGRAMS[:-1])} or {PROGRAMS[-1]} "
    "in a form that is known here"
)


@dataclass(frozen=True, slots=True)
class Found:
    """A conversation and the program that wrote it. `home` is the data folder that an Errand's own export came from."""

    program: str
    arrival: Arrival
    home: str = ""


@dataclass(slots=True)
class Sources:
    """`left` counts what was not taken so far, by kind in plain words."""

    paths: Paths
    left: Counter[str] = field(default_factory=Counter[str])

    def of(self, path: Path) -> Generator[Found]:
        """`InvalidParams` says what is wrong with a file; in a folder such a file is only counted."""
        if path.is_dir():
            yield from self._of_folder(path)
            return
        with open_regular(path) as file:
            if zipfile.is_zipfile(file):
                yield from self._of_zip(file)
            else:
                file.seek(0)
                yield from self._of_file(file, tidy_name(path.stem), _beside(path.parent), must=True)

    def _of_folder(self, folder: Path) -> Iterator[Found]:
        found = (Path(entry.path) for _, entry in walk(folder, lambda: False) if ".json" in entry.name)
        try:
            files = sorted(islice((file for file in found if file.is_file()), _MOST_FILES + 1))
        except TooLong as error:
            raise InvalidParams(f"looking through it takes more than {LONGEST_S:g} s") from error
        if len(files) > _MOST_FILES:
            raise InvalidParams(f"there are more than {_MOST_FILES:,} files in it")
        if not files:
            raise InvalidParams("there is no .json or .jsonl file in it")
        for path in files:
            try:
                with open_regular(path) as file:
                    yield from self._of_file(file, tidy_name(path.stem), _beside(path.parent), must=False)
            except (InvalidParams, OSError):
                self.left["files that cannot be read to their end"] += 1

    def _of_zip(self, file: IO[bytes]) -> Iterator[Found]:
        with open_archive(file) as archive:
            self.left["other files"] += archive.others()
            is_empty = True
            for name in archive.names():
                with archive.unpacked(name, self.paths.home) as member:
                    for found in self._of_file(member, Path(name).stem, archive.asset, must=False):
                        is_empty = False
                        yield found
            if is_empty:
                raise InvalidParams(f"{_UNKNOWN}; neither is any file in the zip")

    def _of_file(self, file: IO[bytes], name: str, asset: Asset, *, must: bool) -> Iterator[Found]:
        head = file.read(HEAD)
        file.seek(0)
        form = format_of(head)
        if head.startswith(_OURS):
            reader = ExportReader(file, self.paths.attachments)
            while (arrival := reader.next()) is not None:
                yield Found(ERRAND, arrival, reader.home)
        elif form is None and must:
            raise InvalidParams(_UNKNOWN)
        elif form is None:
            self.left["other files"] += 1
        else:
            intake = Intake(self.paths.attachments, asset, self.left)
            for foreign in form.read(documents(file, form.shape), intake):
                foreign.source_id = foreign.source_id or name
                if not foreign.nodes:
                    intake.skip("empty conversations")
                    continue
                try:
                    yield Found(form.program, Arrival(settled_in(foreign, form.program, self.paths), 0))
                except InvalidParams:
                    intake.skip("conversations whose messages are in a circle")


def _beside(folder: Path) -> Asset:
    """The files that lie beside an export that was unpacked, in one of its folders at most."""
    names: dict[str, Path] = {}

    def find(beginning: str) -> bytes | None:
        if not names:
            names.update({file.name: file for file in (*folder.glob("*.*"), *folder.glob("*/*.*"))})
        found = next((file for name, file in names.items() if beginning and name.startswith(beginning)), None)
        try:
            return read_regular(found, _LARGEST_ASSET) if found is not None else None
        except OSError:
            return None

    return find
