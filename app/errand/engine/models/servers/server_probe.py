"""Fetches the model list of an address that a person typed."""

import asyncio
import errno
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from errand.engine.core.addresses import check_address, is_loopback
from errand.engine.core.errors import InvalidParams
from errand.engine.core.json_input.foreign_json import decode_bounded
from errand.engine.core.outgoing import CERTIFICATE_HELP, UnusableRoute, proxy_of
from errand.engine.models.catalog.model_lists import ListedModel, ListSource, list_address, list_headers, models_of
from errand.engine.models.catalog.providers import RESPONSES_PATH
from errand.text.redaction import Redactor

if TYPE_CHECKING:
    from errand.engine.models.http_pool import HttpPool


_MAX_LIST_BYTES = 4 * 1024 * 1024

_PROBE_LIMIT_S = 10.0
_ENDS = ("/chat/completions", "/completions", "/models")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The outcome as text. `models` is None without a list; `may_be_elsewhere`: the list may have another path."""

    address: str
    text: str
    models: tuple[ListedModel, ...] | None = None
    may_be_elsewhere: bool = False


def origin(address: str) -> tuple[str, str, int | None]:
    """Scheme, host and port of an address."""
    parts = urlsplit(address)
    return parts.scheme, parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def address_of(typed: str) -> str:
    """Return the base address in the user's input. Raises `InvalidParams` with the reason if it is invalid.

    The default scheme is https, for this machine http.
    """
    text = typed.strip()
    if not text:
        raise InvalidParams("Type the address of the server, such as http://127.0.0.1:8000/v1.")
    if len(text.split()) > 1:
        raise InvalidParams(f"{text!r} is not an address: there is a space in it.")
    if "://" not in text:
        host = urlsplit(f"//{text}").hostname or ""
        text = f"{'http' if is_loopback(host) else 'https'}://{text}"
    try:
        parts = urlsplit(text)
        port = parts.port
        (parts.hostname or "").encode("idna")  # as name resolution does
    except ValueError as error:
        raise InvalidParams(f"{typed.strip()!r} is not an address: {error}.") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise InvalidParams(f"{typed.strip()!r} is not an address. Write one such as http://127.0.0.1:8000/v1.")
    check_address(text)
    path = parts.path.rstrip("/")
    for end in _ENDS:
        path = path.removesuffix(end).rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))


async def probe(pool: "HttpPool", source: ListSource, limit_s: float = _PROBE_LIMIT_S) -> ProbeResult:
    """Query the address as given, and with or without the usual `/v1`. The address comes from `address_of`."""
    address = source.base_url
    if source.provider.kind != "openai_compatible" or source.provider.added_as:
        return await ask(pool, source, limit_s)
    if address.endswith(RESPONSES_PATH):
        answer = await probe(pool, replace(source, base_url=address.removesuffix(RESPONSES_PATH)), limit_s)
        return replace(answer, address=answer.address + RESPONSES_PATH)
    addresses = (f"{address}/v1", address) if not urlsplit(address).path else (address, f"{address}/v1")
    first: ProbeResult | None = None
    for candidate in addresses if not address.endswith("/v1") else (address, address.removesuffix("/v1")):
        answer = await ask(pool, replace(source, base_url=candidate), limit_s)
        if answer.models is not None or not answer.may_be_elsewhere:
            return answer if answer.models is not None or first is None else first
        first = first or answer
    assert first is not None
    return first


async def ask(pool: "HttpPool", source: ListSource, limit_s: float) -> ProbeResult:
    """Query exactly this address, for its list of models."""
    import aiohttp

    address, key = source.base_url.removesuffix(RESPONSES_PATH), source.key
    url = list_address(source)
    try:
        async with (
            asyncio.timeout(limit_s),
            pool.session.get(url, headers=list_headers(source), proxy=proxy_of(url), allow_redirects=False) as response,
        ):
            body = b""
            while len(body) <= _MAX_LIST_BYTES and (piece := await response.content.readany()):
                body += piece
            target = response.headers.get("Location", "")
            redactor = Redactor(key)
            target, body = redactor.hide(target), await asyncio.to_thread(redactor.hide_bytes, body)
            return await asyncio.to_thread(_read, address, url, response.status, target, body, has_key=bool(key))
    except TimeoutError:
        return ProbeResult(address, f"{_host(url)} does not answer within {limit_s:g} s.")
    except aiohttp.InvalidURL:
        return ProbeResult(address, f"{address} is not an address.")
    except (aiohttp.ClientError, OSError) as error:
        return ProbeResult(address, _why_unreachable(url, error))


def _read(address: str, url: str, status: int, target: str, body: bytes, *, has_key: bool) -> ProbeResult:
    if status in (401, 403):
        text = "The server refused this key." if has_key else "The server requires a key."
        return ProbeResult(address, f"{text} ({_host(url)}, status {status})")
    if status in _REDIRECTS:
        return ProbeResult(address, f"It sends callers on to {target[:200]!r}. Give the address that is meant.")
    if status != 200:
        text = (
            f"There is no list of models at {url.partition('?')[0]} (status {status}). "
            "If this server has none, add its models yourself."
        )
        return ProbeResult(address, text, may_be_elsewhere=True)
    try:
        models = models_of(decode_bounded(body)) if len(body) <= _MAX_LIST_BYTES else None
    except (ValueError, RecursionError):
        models = None
    if models is None:
        is_page = body.lstrip()[:1] == b"<"
        what = "a web page" if is_page else "something that is not a list of models"
        return ProbeResult(
            address, f"{address} answers with {what}. Its interface may have a path, such as /v1.", None, True
        )
    if not models:
        return ProbeResult(address, "The server answers, but offers no model. Load one there.", ())
    offered = "one model" if len(models) == 1 else f"{len(models):,} models"
    return ProbeResult(address, f"The server offers {offered}.", models)


def _why_unreachable(address: str, error: Exception) -> str:
    import aiohttp

    host = _host(address)
    match error:
        case UnusableRoute():
            return str(error)
        case aiohttp.ClientConnectorCertificateError():
            return (
                f"The certificate of {host} is not trusted on this machine; it may be self-signed. Nothing was sent. "
                f"{CERTIFICATE_HELP}"
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
