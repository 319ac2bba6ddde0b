"""Finds llama.cpp's server, or downloads the pinned release of it and unpacks that into the data folder.

The choice of releases is decision 80. A checksum is the one that GitHub gives for the file of the release.
"""

import asyncio
import os
import platform
import shutil
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from errand.engine.download import Downloader, DownloadFailed, RemoteFile, received_bytes

PROGRAM = "llama-server"
RELEASE = "b11194"
_MORE_FOLDERS = ("/opt/homebrew/bin", "/usr/local/bin")
_MAX_UNPACKED_BYTES = 2_000_000_000
_EXECUTABLE = 0o755
_PLAIN = 0o644


@dataclass(frozen=True, slots=True)
class ServerArchive:
    """A file of the release, for one system and processor."""

    file: str
    size_bytes: int
    sha256: str


# By system, processor, and whether a graphics card is used.
ARCHIVES = {
    ("linux", "x86_64", False): ServerArchive(
        "llama-b11194-bin-ubuntu-x64.tar.gz",
        17_014_362,
        "527c09064f3c89e4b6e1008a641e31903a04ccdd1c69abd0752acbbd4e1905f6",
    ),
    ("linux", "x86_64", True): ServerArchive(
        "llama-b11194-bin-ubuntu-vulkan-x64.tar.gz",
        30_955_864,
        "e4f8163eaf2e4d45639238a6fbc09f559e4ff5c0e7d612088a282ed128359c5e",
    ),
    ("linux", "aarch64", False): ServerArchive(
        "llama-b11194-bin-ubuntu-arm64.tar.gz",
        13_608_309,
        "92a8e5bb9f2f16804715fa6876f64691827a54d41d39dca67e2a83aa70f133ce",
    ),
    ("linux", "aarch64", True): ServerArchive(
        "llama-b11194-bin-ubuntu-vulkan-arm64.tar.gz",
        24_776_725,
        "1aa413dda941b31f58ff40205dcd9bad200eb569ef82623b8bc3adf8115162ef",
    ),
    ("darwin", "arm64", True): ServerArchive(
        "llama-b11194-bin-macos-arm64.tar.gz",
        11_767_333,
        "cc5d31e048c1c440149a0aaf25a6e387823511c0f23561ec534a4ec07c14e9e1",
    ),
    ("darwin", "x86_64", False): ServerArchive(
        "llama-b11194-bin-macos-x64.tar.gz",
        11_250_068,
        "fe9b6c1a2856647303b31401b89e9aab320416706c358c3ce4beb71d21b1f37a",
    ),
}


def archive_for(has_gpu: bool) -> ServerArchive | None:
    """Return the file of the release for this machine; None if there is none."""
    return ARCHIVES.get((sys.platform, platform.machine(), has_gpu)) or ARCHIVES.get(
        (sys.platform, platform.machine(), False)
    )


class ServerProgram:
    """llama.cpp's server: the one that a person named, one on the PATH, or ours below `folder`.

    `archive` is what is downloaded if there is none; None for a system without.
    """

    def __init__(self, folder: Path, downloader: Downloader, archive: ServerArchive | None) -> None:
        self._folder = folder
        self._downloader = downloader
        self.archive = archive
        self._installing = asyncio.Lock()

    def find(self, named: str) -> Path | None:
        """Return the program; `named` is the person's setting. Reads the file system."""
        if named:
            path = Path(named).expanduser()
            return path if os.access(path, os.X_OK) and path.is_file() else None
        # An empty or relative folder would be below the one in which the engine was started.
        named_folders = (folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder))
        folders = os.pathsep.join((*named_folders, *_MORE_FOLDERS))
        if (installed := shutil.which(PROGRAM, path=folders)) is not None:
            return Path(installed)
        return self._unpacked()

    async def install(self, named: str, base_url: str, progress: Callable[[int], None]) -> Path:
        """Return the program, downloaded from `base_url` if there is none. Raises `DownloadFailed`."""
        async with self._installing:
            if (program := await asyncio.to_thread(self.find, named)) is not None:
                return program
            if named:
                raise DownloadFailed(f"There is no program {named}.", "Correct the setting llama_server, or empty it.")
            archive = self.archive
            if archive is None:
                raise DownloadFailed(
                    f"There is no release of llama.cpp for this system ({sys.platform}, {platform.machine()}).",
                    "Install llama.cpp yourself, so that llama-server is on the PATH, or name it in the setting "
                    "llama_server.",
                )
            remote = RemoteFile(
                f"{base_url.rstrip('/')}/{RELEASE}/{archive.file}",
                archive.size_bytes,
                archive.sha256,
                "give the address of a mirror in the setting llama_cpp_downloads, or install llama.cpp yourself, so "
                "that llama-server is on the PATH",
            )
            packed = self._folder / archive.file
            await self._downloader.fetch(remote, packed, progress)
            try:
                await asyncio.to_thread(_unpack, packed, self._folder / RELEASE)
            except (OSError, tarfile.TarError, EOFError) as error:
                raise DownloadFailed(
                    f"The archive of llama.cpp cannot be unpacked: {error}.", "Free some space and try again."
                ) from error
            finally:
                packed.unlink(missing_ok=True)
            program = self._unpacked()
            if program is None:
                raise DownloadFailed(
                    f"There is no {PROGRAM} in {archive.file}.",
                    "Give another address in the setting llama_cpp_downloads.",
                )
            return program

    def missing_bytes(self) -> int:
        """Return the bytes that are still to be downloaded; 0 without an archive."""
        if self.archive is None:
            return 0
        return max(0, self.archive.size_bytes - received_bytes(self._folder / self.archive.file))

    def remove(self) -> None:
        """Delete our copy."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _unpacked(self) -> Path | None:
        return next((path for path in (self._folder / RELEASE).rglob(PROGRAM) if os.access(path, os.X_OK)), None)


def _unpack(packed: Path, folder: Path) -> None:
    """Unpack plain files and links between them, nothing else; `folder` is there only when all of it is."""
    new = folder.with_name(f"{folder.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    left_bytes = _MAX_UNPACKED_BYTES
    with tarfile.open(packed, "r:gz") as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            if path.is_absolute() or ".." in path.parts:
                raise tarfile.TarError(f"it has the path {member.name!r}")
            target = new.joinpath(*path.parts)
            if member.isfile():
                left_bytes -= member.size
                if left_bytes < 0:
                    raise tarfile.TarError("it is too large")
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                with target.open("xb") as file:
                    content = archive.extractfile(member)
                    assert content is not None
                    shutil.copyfileobj(content, file)
                target.chmod(_EXECUTABLE if member.mode & 0o100 else _PLAIN)
            elif member.issym() and "/" not in member.linkname and member.linkname not in ("", ".", ".."):
                target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                target.symlink_to(member.linkname)
    shutil.rmtree(folder, ignore_errors=True)
    new.replace(folder)
