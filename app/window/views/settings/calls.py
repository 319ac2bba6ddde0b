"""What the settings need of the window's line to the engine."""

from collections.abc import Callable, Coroutine
from typing import Protocol, TypeVar

from app.protocol.struct import Wire
from app.protocol.wire import Method

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)


class Calls(Protocol):
    """`spawn` runs what a slot began and tells `failed`, in words, what was refused; `Session` is one."""

    async def call(self, method: Method[P, R], params: P) -> R: ...

    def spawn(self, work: Coroutine[None, None, None], failed: Callable[[str], None] | None = None) -> None: ...
