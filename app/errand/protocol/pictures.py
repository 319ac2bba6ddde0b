"""Pictures on the web that a reply names: loaded by the engine when a person asks for one."""

from errand.protocol.base import Method, Wire
from errand.protocol.blocks import ImageBlock


class PictureLoadParams(Wire, frozen=True, kw_only=True):
    """`url` is an http or https address. `allowed_host` is the `private_host` of an earlier answer that the person
    allows: of the local network and this machine nothing else is opened.
    """

    url: str
    allowed_host: str = ""


class PictureLoadResult(Wire, frozen=True, kw_only=True):
    """The picture as base64; null if it is at `private_host`, in the local network or on this machine (`host:port`).

    Any other failure is an error.
    """

    image: ImageBlock | None = None
    private_host: str = ""


PICTURE_LOAD = Method(
    "picture/load",
    PictureLoadParams,
    PictureLoadResult,
    False,
    "Load a picture from the web, without storing it.",
)

METHODS = (PICTURE_LOAD,)
