"""A shorter switch interval of the interpreter while threads compute."""

import sys
from collections.abc import Generator
from contextlib import contextmanager

# The event loop waits this long for the interpreter at each of its steps while a thread computes; Python's default is
# 5 ms. Always on, it would make a tool step 0.3 ms slower.
_SHORT_S = 0.001

_depth = 0
_usual_s = sys.getswitchinterval()


@contextmanager
def short_switches() -> Generator[None]:
    """Enter it in the event loop around work in a thread that takes more than a few milliseconds."""
    global _depth, _usual_s
    if _depth == 0:
        _usual_s = sys.getswitchinterval()
        sys.setswitchinterval(_SHORT_S)
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1
        if _depth == 0:
            sys.setswitchinterval(_usual_s)
