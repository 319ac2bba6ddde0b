"""Rings at the window that is open already, for a second start of it. Needs no Qt: it is over before Qt is loaded."""

import socket
import time
from pathlib import Path

import msgspec

from app.regular_file import read_regular

_ANSWER_S = 2.0
_PAUSE_S = 0.05
_LARGEST = 64_000


class Address(msgspec.Struct, frozen=True):
    """What an open window writes into its file, for its owner alone to read."""

    port: int
    token: str


class Wish(msgspec.Struct, frozen=True):
    """`what` is "show", "quick" or "open" with a conversation.

    `activation` is what the desktop gave the second start so that a window may come to the front.
    """

    token: str
    what: str
    conversation_id: str = ""
    activation: str = ""


def ring(file: Path, what: str, conversation_id: str = "", activation: str = "", patience_s: float = 5.0) -> bool:
    """False if no window has taken the wish in this time: one that has just been started needs a moment."""
    give_up_at = time.monotonic() + patience_s
    while not _rung(file, what, conversation_id, activation):
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(_PAUSE_S)
    return True


def _rung(file: Path, what: str, conversation_id: str, activation: str) -> bool:
    try:
        address = msgspec.json.decode(read_regular(file, _LARGEST), type=Address)
        wish = Wish(address.token, what, conversation_id, activation)
        with socket.create_connection(("127.0.0.1", address.port), _ANSWER_S) as line:
            line.sendall(msgspec.json.encode(wish) + b"\n")
            return line.recv(8) == b"ok\n"
    except (OSError, msgspec.DecodeError):
        return False
