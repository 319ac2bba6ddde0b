"""Pictures on the web, which a person loads by a click: judged, bounded in size and time, and never stored."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from errand.engine.agent.history.attachments import media_type
from errand.engine.core.errors import EngineError
from errand.engine.permissions.addresses import (
    AddressRules,
    Malformed,
    is_link_local,
    is_public,
    is_this_machine,
    judge_address,
    parse_address,
)
from errand.engine.tools.results import ToolError
from errand.engine.tools.web.download import MAX_BODY_BYTES, Download, download
from errand.protocol.blocks import ImageBlock
from errand.protocol.pictures import PictureLoadParams, PictureLoadResult

_ACCEPT = "image/webp, image/png, image/jpeg, image/gif, image/*;q=0.5"
# Types under which servers send pictures, beside their own.
_ANY = ("", "application/octet-stream", "binary/octet-stream")
_ERROR = 400


class PictureNotLoaded(EngineError):
    """The text says why, for people."""

    code = "picture_not_loaded"


async def load_picture(params: PictureLoadParams, own_port: int | None, ca_file: str) -> PictureLoadResult:
    """Load a picture. Raises `PictureNotLoaded`. `own_port` is that of the engine's server."""
    guard = _Clicked(own_port, params.allowed_host)
    url = params.url.partition("#")[0]
    try:
        got = await download("", url, guard, _may_be_picture, ca_file=ca_file, accept=_ACCEPT)
    except ToolError as error:
        if guard.private_host:
            return PictureLoadResult(private_host=guard.private_host)
        raise PictureNotLoaded(str(error)) from error
    return PictureLoadResult(image=_image(got))


def _may_be_picture(content_type: str) -> bool:
    return content_type.startswith("image/") or content_type in _ANY


def _image(got: Download) -> ImageBlock:
    if got.status >= _ERROR:
        raise PictureNotLoaded(f"The server answered {got.phrase}.")
    if got.body is None:
        raise PictureNotLoaded(f"This is no picture, but {got.content_type}.")
    if got.is_cut:
        raise PictureNotLoaded(f"The picture is larger than {MAX_BODY_BYTES // 1_000_000} MB.")
    kind = media_type(got.body[:16])
    if not kind:
        raise PictureNotLoaded("This is no picture that can be shown: only PNG, JPEG, GIF and WebP can.")
    return ImageBlock(media_type=kind, data=base64.b64encode(got.body).decode())


@dataclass(slots=True)
class _Clicked:
    """The `AddressGuard` of a click: the person opens the address, so that no rule has to.

    Of the local network and this machine, `allowed_host` alone is open, if the person was shown one: a host with its
    port. Without it, `private_host` is set when a connection was refused because it leads there.
    """

    own_port: int | None
    allowed_host: str
    private_host: str = ""

    def refusal(self, tool: str, url: str, approved: Sequence[str] = ()) -> str | None:
        try:
            parse_address(url)
        except Malformed as problem:
            return str(problem)
        judgement = judge_address(url, AddressRules(allowed=(), own_port=self.own_port))
        return judgement.reason if judgement.verdict == "deny" else None

    def connection_refusal(
        self, tool: str, host: str, port: int, resolved: Sequence[str], approved: Sequence[str] = ()
    ) -> str | None:
        literal = f"[{host}]" if ":" in host else host
        refused = self.refusal(tool, f"http://{literal}:{port}/")
        if refused is not None:
            return refused
        if port == self.own_port and any(map(is_this_machine, resolved)):
            return "the engine's own port is closed"
        if any(map(is_link_local, resolved)):
            return "it leads to a link-local address"
        inside = [ip_address for ip_address in resolved if not is_public(ip_address)]
        address = f"{literal}:{port}"
        if not inside or address == self.allowed_host:
            return None
        where = f"it leads to {inside[0]}, inside the local network or this machine"
        if self.allowed_host:
            return f"{where}, and you allowed {self.allowed_host} alone"
        self.private_host = address
        return where
