"""Wakes the window that is already open, for a second start. Free of Qt: it runs before Qt is loaded."""

import socket
import time
from pathlib import Path

import msgspec

from errand.system.local_trust import is_valid_proof, listener_user, new_nonce, own_user, proof, read_private

_ANSWER_TIMEOUT_S = 2.0
_RETRY_PAUSE_S = 0.05
_MAX_LINE_BYTES = 8_192


class InstanceAddress(msgspec.Struct, frozen=True):
    """Written by an open window into its file; only its owner can read it."""

    port: int
    token: str


class InstanceChallenge(msgspec.Struct, frozen=True):
    """The first message of a caller."""

    nonce: str


class InstanceProof(msgspec.Struct, frozen=True):
    """The server's nonce, and its proof."""

    nonce: str
    proof: str


class WakeRequest(msgspec.Struct, frozen=True):
    """`what` is "show", "quick" or "open" with a conversation.

    `activation` is the desktop's activation token of the second start, so that a window may come to the front.
    `folder` is where it was started, if that is offered for tasks.
    """

    proof: str
    what: str
    conversation_id: str = ""
    activation: str = ""
    folder: str = ""


def wake_running_window(
    file: Path, what: str, conversation_id: str = "", activation: str = "", timeout_s: float = 5.0, *, folder: str = ""
) -> bool:
    """Return False if no window has accepted the request in this time: a window that has just started needs a
    moment.
    """
    give_up_at = time.monotonic() + timeout_s
    while not _send_wake_request(file, what, conversation_id, activation, folder):
        if time.monotonic() >= give_up_at:
            return False
        time.sleep(_RETRY_PAUSE_S)
    return True


def _send_wake_request(file: Path, what: str, conversation_id: str, activation: str, folder: str) -> bool:
    try:
        address = msgspec.json.decode(read_private(file), type=InstanceAddress)
        if listener_user(address.port) not in (None, own_user()):
            return False
        with (
            socket.create_connection(("127.0.0.1", address.port), _ANSWER_TIMEOUT_S) as connection,
            connection.makefile("rb") as answers,
        ):
            challenge = InstanceChallenge(new_nonce())
            connection.sendall(msgspec.json.encode(challenge) + b"\n")
            answer = msgspec.json.decode(answers.readline(_MAX_LINE_BYTES), type=InstanceProof)
            if not is_valid_proof(answer.proof, address.token, "answers", challenge.nonce, answer.nonce):
                return False
            own_proof = proof(address.token, "asks", challenge.nonce, answer.nonce)
            request = WakeRequest(own_proof, what, conversation_id, activation, folder)
            connection.sendall(msgspec.json.encode(request) + b"\n")
            return answers.readline(_MAX_LINE_BYTES) == b"ok\n"
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
