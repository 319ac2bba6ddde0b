"""What a page can do without end, and when that is too much: dialogs, windows, navigations, scripts."""

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page, Worker

# Since a call began.
_MAX_DIALOGS, _MAX_WINDOWS = 100, 20
# So many within so short a time.
_MAX_MOVES, _MOVES_S = 50, 10.0
ANSWER_S = 8.0
# Of a processor, while nothing is asked of the page: more than the animations of most pages take.
MAX_RESTING_SHARE = 0.5
# To other pages, while that is measured.
MAX_RESTING_MOVES = 1
_MEASURED_S = 1.0


class RunawayPages:
    """Counts what the pages of a window do. Each method counts one, and returns whether that was one too many."""

    def __init__(self) -> None:
        self.moves = self._dialogs = self._windows = 0
        self._moves: deque[float] = deque(maxlen=_MAX_MOVES)

    def begin_call(self) -> None:
        self._dialogs = self._windows = 0

    def is_over_by_dialog(self) -> bool:
        self._dialogs += 1
        return self._dialogs >= _MAX_DIALOGS

    def is_over_by_window(self) -> bool:
        self._windows += 1
        return self._windows >= _MAX_WINDOWS

    def is_over_by_move(self) -> bool:
        self.moves += 1
        self._moves.append(time.monotonic())
        return len(self._moves) == _MAX_MOVES and self._moves[-1] - self._moves[0] < _MOVES_S


async def lost_pages(pages: "Iterable[Page | Worker]") -> "list[Page | Worker]":
    """Return the closed pages. Raises TimeoutError if one does not answer: a script or a dialog keeps it busy."""
    asked = tuple(pages)
    async with asyncio.timeout(ANSWER_S):
        answers = await asyncio.gather(*(page.evaluate("1") for page in asked), return_exceptions=True)
    return [page for page, answer in zip(asked, answers, strict=True) if "Closed" in type(answer).__name__]


async def busy_share(session: "CDPSession") -> float:
    """Return the part of a second that the main thread of a page works now. Closes the session."""
    send = session.send  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] -- a bare Dict
    async with asyncio.timeout(ANSWER_S + _MEASURED_S):
        await send("Performance.enable")
        before_s = _task_duration_s(await send("Performance.getMetrics"))  # pyright: ignore[reportUnknownArgumentType] -- a bare Dict
        await asyncio.sleep(_MEASURED_S)
        after_s = _task_duration_s(await send("Performance.getMetrics"))  # pyright: ignore[reportUnknownArgumentType] -- a bare Dict
        await session.detach()
    return (after_s - before_s) / _MEASURED_S


class _Metric(msgspec.Struct, frozen=True):
    name: str
    value: float


class _Metrics(msgspec.Struct, frozen=True):
    metrics: tuple[_Metric, ...]


def _task_duration_s(answer: object) -> float:
    metrics = msgspec.convert(answer, _Metrics).metrics
    return next((metric.value for metric in metrics if metric.name == "TaskDuration"), 0.0)
