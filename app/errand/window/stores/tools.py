"""The tools and MCP servers, for the settings page: loaded when the page is shown, and again when something changed."""

from collections.abc import Callable

from PySide6.QtCore import QObject, QTimer, Signal

from errand.protocol.servers import (
    MCP_CANCEL_LOGIN,
    MCP_LIST,
    MCP_LOG,
    MCP_LOGIN,
    MCP_LOGOUT,
    MCP_PROMPT,
    MCP_PROMPTS,
    MCP_REMOVE,
    MCP_RESTART,
    MCP_SAVE,
    MCP_SET_ENABLED,
    MCP_TRUST,
    TOOL_LIST,
    TOOL_SWITCH,
    McpListParams,
    McpLoginParams,
    McpPromptListParams,
    McpPromptListResult,
    McpPromptParams,
    McpSaveParams,
    McpServer,
    McpServerParams,
    McpSetEnabledParams,
    McpTrustParams,
    ToolInfo,
    ToolSwitchParams,
)
from errand.window.stores.session import EngineSession

# Servers that start report several changes in a row.
_PAUSE_MS = 100


class ToolStore(QObject):
    """`tools` and `servers` are None until the engine has answered. `workspace` adds the servers its files name."""

    changed = Signal()
    failed = Signal(str)
    login_begun = Signal(str)  # the address to open in a browser
    log_loaded = Signal(str, str)  # the server's name, and its log

    def __init__(self, session: EngineSession) -> None:
        super().__init__()
        self._session = session
        self._is_shown = False
        self.workspace: str | None = None
        self.tools: tuple[ToolInfo, ...] | None = None
        self.servers: tuple[McpServer, ...] | None = None
        self._timer = QTimer(self, interval=_PAUSE_MS, singleShot=True)
        self._loads = 0
        self._timer.timeout.connect(self.load)

    def show(self, workspace: str | None) -> None:
        """Load, and follow changes from now on."""
        self.workspace, self._is_shown = workspace, True
        self.load()

    def load(self) -> None:
        if self._session.is_connected:
            self._session.spawn(self._load(), self.failed.emit)

    def on_event(self) -> None:
        """A server has changed, or who uses a tool."""
        if self._is_shown:
            self._timer.start()

    def save(self, params: McpSaveParams, saved: Callable[[], None], failed: Callable[[str], None]) -> None:
        async def work() -> None:
            await self._session.call(MCP_SAVE, params)
            saved()
            await self._load()

        self._session.spawn(work(), failed)

    def remove(self, name: str) -> None:
        self._session.send(MCP_REMOVE, McpServerParams(name=name), self.failed.emit)

    def set_enabled(self, name: str, *, enabled: bool) -> None:
        self._session.send(MCP_SET_ENABLED, McpSetEnabledParams(name=name, enabled=enabled), self.failed.emit)

    def trust(self, server: McpServer, *, trusted: bool) -> None:
        params = McpTrustParams(
            name=server.name, workspace=server.workspace, fingerprint=server.fingerprint, trusted=trusted
        )
        self._session.send(MCP_TRUST, params, self.failed.emit)

    def restart(self, server: McpServer) -> None:
        self._session.send(MCP_RESTART, self._params(server), self.failed.emit)

    def login(self, server: McpServer, issuer: str = "") -> None:
        """Begin a sign-in, or join the one that waits. The client secret may go to `issuer`."""
        params = McpLoginParams(name=server.name, workspace=server.workspace or self.workspace, issuer=issuer)

        async def work() -> None:
            self.login_begun.emit((await self._session.call(MCP_LOGIN, params)).address)

        self._session.spawn(work(), self.failed.emit)

    def cancel_login(self, server: McpServer) -> None:
        self._session.send(MCP_CANCEL_LOGIN, self._params(server), self.failed.emit)

    def logout(self, server: McpServer) -> None:
        self._session.send(MCP_LOGOUT, self._params(server), self.failed.emit)

    def switch(self, tool: str, personality_id: str, *, on: bool) -> None:
        params = ToolSwitchParams(tool=tool, personality_id=personality_id, on=on)
        self._session.send(TOOL_SWITCH, params, self.failed.emit)

    def load_log(self, server: McpServer) -> None:
        async def work() -> None:
            self.log_loaded.emit(server.name, (await self._session.call(MCP_LOG, self._params(server))).text)

        self._session.spawn(work(), self.failed.emit)

    def load_prompts(
        self,
        params: McpPromptListParams,
        loaded: Callable[[McpPromptListResult], None],
        failed: Callable[[str], None],
    ) -> None:
        """The prompts of servers, for whoever asks."""

        async def work() -> None:
            loaded(await self._session.call(MCP_PROMPTS, params))

        if self._session.is_connected:
            self._session.spawn(work(), failed)

    def fill_prompt(
        self, params: McpPromptParams, filled: Callable[[str], None], failed: Callable[[str], None]
    ) -> None:
        """The text of a prompt with its arguments."""

        async def work() -> None:
            filled((await self._session.call(MCP_PROMPT, params)).text)

        self._session.spawn(work(), failed)

    def _params(self, server: McpServer) -> McpServerParams:
        return McpServerParams(name=server.name, workspace=server.workspace or self.workspace)

    async def _load(self) -> None:
        self._loads += 1
        number, params = self._loads, McpListParams(workspace=self.workspace)
        servers = (await self._session.call(MCP_LIST, params)).servers
        tools = (await self._session.call(TOOL_LIST, params)).tools
        if number == self._loads:  # else they were asked for again, and answers can come in another order
            self.servers, self.tools = servers, tools
            self.changed.emit()
