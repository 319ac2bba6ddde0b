"""The window's connection to the engine: state, events as signals, calls, and the asyncio tasks that slots start."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Literal, TypeAlias, TypeVar

from PySide6.QtCore import QObject, Signal

from errand.client.dial import DIAL_ERRORS
from errand.client.errors import CallError, ConnectionLost, LaunchError
from errand.client.subscription import ConnectionDown, ConnectionMessage, ConnectionRestored
from errand.protocol.base import Method, Wire
from errand.protocol.engine import ENGINE_SHUTDOWN, Condition, EngineShutdownParams, HealthUpdate, SubscribeResult
from errand.protocol.events import EventRecord, Resync
from errand.text.translation import tr

if TYPE_CHECKING:
    import asyncio

    from errand.client.connection import Connection


ConnectionState: TypeAlias = Literal["connecting", "ready", "lost"]

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)

_TOO_LARGE = tr("This message is too long (up to 1,000 KB). Save it as a file and attach it.")
CALL_ERRORS = (CallError, ConnectionLost)
_CONNECT_ERRORS = (LaunchError, *CALL_ERRORS, *DIAL_ERRORS)


class EngineSession(QObject):
    """Owns the connection. `connect` finds or starts an engine; it is called again when the connection is lost.

    Emits `snapshot` (a `Snapshot` of everything) when it becomes ready for the first time, and whenever events were
    lost. `resync` follows: subscribers of a conversation must then subscribe again.
    """

    state_changed = Signal()
    snapshot = Signal(object)
    resync = Signal()
    event_received = Signal(object)
    delta_received = Signal(object)
    health_changed = Signal(object)
    failed = Signal(str)

    def __init__(self, connect: Callable[[], "Awaitable[Connection]"], parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._connect = connect
        self._connection: Connection | None = None
        self._running: set[asyncio.Task[object]] = set()
        self._state: ConnectionState = "connecting"
        self._reason = ""
        self._is_restarting = False
        self._is_resync_pending = False
        self._conditions: tuple[Condition, ...] = ()
        self._waiting: list[asyncio.Future[None]] = []  # calls made before the first connection

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The current health conditions of the engine, as far as known."""
        return self._conditions

    @property
    def state(self) -> ConnectionState:
        return self._state

    @property
    def is_connected(self) -> bool:
        """True after the first connection; before that, calls wait for it."""
        return self._connection is not None

    @property
    def reason(self) -> str:
        """Why the connection is lost; empty while it is not."""
        return self._reason

    async def start(self) -> None:
        """Connect and subscribe. The state is `lost` if no engine can be reached; call again to retry."""
        self._set_state("connecting")
        try:
            await self._open()
        finally:
            self._release_calls()

    async def _open(self) -> None:
        try:
            connection = await self._connect()
        except _CONNECT_ERRORS as error:
            self._set_state("lost", str(error))
            return
        self._connection = connection
        connection.subscribe(self._on_message)
        try:
            await self._follow_all(connection)
        except CALL_ERRORS as error:
            self._set_state("lost", str(error))
            return
        self._on_health(HealthUpdate(conditions=connection.welcome.health))
        self._set_state("ready")
        self.resync.emit()  # for conversations that were opened before the connection existed

    async def close(self) -> None:
        """Cancel pending calls and disconnect; the engine and its tasks keep running."""
        from asyncio import gather

        connection, self._connection = self._connection, None
        for task in self._running:
            task.cancel()
        await gather(*self._running, return_exceptions=True)
        self._release_calls()
        if connection is not None:
            await connection.close()

    async def end_engine(self) -> None:
        """Shut the engine down without restarting it. Raises CALL_ERRORS."""
        connection, self._connection = self._require_connection(), None  # without a connection it is not restarted
        try:
            await connection.call(ENGINE_SHUTDOWN, EngineShutdownParams())
        finally:
            await connection.close()

    def retry(self) -> None:
        """Find or start an engine again after the connection was lost."""
        if self._connection is None:
            self.spawn(self.start())
        elif self._state == "lost":
            self._restart_engine(self._connection)

    async def call(self, method: Method[P, R], params: P) -> R:
        """Return the engine's answer, an acknowledgement; state arrives as events.

        What a person does while the window starts waits for the first connection. Raises CALL_ERRORS.
        """
        await self._first_connection()
        return await self._require_connection().call(method, params)

    def send(self, method: Method[P, R], params: P, failed: Callable[[str], None]) -> None:
        """Call the engine from a slot; the result arrives as events. `failed` receives the reason if the call fails."""
        self.spawn(self.call(method, params), failed)

    async def follow(self, conversation_id: str, agent_id: str | None) -> SubscribeResult:
        """Subscribe to a conversation in full detail.

        The snapshot has the branch of the agent, by default of the first one. Events after the answer are emitted after
        it. Raises CALL_ERRORS.
        """
        return await self._require_connection().subscribe_scope(conversation_id, "full", agent_id=agent_id)

    async def unfollow(self, conversation_id: str) -> None:
        if self._connection is not None:
            await self._connection.unsubscribe_scope(conversation_id)

    def spawn(self, work: Coroutine[None, None, object], failed: Callable[[str], None] | None = None) -> None:
        """Run `work` for a slot. A failed call is reported to `failed`, by default the signal of that name."""
        from asyncio import get_event_loop  # takes 30 ms: import it after the first paint

        task = get_event_loop().create_task(work)
        self._running.add(task)
        task.add_done_callback(lambda done: self._on_done(done, failed or self.failed.emit))

    def _on_done(self, task: "asyncio.Task[object]", failed: Callable[[str], None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, CALL_ERRORS):
            failed(error_text(error))
        elif isinstance(error, Exception):
            raise error  # a bug: the event loop's handler logs it

    async def _first_connection(self) -> None:
        """Wait until the engine is connected, or cannot be reached."""
        from asyncio import get_running_loop

        if self._connection is None and self._state == "connecting":
            waiting: asyncio.Future[None] = get_running_loop().create_future()
            self._waiting.append(waiting)
            await waiting

    def _require_connection(self) -> "Connection":
        if self._connection is None:
            raise ConnectionLost(self._reason or tr("Not connected to the engine yet."))
        return self._connection

    async def _follow_all(self, connection: "Connection") -> None:
        result = await connection.subscribe_scope()
        if result.snapshot is not None:
            self.snapshot.emit(result.snapshot)

    def _on_message(self, message: ConnectionMessage) -> None:
        match message:
            case EventRecord(event=event):
                self.event_received.emit(event)
            case Resync():
                self._on_resync()
            case ConnectionDown():
                self._on_lost(message)
            case ConnectionRestored():
                self._set_state("ready")
            case HealthUpdate():
                self._on_health(message)
            case _:
                self.delta_received.emit(message)

    def _on_health(self, update: HealthUpdate) -> None:
        if update.conditions or self._conditions:
            self._conditions = update.conditions
            self.health_changed.emit(update)

    def _on_lost(self, lost: ConnectionDown) -> None:
        self._set_state("lost", lost.reason)
        if self._connection is not None:
            self._restart_engine(self._connection)

    def _on_resync(self) -> None:
        """Request one snapshot for several successive messages: each subscribed scope has its own."""
        if not self._is_resync_pending:
            self._is_resync_pending = True
            self.spawn(self._follow_again())

    async def _follow_again(self) -> None:
        self._is_resync_pending = False
        await self._follow_all(self._require_connection())
        self.resync.emit()

    def _restart_engine(self, lost: "Connection") -> None:
        if not self._is_restarting:
            self._is_restarting = True
            self.spawn(self._start_engine(lost))

    async def _start_engine(self, lost: "Connection") -> None:
        """Start a dead engine through a second connection; the lost one then reconnects by itself."""
        try:
            await (await self._connect()).close()
        except _CONNECT_ERRORS as error:
            if self._state == "lost" and self._connection is lost:
                self._set_state("lost", str(error))
        finally:
            self._is_restarting = False

    def _set_state(self, state: ConnectionState, reason: str = "") -> None:
        if (state, reason) != (self._state, self._reason):
            self._state, self._reason = state, reason
            self.state_changed.emit()

    def _release_calls(self) -> None:
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            if not call.done():
                call.set_result(None)


def error_text(error: Exception) -> str:
    """Return the text for a failed call: what happened and what to do."""
    if isinstance(error, ConnectionLost):
        return tr("{error} It restarts by itself; try again in a moment.").format(error=error)
    if isinstance(error, CallError) and error.code == "too_large":
        return _TOO_LARGE
    return str(error)
