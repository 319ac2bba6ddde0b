"""Pictures that a reply names by their address: the state of each, and the links that load them.

Nothing is loaded without a click, and then by the engine.
"""

import os
from dataclasses import dataclass
from typing import Literal, Protocol
from urllib.parse import urlsplit

from PySide6.QtCore import SignalInstance

from errand.client.safe_text import plain
from errand.protocol.blocks import ImageBlock

# `private`: it is in the local network or on this machine, which is asked about first.
PictureStatus = Literal["unloaded", "loading", "loaded", "private", "failed"]
PictureAction = Literal["load", "load_private", "enlarge"]

# No text can have a link that begins so.
_SCHEME = f"errand-{os.urandom(8).hex()}"
_ACTIONS: dict[str, PictureAction] = {"load": "load", "load_private": "load_private", "enlarge": "enlarge"}
_MAX_HOST_LENGTH = 60


@dataclass(frozen=True, slots=True)
class WebPicture:
    """`image` is set if it is loaded; `reason` says why it failed, or where it is if it is `private` (`host:port`)."""

    status: PictureStatus = "unloaded"
    image: ImageBlock | None = None
    reason: str = ""


class PictureActions(Protocol):
    """Intents; results arrive through `changed`, which gives the address."""

    @property
    def changed(self) -> SignalInstance: ...

    def picture(self, url: str) -> WebPicture: ...

    def load(self, url: str, *, is_private_allowed: bool = False) -> None: ...


def host_of_picture(url: str) -> str:
    """Return the host to load a picture from; empty if the address is not one of the web."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    return plain(host)[:_MAX_HOST_LENGTH] if parts.scheme.lower() in ("http", "https") else ""


def picture_link(action: PictureAction, url: str) -> str:
    return f"{_SCHEME}:{action}:{url}"


def parse_picture_link(link: str) -> tuple[PictureAction, str] | None:
    """None for the link of a text."""
    scheme, _, rest = link.partition(":")
    name, _, url = rest.partition(":")
    action = _ACTIONS.get(name)
    return (action, url) if scheme == _SCHEME and action is not None else None


def address_of_link(link: str) -> str:
    """Return the part of a link that is shown and copied."""
    parsed = parse_picture_link(link)
    return link if parsed is None else parsed[1]
