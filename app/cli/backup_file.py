"""A backup as a file: a tar with the database, the attached pictures and the settings. Keys are never in it."""

import errno
import os
import re
import tarfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO

import msgspec

from app.paths import Paths
from app.protocol.json import JsonObject
from app.regular_file import open_regular, read_regular, written_whole

_DATABASE, _SETTINGS = "errand.db", "settings.json"
_PICTURE = re.compile(r"attachments/([\w-]{1,100})/([^/\0]{1,255})")
_PIECE = 1024 * 1024
_LARGEST_SETTINGS = 1024 * 1024
# Where keys and conversations go: a person chooses that on each machine.
_ADDRESSES = ("default_api_base", "proxy_url", "model_servers", "database_url")


@dataclass(frozen=True, slots=True)
class Contents:
    """What was put in beside the database. `left_out` names settings with addresses that were not chosen here."""

    pictures: int
    has_settings: bool
    left_out: tuple[str, ...] = ()


def write_backup(database: Path, paths: Paths, target: Path) -> Contents:
    """Put the copy `database` and what belongs to it into `target`, which appears when it is whole. Raises OSError."""
    pictures = [file for file in sorted(paths.attachments.glob("*/*")) if file.is_file() and not file.is_symlink()]
    has_settings = paths.settings.is_file()
    with written_whole(target, overwrite=False) as file, tarfile.open(fileobj=file, mode="w") as archive:
        archive.add(database, _DATABASE)
        if has_settings:
            archive.add(paths.settings, _SETTINGS)
        for picture in pictures:
            archive.add(picture, f"attachments/{picture.parent.name}/{picture.name}")
    return Contents(len(pictures), has_settings)


@contextmanager
def open_backup(file: Path) -> Generator[tarfile.TarFile]:
    """A backup to read. Never packed, so that none unpacks to more than it is. Raises OSError or tarfile.TarError."""
    with open_regular(file) as opened, tarfile.open(fileobj=opened, mode="r:") as archive:
        yield archive


def unpack_database(backup: Path, to: Path) -> bool:
    """False where the file has no database of that name. Raises OSError or tarfile.TarError."""
    with open_backup(backup) as archive:
        for member in archive:
            if member.name == _DATABASE and _is_whole_file(member):
                _copy(_opened(archive, member), to)
                return True
    return False


def unpack_rest(backup: Path, paths: Paths, kept_settings: Path) -> Contents:
    """Put back the pictures that are not there, and the settings; the present ones go to `kept_settings`.

    Addresses stay those of the present settings. Only names that a backup has are looked at, so that nothing lands
    elsewhere. Raises OSError or tarfile.TarError.
    """
    pictures, has_settings, left_out = 0, False, ()
    with open_backup(backup) as archive:
        for member in _files(archive):
            place = _PICTURE.fullmatch(member.name)
            if place is not None and place[2] not in (".", ".."):
                picture = paths.attachments / place[1] / place[2]
                if not picture.exists():
                    picture.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    _copy(_opened(archive, member), picture)
                    pictures += 1
            elif member.name == _SETTINGS and member.size <= _LARGEST_SETTINGS:
                settings, left_out = _with_own_addresses(_settings(_opened(archive, member).read()), paths)
                if paths.settings.exists():
                    os.replace(paths.settings, kept_settings)
                _copy(BytesIO(msgspec.json.format(msgspec.json.encode(settings), indent=2)), paths.settings)
                has_settings = True
    return Contents(pictures, has_settings, left_out)


def _settings(data: bytes) -> JsonObject:
    try:
        return msgspec.json.decode(data, type=JsonObject)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OSError(errno.EINVAL, f"the settings in it cannot be read ({error})") from error


def _with_own_addresses(settings: JsonObject, paths: Paths) -> tuple[JsonObject, tuple[str, ...]]:
    """The settings with the addresses that are set here, and the names of those that were others."""
    try:
        present = _settings(read_regular(paths.settings, _LARGEST_SETTINGS))
    except OSError:
        present = JsonObject()
    others = tuple(name for name in _ADDRESSES if settings.get(name) and settings[name] != present.get(name))
    rest = {name: value for name, value in settings.items() if name not in _ADDRESSES}
    return rest | {name: present[name] for name in _ADDRESSES if name in present}, others


def _files(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    return (member for member in archive if _is_whole_file(member))


def _is_whole_file(member: tarfile.TarInfo) -> bool:
    """Not one with holes, which takes more room than the backup has."""
    return member.isfile() and not member.issparse()


def _opened(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(member)
    assert file is not None, "it is a file"
    return file


def _copy(source: IO[bytes], to: Path) -> None:
    with source, written_whole(to, overwrite=True) as target:
        while piece := source.read(_PIECE):
            target.write(piece)
