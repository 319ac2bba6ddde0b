"""`errand backup`: conversations, attachments and settings in one tar file, without keys."""

import asyncio
import errno
import os
import re
import sqlite3
import tarfile
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from typing import IO, Annotated

import msgspec

from errand.cli.arguments import UsageError
from errand.cli.command import Command
from errand.cli.exit_codes import CommandError
from errand.cli.options import CommandOptions, Option
from errand.cli.output import CommandOutput
from errand.cli.recovery.database_server import refuse_server
from errand.client.number_format import file_size
from errand.protocol.base import JsonObject
from errand.system.database_file import copy_database, find_fault, open_to_read
from errand.system.paths import Paths
from errand.system.regular_file import atomic_writer, check_replaceable, open_regular, read_regular
from errand.text.redaction import redact, redact_json
from errand.text.translation import marked, tr, trn
from errand.text.url_secrets import without_url_secrets

_DATABASE, _SETTINGS = "errand.db", "settings.json"
_PICTURE = re.compile(r"attachments/([\w-]{1,100})/([^/\0]{1,255})")
_CHUNK_BYTES = 1024 * 1024
_MAX_SETTINGS_BYTES = 1024 * 1024
# Destinations of keys and conversations: a person chooses them on each machine.
_ADDRESSES = ("default_api_base", "proxy_url", "model_servers", "database_url", "ca_file")


@dataclass(frozen=True, slots=True)
class BackupContents:
    """The content besides the database. `left_out` names address settings that differ from this machine's."""

    pictures: int
    has_settings: bool
    left_out: tuple[str, ...] = ()


def write_backup(database: Path, paths: Paths, target: Path) -> BackupContents:
    """Write the copy `database` and its files into `target`, which appears once it is complete. Raises OSError."""
    pictures = [file for file in sorted(paths.attachments.glob("*/*")) if file.is_file() and not file.is_symlink()]
    has_settings = paths.settings.is_file()
    with atomic_writer(target, overwrite=False) as file, tarfile.open(fileobj=file, mode="w") as archive:
        archive.add(database, _DATABASE)
        if has_settings:
            _add_settings(paths, archive)
        for picture in pictures:
            archive.add(picture, f"attachments/{picture.parent.name}/{picture.name}")
    return BackupContents(len(pictures), has_settings)


def _add_settings(paths: Paths, archive: tarfile.TarFile) -> None:
    """Add the settings without passwords and keys."""
    data = read_regular(paths.settings, _MAX_SETTINGS_BYTES)
    with suppress(OSError):  # no JSON: as they are, and the engine says what is wrong with them
        data = _without_secrets(_settings(data))
    member = archive.gettarinfo(paths.settings, _SETTINGS)
    member.size = len(data)
    archive.addfile(member, BytesIO(data))


def _keep_settings(paths: Paths, to: Path) -> None:
    """Move the settings; the passwords in their addresses stay where they are used, in the restored ones."""
    try:
        clean = _without_secrets(_settings(read_regular(paths.settings, _MAX_SETTINGS_BYTES)))
    except OSError:
        os.replace(paths.settings, to)
        return
    _copy(BytesIO(clean), to)
    paths.settings.unlink()


def _without_secrets(settings: JsonObject) -> bytes:
    clean = redact_json(settings, lambda text: redact(without_url_secrets(text)))
    return msgspec.json.format(msgspec.json.encode(clean), indent=2)


@contextmanager
def open_backup(file: Path) -> Generator[tarfile.TarFile]:
    """Open a backup. Refuses compression, which could expand beyond any limit. Raises OSError or TarError."""
    with open_regular(file) as opened, tarfile.open(fileobj=opened, mode="r:") as archive:
        yield archive


def unpack_database(backup: Path, to: Path) -> bool:
    """Unpack the database; returns False if the backup has none. Raises OSError or tarfile.TarError."""
    with open_backup(backup) as archive:
        for member in archive:
            if member.name == _DATABASE and _is_plain_file(member):
                _copy(_open_member(archive, member), to)
                return True
    return False


def unpack_rest(backup: Path, paths: Paths, kept_settings: Path) -> BackupContents:
    """Restore missing pictures, and the settings; the current settings move to `kept_settings`.

    Keeps the addresses of the current settings. Reads only the names that a backup uses, so that no file is written
    elsewhere. Raises OSError or tarfile.TarError.
    """
    pictures, has_settings, left_out = 0, False, ()
    with open_backup(backup) as archive:
        for member in _files(archive):
            match = _PICTURE.fullmatch(member.name)
            if match is not None and match[2] not in (".", ".."):
                picture = paths.attachments / match[1] / match[2]
                if not picture.exists():
                    picture.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    _copy(_open_member(archive, member), picture)
                    pictures += 1
            elif member.name == _SETTINGS and member.size <= _MAX_SETTINGS_BYTES:
                settings, left_out = _with_local_addresses(_settings(_open_member(archive, member).read()), paths)
                if paths.settings.exists():
                    _keep_settings(paths, kept_settings)
                _copy(BytesIO(msgspec.json.format(msgspec.json.encode(settings), indent=2)), paths.settings)
                has_settings = True
    return BackupContents(pictures, has_settings, left_out)


def _settings(data: bytes) -> JsonObject:
    try:
        return msgspec.json.decode(data, type=JsonObject)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise OSError(errno.EINVAL, tr("its settings cannot be read ({error})").format(error=error)) from error


def _with_local_addresses(settings: JsonObject, paths: Paths) -> tuple[JsonObject, tuple[str, ...]]:
    """Return the settings with this machine's addresses, and the names of the addresses that differed."""
    try:
        present = _settings(read_regular(paths.settings, _MAX_SETTINGS_BYTES))
    except OSError:
        present = JsonObject()
    others = tuple(name for name in _ADDRESSES if settings.get(name) and settings[name] != present.get(name))
    rest = {name: value for name, value in settings.items() if name not in _ADDRESSES}
    return rest | {name: present[name] for name in _ADDRESSES if name in present}, others


def _files(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    return (member for member in archive if _is_plain_file(member))


def _is_plain_file(member: tarfile.TarInfo) -> bool:
    """Return False for a sparse file too, which could need more space than the backup."""
    return member.isfile() and not member.issparse()


def _open_member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = archive.extractfile(member)
    assert file is not None, "it is a file"
    return file


def _copy(source: IO[bytes], to: Path) -> None:
    with source, atomic_writer(to, overwrite=True) as target:
        while chunk := source.read(_CHUNK_BYTES):
            target.write(chunk)


class BackupOptions(CommandOptions, frozen=True, kw_only=True):
    to: Annotated[
        str, Option("--to", "a file or a folder (default: the folder `copies` in the data directory)", "PATH")
    ] = ""


async def backup(options: BackupOptions, paths: Paths, output: CommandOutput) -> int:
    """Never overwrites a file."""
    refuse_server(paths, "pg_dump --format=custom --file=errand.dump")
    if not paths.database.exists():
        raise UsageError(
            tr("There is nothing to back up: {database} does not exist yet.").format(database=paths.database)
        )
    target = _target(options.to or None, paths)
    copy = target.with_name(f".{target.name}.db")
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        await asyncio.to_thread(copy_database, paths.database, copy)
        wrong, conversations = await asyncio.to_thread(_inspect, copy)
        contents = await asyncio.to_thread(write_backup, copy, paths, target)
    except (OSError, sqlite3.Error) as error:
        text = tr("no backup was made: {error}. Nothing was changed.")
        raise CommandError(text.format(error=error)) from error
    finally:
        copy.unlink(missing_ok=True)
    if wrong:
        text = tr("{target} was written, but the database is damaged: {wrong}. Run: errand doctor --repair")
        raise CommandError(text.format(target=target, wrong=wrong))
    size = target.stat().st_size
    written = tr("{target}: {conversations}, {st_size}, complete.").format(
        target=target, conversations=_contents_text(conversations, contents), st_size=file_size(size)
    )
    output.result(
        {"file": str(target), "bytes": size, "conversations": conversations, "pictures": contents.pictures},
        written,
        tr("Keys, long output and workspaces are not included; they are in {home}.").format(home=paths.home),
        tr("Restore it: errand restore {target}").format(target=target),
    )
    return 0


BACKUP = Command(BackupOptions, backup, json_help=marked("print what was written as one JSON object"))


def _contents_text(conversations: int, contents: BackupContents) -> str:
    settings = tr(" and your settings") if contents.has_settings else ""
    stored = trn("{n} conversation", "{n} conversations", conversations)
    return f"{stored}, {trn('{n} picture', '{n} pictures', contents.pictures)}{settings}"


def _target(path: str | None, paths: Paths) -> Path:
    name = f"errand-backup-{datetime.now(UTC):%Y%m%dT%H%M%S}.tar"
    if path is None:
        return paths.copies / name
    target = Path(os.path.expanduser(path)).absolute()
    if target.is_dir():
        target = target / name
    try:
        check_replaceable(target, overwrite=False)
    except FileExistsError as error:
        raise UsageError(tr("{target} already exists. Use another name.").format(target=target)) from error
    except OSError as error:
        raise UsageError(
            tr("{target} cannot be written: {strerror}. Use another name.").format(
                target=target, strerror=error.strerror
            )
        ) from error
    return target


def _inspect(file: Path) -> tuple[str, int]:
    wrong = find_fault(file)
    with closing(open_to_read(file)) as connection:
        (conversations,) = connection.execute("SELECT count(*) FROM conversations").fetchone()
        return wrong, int(conversations)
