"""The content of a backup, and that a restore writes nothing elsewhere."""

import io
import tarfile
from pathlib import Path

import msgspec

from errand.cli.recovery.backup import BackupContents, unpack_database, unpack_rest, write_backup
from errand.system.paths import Paths


def home(folder: Path) -> Paths:
    paths = Paths(folder)
    paths.prepare()
    return paths


def filled(folder: Path) -> Paths:
    paths = home(folder)
    (paths.attachments / "a1").mkdir()
    (paths.attachments / "a1" / "my photo.png").write_bytes(b"picture")
    (paths.keys / "secret").write_text("key")
    paths.settings.write_text('{"theme": "dark"}')
    return paths


def test_backup_restores_pictures_and_settings_and_never_contains_keys(tmp_path: Path) -> None:
    old, new = filled(tmp_path / "old"), home(tmp_path / "new")
    (tmp_path / "copy.db").write_bytes(b"database" * 100_000)
    backup = tmp_path / "backup.tar"
    assert write_backup(tmp_path / "copy.db", old, backup) == BackupContents(1, True)
    assert backup.stat().st_mode & 0o777 == 0o600
    with tarfile.open(backup) as archive:
        assert archive.getnames() == ["errand.db", "settings.json", "attachments/a1/my photo.png"]
    assert unpack_database(backup, tmp_path / "unpacked.db")
    assert (tmp_path / "unpacked.db").read_bytes() == (tmp_path / "copy.db").read_bytes()
    new.settings.write_text("{}")
    assert unpack_rest(backup, new, new.copies / "before.json") == BackupContents(1, True)
    assert msgspec.json.decode(new.settings.read_bytes()) == {"theme": "dark"}
    assert (new.copies / "before.json").read_text() == "{}"
    assert (new.attachments / "a1" / "my photo.png").read_bytes() == b"picture"
    assert unpack_rest(backup, new, new.copies / "again.json") == BackupContents(0, True)


def test_paths_outside_links_and_unknown_members_are_ignored(tmp_path: Path) -> None:
    paths = home(tmp_path / "home")
    backup = tmp_path / "hostile.tar"
    names = ("../evil", "/tmp/evil", "attachments/../../evil", "attachments/a/..", "attachments/a/b/c", "keys/secret")
    with tarfile.open(backup, "w") as archive:
        for name in (*names, "run/engine.json", "errand.db/x"):
            member = tarfile.TarInfo(name)
            member.size = 4
            archive.addfile(member, io.BytesIO(b"evil"))
        for name in ("settings.json", "errand.db", "attachments/a/link.png"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
            archive.addfile(link)
    before = sorted(tmp_path.rglob("*"))
    assert not unpack_database(backup, tmp_path / "unpacked.db")
    assert unpack_rest(backup, paths, paths.copies / "kept.json") == BackupContents(0, False)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_backup_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    paths = home(tmp_path / "home")
    target = tmp_path / "backup.tar"
    try:
        write_backup(tmp_path / "no such copy.db", paths, target)
    except OSError as error:
        assert error.filename == str(tmp_path / "no such copy.db")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["home"]
