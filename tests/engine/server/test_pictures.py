"""Pictures on the web through the dispatcher: what is loaded, from where, and what is refused in words."""

import base64

import msgspec
import pytest
from aiohttp import web

from errand.protocol.pictures import PictureLoadResult
from tests.support.connections import RawClient, error_of, raw_client
from tests.support.engine_server import EngineServer
from tests.support.rows import PIXEL
from tests.support.web_site import Handler, web_site

_PNG = base64.b64decode(PIXEL)


def sends(body: bytes, content_type: str = "image/png", status: int = 200) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        return web.Response(body=body, status=status, content_type=content_type)

    return answer


def redirects(target: str) -> Handler:
    async def answer(request: web.Request) -> web.StreamResponse:
        raise web.HTTPFound(target)

    return answer


def place_of(url: str) -> str:
    """The host and port of an address, as the person is shown it."""
    return url.split("/")[2]


async def load(client: RawClient, url: str, number: int = 1, *, allowed: bool = True) -> PictureLoadResult:
    answer = await client.ask("picture/load", number, url=url, allowedHost=place_of(url) if allowed else "")
    return msgspec.convert(answer["result"], PictureLoadResult)


async def refusal(client: RawClient, url: str, number: int = 1, allowed: str = "") -> str:
    answer = await client.ask("picture/load", number, url=url, allowedHost=allowed)
    assert error_of(answer)[1] == "picture_not_loaded"
    return error_of(answer)[2]


async def test_a_picture_is_loaded_from_this_machine_when_that_is_allowed(engine: EngineServer) -> None:
    async with web_site({"/a.png": sends(_PNG), "/b": redirects("/a.png")}) as site, raw_client(engine) as client:
        asked = await load(client, site.url("/a.png"), 1, allowed=False)
        assert (asked.image, asked.private_host) == (None, place_of(site.url()))
        assert site.requests == [], "nothing is sent before the person has said yes"
        image = (await load(client, site.url("/b"), 2)).image
        assert image is not None
        assert (image.media_type, base64.b64decode(image.data)) == ("image/png", _PNG)


async def test_a_picture_of_the_largest_size_arrives(engine: EngineServer) -> None:
    large = _PNG + bytes(4_900_000)
    async with web_site({"/": sends(large, "application/octet-stream")}) as site, raw_client(engine) as client:
        image = (await load(client, site.url())).image
        assert image is not None and len(base64.b64decode(image.data)) == len(large)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/none", "The server answered HTTP 404 Not Found."),
        ("/page", "This is no picture, but text/html."),
        ("/svg", "only PNG, JPEG, GIF and WebP"),
        ("/huge", "larger than 5 MB"),
    ],
)
async def test_what_is_no_picture_is_refused_in_words(engine: EngineServer, path: str, reason: str) -> None:
    pages: dict[str, str | Handler] = {
        "/none": sends(b"", status=404),
        "/page": "<h1>a page</h1>",
        "/svg": sends(b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        "/huge": sends(_PNG + bytes(5_000_000)),
    }
    async with web_site(pages) as site, raw_client(engine) as client:
        assert reason in await refusal(client, site.url(path), allowed=place_of(site.url()))


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/a.png",
        "https://user@example.org/a.png",
        "http://169.254.169.254/latest/a.png",
        "http://exa mple.org/",
        "",
    ],
)
async def test_other_addresses_are_never_opened(engine: EngineServer, url: str) -> None:
    async with raw_client(engine) as client:
        text = await refusal(client, url, allowed="169.254.169.254:80")
        assert "was not opened: " in text
        assert text.count("opened") == 1


async def test_the_engine_itself_is_closed_and_so_is_the_way_there(engine: EngineServer) -> None:
    engine.services.paths.endpoint.parent.mkdir(parents=True, exist_ok=True)
    engine.services.paths.endpoint.write_bytes(msgspec.json.encode(engine.endpoint()))
    own = f"http://127.0.0.1:{engine.endpoint().port}/"
    async with web_site({"/": redirects(own)}) as site, raw_client(engine) as client:
        for number, url in enumerate((own, site.url(), own.replace("127.0.0.1", "localhost")), 1):
            text = await refusal(client, url, number, allowed=place_of(url))
            assert text.endswith("was not opened: the engine's own port is closed.")


async def test_a_redirect_into_the_local_network_asks_for_that_host(engine: EngineServer) -> None:
    async with web_site({"/": redirects("http://[::1]:9/a.png")}) as site, raw_client(engine) as client:
        answer = await load(client, site.url(), allowed=False)
        assert answer.private_host == place_of(site.url())


async def test_only_the_host_and_port_that_were_shown_are_opened(engine: EngineServer) -> None:
    async with web_site({"/a.png": sends(_PNG)}) as other, raw_client(engine) as client:
        leading = {"/": redirects(other.url("/a.png")), "/name": redirects("http://localhost:9/")}
        async with web_site(leading) as site:
            allowed = place_of(site.url())
            text = await refusal(client, site.url(), 1, allowed)
            assert text == (
                f"{other.url('/a.png')} was not opened: it leads to 127.0.0.1, inside the local network or this "
                f"machine, and you allowed {allowed} alone."
            )
            assert f"you allowed {allowed} alone" in await refusal(client, site.url("/name"), 2, allowed)
            assert f"you allowed {allowed} alone" in await refusal(client, other.url("/a.png"), 3, allowed)
            assert site.requests == ["/", "/name"]
        assert other.requests == []
