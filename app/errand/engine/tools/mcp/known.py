"""What a person has trusted: servers of workspaces, and what the tools of servers said when they were last seen."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from errand.engine.core.errors import ConfigurationError
from errand.engine.tools.mcp.configuration import ServerSpec
from errand.engine.tools.mcp.definitions import ServerTool
from errand.protocol.base import Trust
from errand.system.regular_file import atomic_writer, read_regular

_MAX_FILE_BYTES = 16 * 1024 * 1024
_MAX_SERVERS = 1_000
_MAX_DESCRIPTION_LENGTH = 2_000


class TrustedServer(msgspec.Struct, frozen=True, kw_only=True):
    """The decision about one server of a workspace, for exactly this `fingerprint`."""

    workspace: str
    name: str
    fingerprint: str
    is_trusted: bool
    at: datetime


class KnownTool(msgspec.Struct, frozen=True, kw_only=True):
    fingerprint: str
    description: str


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    servers: tuple[TrustedServer, ...] = ()
    tools: dict[str, dict[str, KnownTool]] = msgspec.field(default_factory=dict[str, dict[str, KnownTool]])


class KnownServers:
    """Kept in a file of the data directory. If that cannot be read, everything is asked about again."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._stored: _Stored | None = None

    def trust_of(self, spec: ServerSpec) -> Trust:
        """Return the trust in a server. One of the settings is trusted: the person entered it."""
        if not spec.workspace:
            return "trusted"
        for trusted in self._all.servers:
            if (trusted.workspace, trusted.name, trusted.fingerprint) == (spec.workspace, spec.name, spec.fingerprint):
                return "trusted" if trusted.is_trusted else "declined"
        return "unknown"

    def has_changed(self, spec: ServerSpec) -> bool:
        """Return True if a person decided about a server of this name that was another one."""
        return self.trust_of(spec) == "unknown" and any(
            (trusted.workspace, trusted.name) == (spec.workspace, spec.name) for trusted in self._all.servers
        )

    def decide(self, spec: ServerSpec, *, is_trusted: bool) -> None:
        others = [
            trusted for trusted in self._all.servers if (trusted.workspace, trusted.name) != (spec.workspace, spec.name)
        ]
        decision = TrustedServer(
            workspace=spec.workspace,
            name=spec.name,
            fingerprint=spec.fingerprint,
            is_trusted=is_trusted,
            at=datetime.now(UTC),
        )
        self._write(msgspec.structs.replace(self._all, servers=(*others, decision)[-_MAX_SERVERS:]))

    def note_tools(self, server: str, tools: Iterable[ServerTool]) -> None:
        """Record the tools that were never seen; those that have changed stay as they were."""
        before = self._all.tools.get(server, {})
        new = {tool.own_name: _known(tool) for tool in tools if tool.own_name not in before}
        if new:
            self._set_tools(server, {**before, **new})

    def has_tool_changed(self, server: str, tool: ServerTool) -> bool:
        decided = self.tool(server, tool)
        return decided is not None and decided.fingerprint != tool.fingerprint

    def tool(self, server: str, tool: ServerTool) -> KnownTool | None:
        return self._all.tools.get(server, {}).get(tool.own_name)

    def accept_tool(self, server: str, tool: ServerTool) -> None:
        """A person has seen what the tool says now."""
        self._set_tools(server, {**self._all.tools.get(server, {}), tool.own_name: _known(tool)})

    def forget_server(self, server: str) -> None:
        if server in self._all.tools:
            tools = {name: tools_of_server for name, tools_of_server in self._all.tools.items() if name != server}
            self._write(msgspec.structs.replace(self._all, tools=tools))

    @property
    def _all(self) -> _Stored:
        if self._stored is None:
            try:
                self._stored = msgspec.json.decode(read_regular(self._file, _MAX_FILE_BYTES), type=_Stored)
            except (OSError, msgspec.DecodeError):
                self._stored = _Stored()
        return self._stored

    def _set_tools(self, server: str, tools: dict[str, KnownTool]) -> None:
        others = {name: tools_of_server for name, tools_of_server in self._all.tools.items() if name != server}
        newest = dict(list(others.items())[-_MAX_SERVERS:])
        self._write(msgspec.structs.replace(self._all, tools={**newest, server: tools}))

    def _write(self, stored: _Stored) -> None:
        try:
            with atomic_writer(self._file, overwrite=True) as file:
                file.write(msgspec.json.format(msgspec.json.encode(stored), indent=1))
        except OSError as error:
            raise ConfigurationError(f"{self._file} cannot be written: {error.strerror}.") from error
        self._stored = stored


def _known(tool: ServerTool) -> KnownTool:
    return KnownTool(fingerprint=tool.fingerprint, description=tool.description[:_MAX_DESCRIPTION_LENGTH])
