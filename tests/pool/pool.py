"""A queue of test files, and processes of pytest that take the next file from it until it is empty."""

import asyncio
import signal
import socket
import sys
import tempfile
from collections import deque
from collections.abc import Sequence

import msgspec

from tests.pool.messages import FileDone, FileWanted, Message, TestFailed

_PYTEST = (sys.executable, "-m", "pytest", "-p", "tests.pool.worker", "-p", "no:cacheprovider")
_MAX_LINE_BYTES = 16 * 1024 * 1024
_MAX_OUTPUT_LENGTH = 5_000
_INTERRUPT_S = 30.0
_ENDED_IN_ORDER = (0, 1, 5)  # all passed, some failed, there was no file left


class Pool:
    """Runs test files; `folder` is where pytest looks for them."""

    def __init__(self, files: Sequence[str], folder: str = "tests") -> None:
        self._queue = deque(files)
        self._folder = folder
        self._count = len(files)
        self.done: list[FileDone] = []
        self.failures: list[TestFailed] = []
        self.crashed: list[TestFailed] = []
        """Files whose worker was ended by a signal, with its output. They run once more, in another process."""

    async def run(self, workers: int) -> None:
        """Run all files. Cancelled, it interrupts the workers and waits for their end."""
        async with asyncio.TaskGroup() as group:
            for _ in range(workers):
                group.create_task(self._keep_working())

    def summary(self) -> str:
        """Return each failure as pytest prints it, the slowest files, and the counts."""
        slowest = sorted(self.done, key=lambda done: -done.seconds)[:10]
        passed, skipped = sum(done.passed for done in self.done), sum(done.skipped for done in self.done)
        return "\n".join(
            [
                *(f"\n===== {failure.test} =====\n{failure.text}" for failure in self.failures),
                "\nslowest files:",
                *(f"{done.seconds:8.2f} s  {done.file}" for done in slowest),
                "",
                *(f"CRASHED {crash.test}\n{crash.text}" for crash in self.crashed),
                *(f"FAILED {failure.test}" for failure in self.failures),
                f"{len(self.failures)} failed, {passed} passed, {skipped} skipped "
                f"in {len(self.done)} of {self._count} files",
            ]
        )

    async def _keep_working(self) -> None:
        """Run workers, one after the other, until the queue is empty: one that crashes is replaced."""
        while self._queue and await self._work():
            pass

    async def _work(self) -> bool:
        """Run a worker. Returns False for one that ended before it took a file, as all others would."""
        ours, theirs = socket.socketpair()
        with tempfile.TemporaryFile() as output:
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *_PYTEST,
                    f"--pool={theirs.fileno()}",
                    self._folder,
                    pass_fds=[theirs.fileno()],
                    stdout=output,
                    stderr=asyncio.subprocess.STDOUT,
                    start_new_session=True,  # Ctrl+C in the terminal reaches a worker once, from here
                )
            reader, writer = await asyncio.open_connection(sock=ours, limit=_MAX_LINE_BYTES)
            had = len(self._queue)
            try:
                files = await self._serve(reader, writer)
                code = await process.wait()
            except asyncio.CancelledError:
                await _interrupt(process)
                raise
            finally:
                writer.close()
            if code not in _ENDED_IN_ORDER or files:
                output.seek(0)
                text = output.read().decode(errors="replace")[-_MAX_OUTPUT_LENGTH:]
                if code < 0 and files and not any(crash.test == files[0] for crash in self.crashed):
                    self.crashed.append(TestFailed(files[0], text))
                    _say(f"CRASHED with {code}, runs again: {files[0]}")
                    self._queue.appendleft(files[0])
                else:
                    self._fail(TestFailed(f"{files[0] if files else 'a worker'}: pytest ended with {code}", text))
                self._queue.extendleft(files[1:])  # taken, but not begun
            return len(self._queue) < had or bool(files)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> list[str]:
        """Hand out files until the worker ends. Returns those that it had begun and did not finish."""
        files: list[str] = []
        while line := await _read_line(reader):
            message: Message = msgspec.json.decode(line, type=Message)
            match message:
                case FileWanted():
                    next_files = [self._queue.popleft()] if self._queue else []
                    files += next_files
                    writer.write(f"{''.join(next_files)}\n".encode())
                case FileDone() as done:
                    files.remove(done.file)
                    self.done.append(done)
                    _say(f"{len(self.done):4}/{self._count} {done.seconds:7.2f} s {done.passed:5} passed  {done.file}")
                case TestFailed() as failure:
                    self._fail(failure)
        return files

    def _fail(self, failure: TestFailed) -> None:
        self.failures.append(failure)
        _say(f"FAILED {failure.test}")


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readline()
    except ConnectionResetError:
        return b""


async def _interrupt(process: asyncio.subprocess.Process) -> None:
    """End a worker as Ctrl+C does, so that it ends what its tests have started."""
    if process.returncode is None:
        process.send_signal(signal.SIGINT)
        try:
            async with asyncio.timeout(_INTERRUPT_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
