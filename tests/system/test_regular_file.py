import errno
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from errand.system.paths import Paths
from errand.system.regular_file import (
    FileTooLarge,
    NotRegularFile,
    atomic_writer,
    check_write_path,
    open_regular,
    read_beginning,
    read_regular,
    real_path,
)


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))


def link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


NO_FILES = (
    (fifo, "it is a named pipe, not a file"),
    (folder, "it is a folder, not a file"),
    (unix_socket, "it is a socket, not a file"),
    (link_to_a_pipe, "it is a named pipe, not a file"),
)


@pytest.mark.parametrize(("make", "reason"), NO_FILES)
def test_what_is_no_regular_file_is_never_opened(make: Callable[[Path], None], reason: str, tmp_path: Path) -> None:
    make(tmp_path / "odd")
    with pytest.raises(NotRegularFile) as refused:
        open_regular(tmp_path / "odd")
    assert refused.value.strerror == reason


@pytest.mark.parametrize("make", [make for make, _ in NO_FILES])
def test_what_is_no_regular_file_is_never_replaced(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path / "odd")
    before = os.lstat(tmp_path / "odd")
    with pytest.raises(NotRegularFile), atomic_writer(tmp_path / "odd", overwrite=True):
        raise AssertionError("nothing may be written")
    assert os.path.samestat(before, os.lstat(tmp_path / "odd"))


def test_a_device_is_no_file() -> None:
    with pytest.raises(NotRegularFile) as refused:
        read_regular(Path(os.devnull), 10)
    assert refused.value.strerror == "it is a device, not a file"


def test_a_link_is_followed_to_read_where_the_caller_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert read_regular(tmp_path / "link", 10) == b"text"
    with pytest.raises(NotRegularFile, match="it is a link"):
        read_regular(tmp_path / "link", 10, follow_links=False)


def test_a_link_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(NotRegularFile, match="it is a link"), atomic_writer(tmp_path / "link", overwrite=True):
        raise AssertionError("nothing may be written")
    assert (tmp_path / "file").read_bytes() == b"text"


def test_a_file_is_read_up_to_its_bound(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_regular(tmp_path / "file", 10) == b"0123456789"
    assert read_beginning(tmp_path / "file", 4) == b"0123"
    with pytest.raises(FileTooLarge, match="it is larger than 9 bytes"):
        read_regular(tmp_path / "file", 9)


def test_a_file_of_the_kernel_that_is_said_to_be_empty_is_bounded_too() -> None:
    file = Path("/proc/self/maps")
    if not file.exists():
        pytest.skip("only Linux has such files")
    assert file.stat().st_size == 0 and read_beginning(file, 100_000)
    with pytest.raises(FileTooLarge):
        read_regular(file, 100)


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
def test_a_name_that_no_file_can_have_is_an_error_of_the_system(name: str) -> None:
    with pytest.raises(OSError) as refused:
        open_regular(Path(name))
    assert refused.value.errno == errno.EINVAL


def test_a_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), atomic_writer(tmp_path / "file", overwrite=False) as file:
        file.write(b"half")
        raise RuntimeError
    assert not list(tmp_path.iterdir())
    with atomic_writer(tmp_path / "file", overwrite=False) as file:
        file.write(b"all")
        assert not (tmp_path / "file").exists()
    assert (tmp_path / "file").read_bytes() == b"all" and os.listdir(tmp_path) == ["file"]


def test_a_file_that_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(FileExistsError), atomic_writer(tmp_path / "file", overwrite=False) as file:
        file.write(b"ours")
        (tmp_path / "file").write_bytes(b"theirs")
    assert (tmp_path / "file").read_bytes() == b"theirs" and os.listdir(tmp_path) == ["file"]


def test_a_pipe_that_came_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(NotRegularFile), atomic_writer(tmp_path / "file", overwrite=True) as file:
        file.write(b"ours")
        os.mkfifo(tmp_path / "file")
    assert os.listdir(tmp_path) == ["file"]


def test_a_name_as_long_as_names_can_be_is_written(tmp_path: Path) -> None:
    path = tmp_path / ("日" * 85)
    with atomic_writer(path, overwrite=False) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x"


def test_folders_of_the_system_and_the_data_directory_are_no_places_for_files_of_people(tmp_path: Path) -> None:
    paths = Paths(tmp_path / "home")
    paths.prepare()
    (tmp_path / "way in").symlink_to("/etc")
    (tmp_path / "back door").symlink_to(paths.home)
    for path in ("/etc/errand-test", "/dev/errand-test", tmp_path / "way in" / "errand-test"):
        with pytest.raises(PermissionError, match="belongs to the system"):
            check_write_path(Path(path), paths, overwrite=True)
    for path in (paths.database, paths.settings, tmp_path / "back door" / "errand.db", paths.keys / "keys.bin"):
        with pytest.raises(PermissionError, match="Errand's own data"):
            check_write_path(path, paths, overwrite=True)
    check_write_path(paths.workspaces / "conv" / "page.md", paths, overwrite=False)
    check_write_path(tmp_path / "page.md", paths, overwrite=False)


def test_real_path_is_that_of_the_standard_library(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    (tmp_path / "kept (deleted)").touch()
    (tmp_path / "link").symlink_to(folder)
    (tmp_path / "to nothing").symlink_to(tmp_path / "gone" / "file")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    os.mkfifo(tmp_path / "pipe")
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    names = (
        "a/b",
        "a/../a/./b/",
        "link/..",
        "link/new",
        "gone/../a",
        "to nothing",
        "round",
        "round/x",
        "kept (deleted)",
    )
    for name in (*names, "pipe", "\udcff", ".", ""):
        path = os.path.join(tmp_path, name)
        assert real_path(path) == os.path.realpath(path)
    assert real_path("/proc/self/fd/0/..") == os.path.realpath("/proc/self/fd/0/..")
