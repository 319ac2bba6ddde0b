"""One run of a shell command: started, watched, and ended with all it started on a timeout or a cancel."""

import asyncio
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from app.engine.cancel import CancelSignal
from app.engine.tools import marks, processes, spawn
from app.engine.tools.base import ToolError, Workplace
from app.engine.tools.capture import Capture
from app.engine.tools.orphans import adopt_orphans

End = Literal["exited", "timeout", "cancelled"]
# Writers other than the command itself, such as a `>(tee log)`, have this long to finish after it.
_LAST_WORDS_S = 0.2


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command went. `ended` names what had to be ended, `running` what the command left in the background."""

    end: End
    exit_code: int | None
    seconds: float
    ended: tuple[str, ...] = ()
    running: tuple[str, ...] = ()


@cache
def shell() -> tuple[str, ...]:
    bash = shutil.which("bash")
    return (bash, "--noprofile", "--norc", "-c") if bash else ("/bin/sh", "-c")


class Command:
    """Made for one run. `stdout` and `stderr` may be looked at while it runs; `on_output` is called when they grew."""

    def __init__(self, workplace: Workplace, call_id: str, on_output: Callable[[], None]) -> None:
        self._workplace = workplace
        self._on_output = on_output
        # The id comes from a model: only a safe part of it may enter a file name.
        name = "".join(letter for letter in call_id if letter.isalnum() or letter in "-_")[-60:] or "call"
        self.stdout = Capture(workplace.output_dir / f"{name}-stdout.txt")
        self.stderr = Capture(workplace.output_dir / f"{name}-stderr.txt")

    async def run(self, line: str, working_dir: Path, timeout_s: float, cancel: CancelSignal) -> Outcome:
        adopt_orphans()
        mark = marks.new_mark(self._workplace.task_id)
        started = time.monotonic()
        try:
            child = self._start(line, working_dir, mark)
        except BaseException:
            marks.forget((mark,))
            raise
        try:
            end = await _wait(child.exit, timeout_s, cancel)
            ended = () if end == "exited" else await processes.end_call(mark)
            await self._take_rest(child)
        except asyncio.CancelledError:
            await processes.end_call(mark)
            raise
        finally:
            child.stdout.discard()
            child.stderr.discard()
            self.stdout.close()
            self.stderr.close()
        # The mark is kept until the end of the task: a look may miss a process that forks at that moment.
        running = processes.running((mark,)) if spawn.may_have_left(child.pid) else ()
        code = child.exit.result() if end == "exited" else None
        return Outcome(end, code, time.monotonic() - started, ended, running)

    def _start(self, line: str, working_dir: Path, mark: marks.Mark) -> spawn.Child:
        try:
            return spawn.start(
                [*shell(), line],
                working_dir,
                self._workplace.environment,
                mark,
                self._sink(self.stdout),
                self._sink(self.stderr),
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise ToolError(f"The command could not be started: {reason}. Working directory: {working_dir}") from error

    def _sink(self, capture: Capture) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            capture.add(data)
            self._on_output()

        return take

    async def _take_rest(self, child: spawn.Child) -> None:
        pipes = (child.stdout, child.stderr)
        for pipe in pipes:
            pipe.take_rest()
        open_ends = [pipe.ended for pipe in pipes if not pipe.ended.done()]
        if open_ends:
            await asyncio.wait(open_ends, timeout=_LAST_WORDS_S)


async def _wait(exit_code: asyncio.Future[int], timeout_s: float, cancel: CancelSignal) -> End:
    """Which comes first. One future and no tasks: most commands take 2 ms."""
    loop = asyncio.get_running_loop()
    first: asyncio.Future[End] = loop.create_future()

    def settle(end: End) -> None:
        if not first.done():
            first.set_result(end)

    def exited(future: asyncio.Future[int]) -> None:
        settle("exited")

    exit_code.add_done_callback(exited)
    timer = loop.call_later(timeout_s, settle, "timeout")
    unsubscribe = cancel.subscribe(lambda: settle("cancelled"))
    try:
        return await first
    finally:
        timer.cancel()
        unsubscribe()
        exit_code.remove_done_callback(exited)
