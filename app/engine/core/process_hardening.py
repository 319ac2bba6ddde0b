"""Process set-up: secrets out of /proc, no core dumps, one malloc arena."""

import ctypes
import os
import sys
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from app.environment import keys_in, without_secrets

_PR_SET_DUMPABLE = 4  # linux/prctl.h
# The variable that tells a process that began anew which descriptor its keys are in.
_DESCRIPTOR = "ERRAND_START_DESCRIPTOR"

# M_ARENA_MAX of glibc's malloc.h.
_ARENA_MAX = -8


def forbid_dumps() -> None:
    """No other process of the same user may read this one's memory or environment; it writes no core dump either."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def take_keys() -> Mapping[str, str]:
    """The keys and addresses of models that this process was started with, gone from its environment.

    Where the environment holds secrets, the program is started again without them, in the same process, with the keys
    in a pipe. Call it before anything else. Exits for more keys than a pipe holds.
    """
    keys = keys_in(os.environ) | _received()
    clean = without_secrets(os.environ)
    if len(clean) == len(os.environ):
        return keys
    if os.name == "posix":
        _begin_anew(clean, keys)
    for name in set(os.environ) - set(clean):  # this changes what others see where the system is Windows
        del os.environ[name]
    return keys


def _begin_anew(environment: Mapping[str, str], keys: Mapping[str, str]) -> None:
    receiver, sender = os.pipe()
    data = msgspec.json.encode(keys)
    os.set_blocking(sender, False)
    try:
        is_sent = os.write(sender, data) == len(data)
    except BlockingIOError:
        is_sent = False
    os.close(sender)
    if not is_sent:
        sys.exit("errand: The keys in the environment are larger than 64 KB. Unset variables that are none.")
    os.set_inheritable(receiver, True)
    is_bundle = bool(getattr(sys, "frozen", False))
    arguments = sys.argv[1:] if is_bundle else sys.orig_argv[1:]
    os.execve(sys.executable, [sys.executable, *arguments], {**environment, _DESCRIPTOR: str(receiver)})


def _received() -> dict[str, str]:
    number = os.environ.pop(_DESCRIPTOR, "")
    if not number.isdecimal():
        return {}
    with open(int(number), "rb") as pipe:
        return msgspec.json.decode(pipe.read(), type=dict[str, str])


def limit_malloc_arenas() -> None:
    """From now on all threads share one heap, where each would have its own.

    Twenty tasks at a time grew an engine from 57 to 100 MB in eight minutes; with this it stays at 80 to 84.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # musl has neither heaps for threads nor this function
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
