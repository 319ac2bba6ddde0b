"""A plugin for pytest that takes the files to run from the pool, one after the other.

Fixtures of session scope live as long as the worker. A file is imported when its turn comes.
"""

import gc
import socket
import time
from collections import Counter
from collections.abc import Iterator

import msgspec
import pytest

from tests.pool.messages import FileDone, FileWanted, Message, TestFailed

_MAX_TEXT_LENGTH = 50_000


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pool", type=int, required=True, help="descriptor of the socket to the pool")


def pytest_configure(config: pytest.Config) -> None:
    pool = socket.socket(fileno=config.getoption("--pool"))
    pool.set_inheritable(False)
    config.pluginmanager.register(_Worker(pool))


class _Worker:
    def __init__(self, pool: socket.socket) -> None:
        self._pool = pool
        self._replies = pool.makefile("r", encoding="utf-8")
        self._modules: dict[str, pytest.Collector] = {}
        self._outcomes = Counter[str]()
        self._file_began_at = 0.0

    def pytest_collection(self, session: pytest.Session) -> bool:
        """Find the files without importing them."""
        session.perform_collect(genitems=False)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: "list[pytest.Collector | pytest.Item]") -> None:
        """Enter all folders at the first call: later pytest drops each conftest.py whose folder was not entered."""
        if not self._modules:
            folders = [node for node in items if isinstance(node, pytest.Collector)]
            self._modules.update((module.nodeid, module) for folder in folders for module in _modules(folder))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests. The next file is taken before the last test of a file, so that fixtures of both stay."""
        self._file_began_at = time.monotonic()
        items = self._items(session)
        item = next(items, None)
        while item is not None:
            next_item = next(items, None)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=next_item)
            if next_item is None or next_item.location[0] != item.location[0]:
                self._tell_done(item.location[0])
            item = next_item
        return True

    def pytest_unconfigure(self) -> None:
        self._replies.close()
        self._pool.close()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._tell_failed(report)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._tell_failed(report)
        elif report.when == "call" or report.skipped:
            self._outcomes[report.outcome] += 1

    def _items(self, session: pytest.Session) -> Iterator[pytest.Item]:
        while file := self._next_file():
            session.items = [*session.genitems(self._modules[file])]
            session.testscollected += len(session.items)
            session.ihook.pytest_collection_modifyitems(session=session, config=session.config, items=session.items)
            session.ihook.pytest_collection_finish(session=session)
            if not session.items:
                self._tell_done(file)
            yield from session.items

    def _next_file(self) -> str:
        """Return the next file, or nothing after the last one and when the pool has ended."""
        self._tell(FileWanted())
        return self._replies.readline().strip()

    def _tell_done(self, file: str) -> None:
        gc.collect()  # Qt's objects are freed in this thread, not in one of an engine that a later file starts
        now = time.monotonic()
        counts = self._outcomes
        self._tell(FileDone(file, now - self._file_began_at, counts["passed"], counts["skipped"]))
        self._file_began_at = now
        self._outcomes.clear()

    def _tell_failed(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        sections = [f"--- {title} ---\n{text}" for title, text in report.sections if text]
        text = "\n".join([report.longreprtext, *sections])
        where = f" ({report.when})" if report.when in ("setup", "teardown") else ""
        self._tell(TestFailed(report.nodeid + where, text[-_MAX_TEXT_LENGTH:]))

    def _tell(self, message: Message) -> None:
        self._pool.sendall(msgspec.json.encode(message) + b"\n")


def _modules(node: pytest.Collector) -> Iterator[pytest.Collector]:
    if not isinstance(node, pytest.Directory):
        yield node
        return
    report = node.ihook.pytest_make_collect_report(collector=node)
    if report.failed:
        node.ihook.pytest_collectreport(report=report)
    for below in report.result or ():
        yield from _modules(below)
