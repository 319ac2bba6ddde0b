"""Tools and MCP servers: the state of each server with its log, all tools with their use, and who has them."""

from collections.abc import Callable, Iterable
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QWidget

from errand.client.number_format import moment_text
from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.protocol.agents import READING
from errand.protocol.servers import McpSaveParams, McpServer, ToolInfo, ToolTier
from errand.text.translation import tr, trn
from errand.window.stores.catalog import PersonalityStore
from errand.window.stores.task_options import DEFAULT
from errand.window.stores.tools import ToolStore
from errand.window.theme.style import check_box, push_button
from errand.window.theme.theme import Theme
from errand.window.views.settings.folder_choice import FolderChoiceView
from errand.window.views.settings.mcp_servers import McpServerForm, McpServerRowView
from errand.window.views.settings.page import EngineCalls, SettingsPageView, open_in_place
from errand.window.widgets.boxes import STRETCH, at_top, fill, hbox, set_hbox, vbox
from errand.window.widgets.containers import hairline
from errand.window.widgets.empty_state import EmptyStateView
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.labels import TextLabel, one_line
from errand.window.widgets.list_column import ListColumn

_TEXT = tr("What agents can use. MCP servers add tools from other programs.")
_NO_SERVERS = tr("A server is a program or web address that offers tools. It starts when a task needs it.")
_DESCRIPTION = 160
# Each row costs about two milliseconds, and a server may offer thousands of tools.
_MAX_ROWS = 50
_TIERS: dict[ToolTier, str] = {
    "free": tr("needs no approval"),
    "read": tr("reads"),
    "write": tr("reads and makes changes"),
    "run": tr("runs programs"),
}


class ToolRowView(QWidget):
    """One tool; `switched` gives its name, and whether the chosen personality is to have it."""

    switched = Signal(str, bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._box = check_box()
        self._name = TextLabel(theme, bold=True)
        self._about = TextLabel(theme, tone="muted", wrap=True)
        self._facts = TextLabel(theme, wrap=True)
        set_hbox(
            self,
            at_top(self._box),
            fill(vbox(self._name, self._about, self._facts, spacing=2)),
            spacing=theme.tokens.space_close,
        )
        self._shown: tuple[ToolInfo, str] | None = None
        self._box.clicked.connect(self._on_clicked)

    def show_tool(self, tool: ToolInfo, personality_id: str) -> None:
        self._box.setChecked(personality_id in tool.personalities)
        if self._shown == (tool, personality_id):
            return
        self._shown, name = (tool, personality_id), escape_hidden_line(tool.name)
        self._name.setText(name)
        self._box.setAccessibleName(tr("Allow agents to use {name}").format(name=name))
        # The rest of a description tells models how to use the tool.
        first = escape_hidden(tool.description).partition("\n")[0].partition(". ")[0]
        self._about.setText(one_line(first, _DESCRIPTION).rstrip("."))
        self._facts.setText(_facts(tool, personality_id))
        self._facts.set_tone("waiting" if tool.changed else "muted")

    def _on_clicked(self, on: bool) -> None:
        assert self._shown is not None
        self.switched.emit(self._shown[0].name, on)


def _facts(tool: ToolInfo, personality_id: str) -> str:
    origin = tr("from {server}").format(server=escape_hidden_line(tool.origin)) if tool.origin else ""
    tier = tr("another program") if tool.origin else _TIERS[tool.tier]
    if personality_id in tool.readers:
        tier = tr("reads only")
    # Calls that need no approval and change nothing are not recorded.
    unused = "" if tool.tier == "free" else tr("not used recently")
    used = tr("last used {moment}").format(moment=moment_text(tool.last_used_at)) if tool.last_used_at else unused
    changed = tr("description changed; saved permissions don't apply") if tool.changed else ""
    return " · ".join(filter(None, (tier, origin, used, changed)))


class ToolsPageView(SettingsPageView):
    """`open_link` opens an address in the browser, and is False if there is none."""

    def __init__(
        self,
        theme: Theme,
        tools: ToolStore,
        personalities: PersonalityStore,
        calls: EngineCalls,
        open_link: Callable[[str], bool],
    ) -> None:
        super().__init__(theme, tr("Tools"), _TEXT)
        self._tools = tools
        self._personalities = personalities
        self._calls = calls
        self._open_link = open_link
        self._rows: list[ToolRowView] = []
        self._with_log: set[str] = set()
        self._added = ""
        # Tools, and the personalities from which their reading form was taken here.
        self._taken_readers: set[tuple[str, str]] = set()
        self._form = McpServerForm(theme)
        self._folder = FolderChoiceView(theme, calls, tr("No folder"), tr("Also show servers from this folder"))
        self._servers = ListColumn(
            theme.tokens.space_normal,
            self._server_row,
            update=McpServerRowView.show_server,
            make_empty=self._no_servers,
        )
        self._line = hairline()
        self._line.hide()
        self._tool_list = vbox(spacing=theme.tokens.space_normal)
        self._whose = ComboBox(())
        self._search = QLineEdit()
        self._more = TextLabel(theme, tone="muted", wrap=True)
        self._lay_out()
        self._form.entered.connect(self._on_entered)
        self._folder.folder_chosen.connect(lambda: tools.show(self._folder.folder))
        self._whose.activated.connect(self._show_tools)
        self._search.textChanged.connect(self._show_tools)
        tools.changed.connect(self._show)
        tools.failed.connect(self._on_failed)
        tools.log_loaded.connect(self._on_log_loaded)
        tools.login_begun.connect(self._on_login_begun)

    def load(self) -> None:
        self._tools.show(self._folder.folder)
        self._calls.spawn(self._folder.load(), self.show_failure)

    def _lay_out(self) -> None:
        tokens = self.theme.tokens
        add = push_button(tr("Add server…"))
        open_in_place(add, self._form.open_form, self._form.closed)
        self.top.addLayout(hbox(add, STRETCH, self._folder))
        self.top.addWidget(self._form)
        self._whose.setAccessibleName(tr("Personality"))
        self._whose.setEnabled(False)
        self._search.setAccessibleName(tr("Search tools"))
        self._search.setPlaceholderText(tr("Search tools"))
        self._search.setClearButtonEnabled(True)
        title = TextLabel(self.theme, tr("Tools of"), bold=True)
        whose = hbox(title, self._whose, STRETCH, self._search, spacing=tokens.space_close)
        self.rows.addLayout(self._servers)
        self.rows.addWidget(self._line)
        self.rows.addLayout(whose)
        self.rows.addLayout(self._tool_list)
        self.rows.addWidget(self._more)

    def _show(self) -> None:
        servers = {_key(server): server for server in self._tools.servers or ()}
        self._servers.show_items(servers)
        self._line.setVisible(bool(servers))
        self._show_personalities()
        self._show_tools()

    def _server_row(self, server: McpServer) -> McpServerRowView:
        row = McpServerRowView(self.theme, server)
        row.remove_requested.connect(partial(self._tools.remove, server.name))
        row.restart_requested.connect(partial(self._tools.restart, server))
        row.log_requested.connect(partial(self._on_log_requested, server))
        row.switched.connect(partial(self._on_server_switched, server.name))
        row.trusted.connect(partial(self._on_trusted, _key(server)))
        row.login_requested.connect(partial(self._tools.login, server))
        row.issuer_allowed.connect(partial(self._tools.login, server))
        row.login_cancelled.connect(partial(self._tools.cancel_login, server))
        row.logout_requested.connect(partial(self._tools.logout, server))
        if server.name in self._with_log:
            self._tools.load_log(server)
        if server.name == self._added and not server.workspace:
            self._added = ""
            self.bring_into_view(row)
        return row

    def _no_servers(self) -> EmptyStateView:
        return EmptyStateView(self.theme, "wrench", tr("No servers yet"), _NO_SERVERS)

    def _show_personalities(self) -> None:
        every = self._personalities.all
        ids: list[object] = [self._whose.itemData(index) for index in range(self._whose.count())]
        if ids != [personality.id for personality in every]:
            chosen = self._chosen
            self._whose.clear()
            for personality in every:
                self._whose.addItem(escape_hidden_line(personality.name), personality.id)
            self._whose.setCurrentIndex(max(0, self._whose.findData(chosen)))
            self._whose.setEnabled(bool(every))

    @property
    def _chosen(self) -> str:
        chosen: object = self._whose.currentData()
        return chosen if isinstance(chosen, str) else DEFAULT

    def _show_tools(self) -> None:
        search_words = self._search.text().casefold().split()
        matches = [tool for tool in self._tools.tools or () if _matches(tool, search_words)]
        visible_tools = matches[:_MAX_ROWS]
        while len(self._rows) > len(visible_tools):
            row = self._rows.pop()
            self._tool_list.removeWidget(row)
            row.hide()
            row.deleteLater()
        while len(self._rows) < len(visible_tools):
            self._rows.append(ToolRowView(self.theme))
            self._rows[-1].switched.connect(self._on_switched)
            self._tool_list.addWidget(self._rows[-1])
        for row, tool in zip(self._rows, visible_tools, strict=True):
            row.show_tool(tool, self._chosen)
        left = len(matches) - len(visible_tools)
        none = tr("No results") if search_words and not matches else ""
        self._more.show_text(
            trn("{n} more tool. Search to find it.", "{n} more tools. Search to find them.", left) if left else none
        )

    def _on_entered(self, params: McpSaveParams) -> None:
        self._added = params.name
        self._tools.save(params, self._form.close_form, self._form.show_problem)

    def _on_switched(self, tool: str, on: bool) -> None:
        """Give back the form that was taken: a list with both forms does not tell which one is meant."""
        info = next((info for info in self._tools.tools or () if info.name == tool), None)
        reads = info is not None and self._chosen in info.readers
        if not on:
            (self._taken_readers.add if reads else self._taken_readers.discard)((tool, self._chosen))
        is_reader = on and (tool, self._chosen) in self._taken_readers
        self._tools.switch(f"{tool}{READING}" if is_reader else tool, self._chosen, on=on)

    def _on_server_switched(self, name: str, on: bool) -> None:
        self._tools.set_enabled(name, enabled=on)

    def _on_trusted(self, key: str, trusted: bool) -> None:
        """Trust the server as it was shown last: the engine refuses if the file names something else by now."""
        server = next((server for server in self._tools.servers or () if _key(server) == key), None)
        if server is not None:
            self._tools.trust(server, trusted=trusted)

    def _on_log_requested(self, server: McpServer) -> None:
        if server.name in self._with_log:
            self._with_log.discard(server.name)
            self._servers.rows[_key(server)].hide_log()
        else:
            self._with_log.add(server.name)
            self._tools.load_log(server)

    def _on_log_loaded(self, name: str, text: str) -> None:
        for key, row in self._servers.rows.items():
            if key.partition("\0")[0] == name:
                row.show_log(text)

    def _on_login_begun(self, address: str) -> None:
        if not self._open_link(address):
            self.show_failure(tr("Can't open a browser. Open the address shown below the server yourself."))

    def _on_failed(self, text: str) -> None:
        """The rows show what the engine has, not what was clicked."""
        self.show_failure(text)
        self._show()


def _key(server: McpServer) -> str:
    return f"{server.name}\0{server.workspace}"


def _matches(tool: ToolInfo, words: Iterable[str]) -> bool:
    text = f"{tool.name} {tool.origin} {tool.description}".casefold()
    return all(word in text for word in words)
