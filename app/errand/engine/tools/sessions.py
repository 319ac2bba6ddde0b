"""What tools keep for a conversation between calls and tasks: a working folder, an open page, a Python session."""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar, cast

_logger = logging.getLogger(__name__)
_NO_CONVERSATION = ""


class ToolSession(Protocol):
    """The state of one tool in one conversation, with the processes that belong to it."""

    @property
    def is_empty(self) -> bool:
        """True if the next task would not notice that it was closed."""
        ...

    async def close(self) -> None:
        """End everything that it started, and wait for that. Called once."""
        ...


class RestingSession(ABC):
    """A `ToolSession` whose processes could keep the processor busy when no task runs."""

    @abstractmethod
    async def rest(self) -> None:
        """End what keeps the processor busy: the last task of the conversation has ended."""


S = TypeVar("S", bound=ToolSession)


class ToolSessions:
    """The sessions of all conversations. They end when a conversation is archived or deleted, or the engine ends.

    Those that hold nothing end with the last task of their conversation.
    """

    def __init__(self) -> None:
        self._open: dict[tuple[str, type[ToolSession]], ToolSession] = {}
        self._is_closed = False

    def find(self, conversation_id: str, kind: type[S]) -> S | None:
        """Return the session of this kind, if the conversation has one."""
        return cast(S | None, self._open.get((conversation_id, kind)))

    def all_of(self, kind: type[S]) -> tuple[S, ...]:
        """Return the sessions of this kind of all conversations."""
        return tuple(cast(S, session) for (_, its), session in self._open.items() if its is kind)

    def conversations(self) -> frozenset[str]:
        """Return the ids of those that have a session."""
        return frozenset(conversation_id for conversation_id, _ in self._open) - {_NO_CONVERSATION}

    def get(self, conversation_id: str, kind: type[S], make: Callable[[], S]) -> S:
        """Return the session of this kind; the first call makes it."""
        assert not self._is_closed, "tasks end before their sessions"
        session = self.find(conversation_id, kind)
        if session is None:
            session = self._open[conversation_id, kind] = make()
        return session

    async def close_one(self, conversation_id: str, kind: type[ToolSession]) -> None:
        """Close a session, if it is open; the next `get` makes a new one."""
        await self._close_all([(conversation_id, kind)])

    async def rest(self, conversation_id: str) -> None:
        """Close what a conversation without a running task does not need, as an engine lives for thousands of them.

        What stays ends what keeps the processor busy.
        """
        await self._close_all(
            [key for key, session in self._open.items() if key[0] == conversation_id and session.is_empty]
        )
        for (owner, _), resting in tuple(self._open.items()):
            if owner == conversation_id and isinstance(resting, RestingSession):
                await resting.rest()

    async def close_conversation(self, conversation_id: str) -> None:
        await self._close_all([key for key in self._open if key[0] == conversation_id])

    async def close(self) -> None:
        self._is_closed = True
        await self._close_all(list(self._open))

    async def _close_all(self, keys: list[tuple[str, type[ToolSession]]]) -> None:
        sessions = [session for key in keys if (session := self._open.pop(key, None)) is not None]
        for ended in await asyncio.gather(*(closing.close() for closing in sessions), return_exceptions=True):
            if isinstance(ended, Exception):
                _logger.error("a tool session did not end in order", exc_info=ended)


@dataclass(frozen=True, slots=True)
class ConversationSessions:
    """The sessions of one conversation, as its tools see them."""

    all: ToolSessions
    conversation_id: str

    def get(self, kind: type[S], make: Callable[[], S]) -> S:
        return self.all.get(self.conversation_id, kind, make)

    def find(self, kind: type[S]) -> S | None:
        return self.all.find(self.conversation_id, kind)

    def of_engine(self, kind: type[S], make: Callable[[], S]) -> S:
        """Return the one session of this kind for all conversations; it is closed with the engine."""
        return self.all.get(_NO_CONVERSATION, kind, make)

    async def close(self, kind: type[ToolSession]) -> None:
        await self.all.close_one(self.conversation_id, kind)


@dataclass(slots=True)
class WorkingFolder:
    """The folder where the next command of the conversation runs: `path` is below the workspace, empty for the
    workspace itself.

    The tool `shell` keeps it; file tools look there for what they do not find in the workspace.
    """

    path: str = ""

    @property
    def is_empty(self) -> bool:
        """Always: the task records the folder, and the next one begins there."""
        return True

    async def close(self) -> None:
        """Nothing runs here."""
