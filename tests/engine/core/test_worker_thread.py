"""Whatever comes of a call in a worker thread, the coroutine that waits for it goes on."""

import asyncio
import threading
from collections.abc import Callable, Generator

import pytest

from errand.engine.core.worker_thread import WorkerThread, hand_over
from tests.support.limits import WAIT_LIMIT_S


@pytest.fixture
def thread() -> Generator[WorkerThread]:
    worker = WorkerThread("worker of a test")
    yield worker
    worker.close()


class Unprintable(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


class Unmakeable(Exception):
    def __init__(self) -> None:
        raise ZeroDivisionError


def raising(error: BaseException | type[BaseException]) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


async def outcome(thread: WorkerThread, work: Callable[[], object]) -> BaseException | object:
    async with asyncio.timeout(WAIT_LIMIT_S):
        try:
            return await thread.run(work)
        except Exception as error:  # noqa: BLE001 -- compared by the test
            return error


@pytest.mark.parametrize(
    ("raised", "seen"),
    [
        (ValueError("no"), ValueError),
        (StopIteration(1), RuntimeError),
        (StopAsyncIteration(), StopAsyncIteration),
        (asyncio.CancelledError(), RuntimeError),
        (Unprintable(), Unprintable),
        (Unmakeable, ZeroDivisionError),
        (ExceptionGroup("several", [ValueError()]), ExceptionGroup),
        (asyncio.InvalidStateError(), asyncio.InvalidStateError),
    ],
)
async def test_an_error_reaches_who_waits_and_the_next_call_works(
    thread: WorkerThread, raised: BaseException | type[BaseException], seen: type[Exception]
) -> None:
    error = await outcome(thread, raising(raised))
    assert type(error) is seen
    assert await outcome(thread, lambda: 5) == 5


async def test_a_cancelled_error_in_the_thread_does_not_cancel_who_waits(thread: WorkerThread) -> None:
    waiting = asyncio.create_task(thread.run(raising(asyncio.CancelledError())))
    await asyncio.wait({waiting}, timeout=WAIT_LIMIT_S)
    assert waiting.done() and not waiting.cancelled()
    assert isinstance(waiting.exception(), RuntimeError)


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_ends_a_program_is_raised_where_the_call_is_awaited(
    thread: WorkerThread, raised: type[BaseException]
) -> None:
    async def call() -> None:
        async with asyncio.timeout(WAIT_LIMIT_S):
            await thread.run(raising(raised))

    with pytest.raises(raised):
        asyncio.run(call())


async def test_a_cancelled_caller_leaves_the_thread_to_the_others(thread: WorkerThread) -> None:
    goes_on, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        goes_on.wait(WAIT_LIMIT_S)

    waiting = asyncio.create_task(thread.run(work))
    await asyncio.to_thread(begun.wait, WAIT_LIMIT_S)
    following = asyncio.create_task(outcome(thread, lambda: "next"))
    waiting.cancel()
    await asyncio.wait({waiting})
    goes_on.set()
    assert await following == "next"


async def test_calls_that_wait_when_the_thread_is_closed_are_done_and_later_ones_refused() -> None:
    thread = WorkerThread("closed by a test")
    waiting = [asyncio.create_task(outcome(thread, lambda number=number: number)) for number in range(20)]
    await asyncio.sleep(0)
    thread.close()
    assert await asyncio.gather(*waiting) == list(range(20))
    with pytest.raises(RuntimeError, match="closed by a test"):
        async with asyncio.timeout(WAIT_LIMIT_S):
            await thread.run(lambda: None)
    thread.close()


def test_the_thread_outlives_a_loop_that_closed_before_the_call_ended(thread: WorkerThread) -> None:
    goes_on, begun = threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        goes_on.wait(WAIT_LIMIT_S)

    async def leave() -> None:
        task = asyncio.create_task(thread.run(work))
        await asyncio.to_thread(begun.wait, WAIT_LIMIT_S)
        task.cancel()

    asyncio.run(leave())
    goes_on.set()
    assert asyncio.run(outcome(thread, lambda: 7)) == 7


async def test_hand_over_calls_the_substitute_once_nobody_waits() -> None:
    result: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    abandoned = asyncio.Event()
    result.cancel()
    threading.Thread(target=hand_over, args=(lambda: 1, result, abandoned.set)).start()
    async with asyncio.timeout(WAIT_LIMIT_S):
        await abandoned.wait()
