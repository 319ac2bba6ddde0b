"""Downloads one file: resumed where it broke off, checked by size and checksum, moved to its place when it is right."""

import asyncio
import hashlib
import os
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import urljoin, urlsplit

from errand.engine.core.addresses import display_address
from errand.engine.core.outgoing import CERTIFICATE_HELP, UnusableRoute, proxy_of

if TYPE_CHECKING:
    import aiohttp

    from errand.engine.models.http_pool import HttpPool

_PART = ".part"
_READ_TIMEOUT_S = 60.0
_PAUSES_S = (0.5, 1.0, 2.0, 4.0, 8.0)
_MAX_REDIRECTS = 5
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_WRITE_BYTES = 1024 * 1024
_HASH_BYTES = 1024 * 1024
# Stays free for the database and everything else.
_RESERVE_BYTES = 300 * 1024 * 1024


class DownloadFailed(Exception):
    """A download cannot go on. `str(error)` says what happened, `advice` what to do."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(problem)
        self.advice = advice


class DiskFailed(DownloadFailed):
    """The file cannot be stored here, wherever it comes from."""


class _Broken(Exception):
    """The connection broke off, or the server is overloaded: worth another try."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file at a web address. `other_way` says to a person how to get it if this address does not serve it."""

    url: str
    size_bytes: int
    sha256: str
    other_way: str


def part_of(target: Path) -> Path:
    """Return the file that holds what has come so far."""
    return target.with_name(target.name + _PART)


def received_bytes(target: Path) -> int:
    """Return how many bytes of an unfinished download are kept."""
    with suppress(OSError):
        return part_of(target).stat().st_size
    return 0


class Downloader:
    """Downloads files with the connections of `pool`.

    A connection that breaks off is opened again; `pauses_s` are the waits between attempts that bring nothing.
    `reserve_bytes` of the disk stay free.
    """

    def __init__(
        self,
        pool: "Callable[[], HttpPool]",
        *,
        pauses_s: tuple[float, ...] = _PAUSES_S,
        read_timeout_s: float = _READ_TIMEOUT_S,
        reserve_bytes: int = _RESERVE_BYTES,
    ) -> None:
        self._pool = pool
        self._pauses_s = pauses_s
        self._read_timeout_s = read_timeout_s
        self._reserve_bytes = reserve_bytes

    async def fetch(
        self,
        remote: RemoteFile,
        target: Path,
        progress: Callable[[int], None],
        checking: Callable[[], None] = lambda: None,
    ) -> None:
        """Download the file to `target`; does nothing if it is there. `progress` gets the bytes that have come.

        `checking` is called before the checksum is computed. Raises `DownloadFailed`. Cancelling it keeps what has
        come.
        """
        part = part_of(target)
        try:
            if await asyncio.to_thread(_is_complete, target, remote.size_bytes):
                return
            await asyncio.to_thread(_check_space, part, remote.size_bytes, self._reserve_bytes)
            await self._receive(remote, part, progress)
            checking()
            if await _digest(part) != remote.sha256:
                await asyncio.to_thread(part.unlink, missing_ok=True)
                raise DownloadFailed(
                    f"{target.name} from {host_of(remote.url)} is not the file that is expected: its checksum differs.",
                    f"It was deleted. Try again; if that does not help, {remote.other_way}.",
                )
            await asyncio.to_thread(_put_in_place, part, target)
        except OSError as error:
            raise DiskFailed(
                f"{target} cannot be written: {error.strerror or error}.",
                "Free some space, or mend the folder, and try again.",
            ) from error

    async def _receive(self, remote: RemoteFile, part: Path, progress: Callable[[int], None]) -> None:
        """Bring the file to its full size, with new attempts while each brings something.

        Raises `DownloadFailed`, and OSError if the file cannot be written.
        """
        import aiohttp

        failures = 0
        while True:
            start = await asyncio.to_thread(_usable_bytes, part, remote.size_bytes)
            progress(start)
            if start == remote.size_bytes:
                return
            try:
                await self._receive_once(remote, part, start, progress)
                continue
            except (_Broken, TimeoutError, aiohttp.ClientError, OSError) as error:
                _raise_if_final(remote, error)
                has_grown = await asyncio.to_thread(_usable_bytes, part, remote.size_bytes) > start
                failures = 0 if has_grown else failures + 1
                if failures > len(self._pauses_s):
                    raise _unreachable(remote, error) from error
            if failures:
                await asyncio.sleep(self._pauses_s[failures - 1])

    async def _receive_once(self, remote: RemoteFile, part: Path, start: int, progress: Callable[[int], None]) -> None:
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        async with await self._open(remote, headers) as response:
            if response.status == 200:
                start = 0
            elif response.status == 416:
                await asyncio.to_thread(part.unlink, missing_ok=True)
                raise _Broken("the part that was there did not fit")
            elif response.status != 206 or not _begins_at(response, start):
                raise _refusal(remote, response.status)
            _check_length(remote, start, response.content_length)
            with await asyncio.to_thread(part.open, "r+b" if start else "wb") as file:
                file.seek(start)
                await self._write(response, file, start, remote, progress)

    async def _write(
        self,
        response: "aiohttp.ClientResponse",
        file: BinaryIO,
        start: int,
        remote: RemoteFile,
        progress: Callable[[int], None],
    ) -> None:
        """Write what comes to the file, from `start` on. What has come is written in any case."""
        waiting, written = bytearray(), start
        try:
            while True:
                async with asyncio.timeout(self._read_timeout_s):
                    piece = await response.content.readany()
                waiting += piece
                if written + len(waiting) > remote.size_bytes:
                    raise _wrong_size(remote, written + len(waiting))
                if not piece:
                    break
                if len(waiting) >= _WRITE_BYTES:
                    data, waiting = bytes(waiting), bytearray()
                    await asyncio.to_thread(file.write, data)
                    written += len(data)
                    progress(written)
        finally:
            file.write(waiting)
        if written + len(waiting) < remote.size_bytes:
            raise _Broken("the connection broke off")

    async def _open(self, remote: RemoteFile, headers: dict[str, str]) -> "aiohttp.ClientResponse":
        """Send the request; follows redirects, as hubs have their files elsewhere, but never from https to http."""
        url = remote.url
        for _ in range(_MAX_REDIRECTS):
            async with asyncio.timeout(self._read_timeout_s):
                response = await self._pool().session.get(
                    url, headers=headers, proxy=proxy_of(url), allow_redirects=False
                )
            if response.status not in _REDIRECTS:
                return response
            response.release()
            try:
                moved = urljoin(url, response.headers.get("Location", ""))
                is_weaker = urlsplit(url).scheme == "https" and urlsplit(moved).scheme != "https"
            except ValueError:
                break
            if is_weaker:
                break
            url = moved
        raise DownloadFailed(
            f"{host_of(remote.url)} redirects too often, or to an address that cannot be used.",
            _sentence(remote.other_way),
        )


def _raise_if_final(remote: RemoteFile, error: Exception) -> None:
    """Raise what another attempt does not change."""
    import aiohttp

    if isinstance(error, UnusableRoute):
        raise DownloadFailed(str(error), "Then try again.") from error
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        raise DownloadFailed(f"The certificate of {host_of(remote.url)} is not trusted.", CERTIFICATE_HELP) from error
    if isinstance(error, aiohttp.InvalidURL):
        raise DownloadFailed(
            f"{display_address(remote.url)} is not a web address.", _sentence(remote.other_way)
        ) from error
    if isinstance(error, OSError) and not isinstance(error, aiohttp.ClientError | TimeoutError | ConnectionError):
        raise error


def _check_length(remote: RemoteFile, start: int, length: int | None) -> None:
    """Raise `DownloadFailed` if the server announces a file of another size; it need not say."""
    if length is not None and start + length != remote.size_bytes:
        raise _wrong_size(remote, start + length)


def _wrong_size(remote: RemoteFile, size_bytes: int) -> DownloadFailed:
    return DownloadFailed(
        f"{host_of(remote.url)} has another {_name(remote)} than is expected: {size_bytes:,} bytes instead of "
        f"{remote.size_bytes:,}.",
        f"Look for a newer version of Errand, or {remote.other_way}.",
    )


def _begins_at(response: "aiohttp.ClientResponse", start: int) -> bool:
    return response.headers.get("Content-Range", "").startswith(f"bytes {start}-")


def _refusal(remote: RemoteFile, status: int) -> Exception:
    if status in (408, 425, 429) or status >= 500:
        return _Broken(f"HTTP {status}")
    reason = {401: "wants a sign-in for", 403: "does not give out", 404: "does not have"}.get(status, "refuses")
    return DownloadFailed(
        f"{host_of(remote.url)} {reason} {_name(remote)} (HTTP {status}).", f"Try again later, or {remote.other_way}."
    )


def _unreachable(remote: RemoteFile, error: Exception) -> DownloadFailed:
    import aiohttp

    match error:
        case aiohttp.ClientConnectorError():
            reason = error.os_error.strerror or str(error.os_error)
            problem = f"{host_of(remote.url)} cannot be reached ({reason})."
        case aiohttp.ConnectionTimeoutError():
            problem = f"{host_of(remote.url)} cannot be reached (no answer)."
        case TimeoutError():
            problem = f"{_name(remote)} from {host_of(remote.url)} did not arrive (nothing came in time)."
        case _:
            reason = str(error) if isinstance(error, _Broken) else "the connection broke off"
            problem = f"{_name(remote)} from {host_of(remote.url)} did not arrive ({reason})."
    return DownloadFailed(
        problem, f"Check the network and try again: what has come is kept. Without a network, {remote.other_way}."
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _name(remote: RemoteFile) -> str:
    return urlsplit(remote.url).path.rpartition("/")[2]


def host_of(url: str) -> str:
    """Return the host and port of a URL, for a person to read: without the password, whatever else is wrong with it."""
    address = display_address(url)
    return address.partition("://")[2].partition("/")[0] or address


def _is_complete(target: Path, size_bytes: int) -> bool:
    """Return True if the file is there; makes its folder otherwise."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return target.is_file() and target.stat().st_size == size_bytes


def _put_in_place(part: Path, target: Path) -> None:
    """Give the file its name once the disk has it: its size is all that is looked at later."""
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.replace(target)


def _usable_bytes(part: Path, size_bytes: int) -> int:
    """Return the size of what has come; deletes what is larger than the file."""
    there = part.stat().st_size if part.exists() else 0
    if there <= size_bytes:
        return there
    part.unlink()
    return 0


def _check_space(part: Path, size_bytes: int, reserve_bytes: int) -> None:
    """Raise `DownloadFailed` if the rest of the file does not fit on the disk."""
    missing_bytes = size_bytes - _usable_bytes(part, size_bytes) + reserve_bytes - shutil.disk_usage(part.parent).free
    if missing_bytes > 0:
        raise DiskFailed(
            f"There is not enough space in {part.parent}: {missing_bytes / 1e6:,.0f} MB are missing.",
            "Free that much and try again.",
        )


async def _digest(file: Path) -> str:
    """Return the SHA-256 of the file. Cancelling it ends the thread soon."""
    is_cancelled = threading.Event()

    def work() -> str:
        digest = hashlib.sha256()
        with file.open("rb") as stream:
            while not is_cancelled.is_set() and (data := stream.read(_HASH_BYTES)):
                digest.update(data)
        return digest.hexdigest()

    try:
        return await asyncio.to_thread(work)
    finally:
        is_cancelled.set()
