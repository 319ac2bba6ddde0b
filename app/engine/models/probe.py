"""Asks an address for its models: where a server of one's own has its interface, and why it gives no list."""

import asyncio
import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import msgspec

from app.engine.addresses import check_plain, is_loopback
from app.engine.errors import InvalidParams
from app.engine.models.listings import Listed, models_of
from app.redaction import Redactor

if TYPE_CHECKING:
    import aiohttp

_LIMIT_S = 10.0
_MOST_BYTES = 4 * 1024 * 1024
_ENDS = ("/chat/completions", "/completions", "/models")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of it in words. `models` is None where there was no list, which `may_be_elsewhere` on that machine."""

    address: str
    text: str
    models: tuple[Listed, ...] | None = None
    may_be_elsewhere: bool = False


def origin(address: str) -> tuple[str, str, int | None]:
    """The machine and port that an address leads to, and how."""
    parts = urlsplit(address)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def address_of(typed: str) -> str:
    """The base address in what a person typed; `InvalidParams` says what is wrong with it.

    Without a scheme it is https, but for this machine.
    """
    text = typed.strip()
    if not text:
        raise InvalidParams("Type the address of the server, such as http://127.0.0.1:8000/v1.")
    if len(text.split()) > 1:
        raise InvalidParams(f"{text!r} is no address: there is a space in it.")
    if "://" not in text:
        host = urlsplit(f"//{text}").hostname or ""
        text = f"{'http' if is_loopback(host) else 'https'}://{text}"
    try:
        parts = urlsplit(text)
        port = parts.port
        (parts.hostname or "").encode("idna")  # as the look-up of names does
    except ValueError as error:
        raise InvalidParams(f"{typed.strip()!r} is no address: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InvalidParams(f"{typed.strip()!r} is no address. Write one such as http://127.0.0.1:8000/v1.")
    check_plain(text)
    path = parts.path.rstrip("/")
    for end in _ENDS:
        path = path.removesuffix(end).rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


async def probe(session: "aiohttp.ClientSession", address: str, key: str | None, limit_s: float = _LIMIT_S) -> Answer:
    """Look there, and with or without the usual `/v1`. `address` is one of `address_of`."""
    places = (f"{address}/v1", address) if not urlsplit(address).path else (address, f"{address}/v1")
    first: Answer | None = None
    for place in places if not address.endswith("/v1") else (address, address.removesuffix("/v1")):
        answer = await ask(session, place, key, limit_s)
        if answer.models is not None or not answer.may_be_elsewhere:
            return answer if answer.models is not None or first is None else first
        first = first or answer
    assert first is not None
    return first


async def ask(session: "aiohttp.ClientSession", address: str, key: str | None, limit_s: float) -> Answer:
    """Look at this very place."""
    import aiohttp

    from app.engine.models.connections import proxy_for

    url = f"{address}/models"
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        async with (
            asyncio.timeout(limit_s),
            session.get(url, headers=headers, proxy=proxy_for(url), allow_redirects=False) as response,
        ):
            body = b""
            while len(body) <= _MOST_BYTES and (piece := await response.content.readany()):
                body += piece
            target = response.headers.get("Location", "")
            redactor = Redactor(key or "")
            target, body = redactor.hide(target), await asyncio.to_thread(redactor.hide_bytes, body)
            return _read(address, response.status, target, body, has_key=bool(key))
    except TimeoutError:
        return Answer(address, f"{_host(address)} does not answer within {limit_s:g} s.")
    except aiohttp.InvalidURL:
        return Answer(address, f"{address} is no address.")
    except (aiohttp.ClientError, OSError) as error:
        return Answer(address, _why_unreachable(address, error))


def _read(address: str, status: int, target: str, body: bytes, *, has_key: bool) -> Answer:
    if status in (401, 403):
        text = "It does not take this key." if has_key else "It wants a key."
        return Answer(address, f"{text} ({_host(address)}, status {status})")
    if status in _REDIRECTS:
        return Answer(address, f"It sends callers on to {target[:200]!r}. Give the address that is meant.")
    if status != 200:
        text = (
            f"There is no list of models at {address}/models (status {status}). "
            "If this server has none, name its models in the setting Own models."
        )
        return Answer(address, text, may_be_elsewhere=True)
    try:
        models = models_of(msgspec.json.decode(body)) if len(body) <= _MOST_BYTES else None
    except (ValueError, RecursionError):
        models = None
    if models is None:
        is_page = body.lstrip()[:1] == b"<"
        what = "a web page" if is_page else "something that is no list of models"
        return Answer(
            address, f"{address} answers with {what}. Its interface may have a path, such as /v1.", None, True
        )
    if not models:
        return Answer(address, "It answers, but offers no model. Load one there.", ())
    offered = "one model" if len(models) == 1 else f"{len(models):,} models"
    return Answer(address, f"It answers and offers {offered}.", models)


def _why_unreachable(address: str, error: Exception) -> str:
    import aiohttp

    host = _host(address)
    match error:
        case aiohttp.ClientConnectorCertificateError():
            return (
                f"The certificate of {host} is not trusted on this machine; it may be self-signed. Nothing was sent. "
                "Add it to the certificates that this system trusts."
            )
        case aiohttp.ClientConnectorSSLError():
            return f"{host} does not speak https there. Is it http:// that is meant?"
        case aiohttp.ClientConnectorDNSError():
            return f"There is no machine named {urlsplit(address).hostname} that could be found."
        case aiohttp.ClientConnectorError(os_error=OSError(errno=errno.ECONNREFUSED)):
            return f"Nothing answers at {host}. Does the server run, and is it this port?"
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientResponseError():
            hint = " Is it https:// that is meant?" if address.startswith("http://") else ""
            return f"{host} does not answer as a web server does.{hint}"
        case _:
            return f"{host} could not be reached."


def _host(address: str) -> str:
    return urlsplit(address).netloc
