"""Skills of a git repository: a shallow copy without hooks, filters and submodules, of which one folder is read.

Nothing is checked out: the files are read from the packed tree, after their number and sizes are known.
"""

import asyncio
import io
import os
import re
import shutil
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from errand.engine.core.errors import InvalidParams
from errand.engine.core.ids import new_id
from errand.engine.permissions.addresses import Malformed, parse_address
from errand.engine.sandbox.launch import prepare_launch
from errand.engine.skills.contents import (
    SkillContent,
    SkillContents,
    check_path,
    check_size,
    choices_in,
    linked_file,
    skill_of,
)
from errand.engine.tools.processes import marks, spawn
from errand.engine.tools.processes.termination import ProcessSweep
from errand.engine.tools.shell.environment import environment_of_commands
from errand.text.printable import printable

_REF = re.compile(r"[A-Za-z0-9_][\w./+-]{0,199}")
_ON_GITHUB = re.compile(r"(https://github\.com/[^/]+/[^/]+)/tree/([^/]+)(?:/(.+?))?/?")
_CLONE_TIMEOUT_S, _LOOK_S = 60.0, 0.2
_MAX_CLONE_BYTES, _MAX_OUTPUT_BYTES = 100_000_000, 20_000_000
# Of a person whose network has an authority of its own.
_CERTIFICATES = ("GIT_SSL_CAINFO", "GIT_SSL_CAPATH")
_LINK, _SUBMODULE = "120000", "160000"


@dataclass(frozen=True, slots=True)
class GitSource:
    """`path` is a folder in the repository, `ref` a branch or tag, empty for the default one."""

    address: str
    path: str = ""
    ref: str = ""

    @property
    def shown(self) -> str:
        return self.address + (f" ({self.path})" if self.path else "")


@dataclass(frozen=True, slots=True)
class _Entry:
    mode: str
    size: int
    path: str


def git_source(address: str, path: str, ref: str, protocols: Sequence[str]) -> GitSource:
    """Check an address. Raises `InvalidParams` for anything but a plain one with a protocol that is open."""
    if match := _ON_GITHUB.fullmatch(address):
        address, ref, path = match[1], ref or match[2], path or match[3] or ""
    protocol = address.partition(":")[0].lower()
    if protocol not in protocols:
        raise InvalidParams(
            f"Give a folder, or an address that begins with https://, not “{printable(address[:200])}”."
        )
    if protocol == "https":
        try:
            parsed = parse_address(address)
        except Malformed as problem:
            raise InvalidParams(f"The address is not opened: {problem}.") from problem
        if parsed.has_user or "?" in parsed.rest or "#" in parsed.rest:
            raise InvalidParams("The address of a repository has no user, question mark or #.")
        address = parsed.url
    if ref and (not _REF.fullmatch(ref) or ".." in ref):
        raise InvalidParams(f"“{printable(ref[:200])}” is no name of a branch or tag.")
    path = path.strip("/")
    if path:
        check_path(path)
    return GitSource(address, path, ref)


class GitCopy:
    """A copy of a repository in a temporary folder below `place`, deleted at the end of the context."""

    def __init__(self, source: GitSource, place: Path, protocols: Sequence[str]) -> None:
        self._source = source
        self._protocols = protocols
        self._place = place
        self._owner = new_id("skills")
        self._folder = place
        self.commit = ""

    async def __aenter__(self) -> Self:
        if shutil.which("git") is None:
            raise InvalidParams("git is not installed. Install it, or download the skill and give its folder.")
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = Path(tempfile.mkdtemp(dir=self._place))
        try:
            await self._clone()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._end()

    async def choices(self) -> tuple[str, ...]:
        """Return the folders of the repository that hold a skill."""
        return choices_in(entry.path for entry in await self._entries())

    async def read(self) -> SkillContents:
        """Raises `InvalidParams`."""
        below = f"{self._source.path}/" if self._source.path else ""
        entries = [
            replace(entry, path=entry.path.removeprefix(below))
            for entry in await self._entries()
            if entry.path.startswith(below)
        ]
        if not entries:
            raise InvalidParams(f"There is no folder {below or 'with files'} in {self._source.address}.")
        check_size(len(entries), sum(entry.size for entry in entries), max(entry.size for entry in entries))
        for entry in entries:
            check_path(entry.path)
            if entry.mode == _SUBMODULE:
                raise InvalidParams(f"{entry.path} is another repository in this one. It cannot be installed with it.")
        tree = f"{self.commit}:{self._source.path}"
        packed = await self._git("archive", "--format=tar", tree)
        return skill_of(await asyncio.to_thread(_unpacked, packed, entries))

    async def _clone(self) -> None:
        source = self._source
        branch = ("--branch", source.ref) if source.ref else ()
        await self._git(
            "clone",
            "--quiet",
            "--bare",
            "--depth=1",
            "--single-branch",
            "--no-tags",
            "--no-recurse-submodules",
            "--template=",
            *branch,
            "--",
            source.address,
            str(self._folder / "copy"),
            is_in_copy=False,
        )
        self.commit = (await self._git("rev-parse", "HEAD^{commit}")).decode().strip()

    async def _entries(self) -> list[_Entry]:
        listed = await self._git("ls-tree", "-r", "-l", "-z", self.commit)
        entries: list[_Entry] = []
        for line in listed.split(b"\0"):
            if line:
                facts, _, path = line.decode("utf-8", "surrogateescape").partition("\t")
                mode, _, _, size = facts.split()
                entries.append(_Entry(mode, int(size) if size.isdecimal() else 0, path))
        return entries

    async def _git(self, *words: str, is_in_copy: bool = True) -> bytes:
        """Return the output of git. Raises `InvalidParams` with its complaint."""
        folder = self._folder / "copy" if is_in_copy else self._folder
        launch = await prepare_launch(
            ["git", *_SAFE, *words], folder, _environment(self._folder, self._protocols), None
        )
        out, err = bytearray(), bytearray()
        mark = marks.new_mark(self._owner)
        try:
            child = spawn.start(launch, mark, _bounded(out), _bounded(err))
            async with asyncio.timeout(_CLONE_TIMEOUT_S):
                while not child.exit.done():
                    await asyncio.wait((child.exit,), timeout=_LOOK_S)
                    if await asyncio.to_thread(_size, self._folder) > _MAX_CLONE_BYTES:
                        raise InvalidParams(f"The repository is larger than {_MAX_CLONE_BYTES // 1_000_000} MB.")
                await asyncio.gather(child.stdout.ended, child.stderr.ended)
        except TimeoutError as error:
            raise InvalidParams(f"{self._source.address} did not answer within {_CLONE_TIMEOUT_S:g} s.") from error
        except OSError as error:
            raise InvalidParams(f"git could not be started: {error.strerror}.") from error
        finally:
            launch.close()
            await ProcessSweep(self._owner).end()
        if child.exit.result() != 0:
            raise InvalidParams(f"{self._source.shown} could not be fetched: {_complaint(bytes(err))}")
        if len(out) >= _MAX_OUTPUT_BYTES:
            raise InvalidParams("The repository has too many files.")
        return bytes(out)

    async def _end(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


# Neither hooks nor helpers nor protocols that the repository or the person's configuration names.
_SAFE = (
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "credential.helper="),
    *("-c", "protocol.ext.allow=never"),
    *("-c", "transfer.fsckObjects=true"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "gc.auto=0"),
)


def _environment(folder: Path, protocols: Sequence[str]) -> Mapping[str, str]:
    return {
        **{
            name: value
            for name, value in environment_of_commands().items()
            if not name.startswith("GIT_") or name in _CERTIFICATES
        },
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ALLOW_PROTOCOL": ":".join(protocols),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "GIT_LFS_SKIP_SMUDGE": "1",
        "LC_ALL": "C.UTF-8",
    }


def _bounded(kept: bytearray) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        kept.extend(data[: max(0, _MAX_OUTPUT_BYTES - len(kept))])

    return take


def _unpacked(packed: bytes, entries: Sequence[_Entry]) -> list[SkillContent]:
    """Return the files of an archive; a link becomes the file of the skill to which it leads."""
    file_paths = {entry.path for entry in entries if entry.mode != _LINK}
    contents: dict[str, SkillContent] = {}
    links: dict[str, str] = {}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.issym():
                links[member.name] = linked_file(member.name, member.linkname)
            elif member.isfile() and member.name in file_paths and (file := archive.extractfile(member)) is not None:
                contents[member.name] = SkillContent(member.name, file.read(), bool(member.mode & 0o100))
    for path, target in links.items():
        if target not in contents:
            raise InvalidParams(f"{path} is a link to {ascii(target)[:200]}, which is no file of the skill.")
        contents[path] = replace(contents[target], path=path)
    return list(contents.values())


def _size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size
    return total


def _complaint(errors: bytes) -> str:
    lines = [line for line in errors.decode("utf-8", "replace").splitlines() if line.strip()]
    message = next(
        (line for line in reversed(lines) if line.startswith("fatal:")), lines[-1] if lines else "git failed"
    )
    return f"{printable(message.removeprefix('fatal: ')[:300]).rstrip('.')}."
