"""Tools and MCP servers: the state of each server with its log, all tools with their use, and who has them."""

import shlex
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFormLayout, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.client.safe_text import escape_hidden, escape_hidden_line
from app.protocol.servers import McpSaveParams, McpServer, ToolInfo
from app.window.stores.catalog import DEFAULT, PersonalityStore
from app.window.stores.tools import ToolStore
from app.window.theme.style import Tone, push_button
from app.window.theme.theme import Theme
from app.window.views.settings.page import SettingsPageView, hairline
from app.window.widgets.code_excerpt import CodeExcerptView
from app.window.widgets.combo_box import ComboBox
from app.window.widgets.containers import Card
from app.window.widgets.empty_state import EmptyStateView
from app.window.widgets.labels import TextLabel, one_line

_TEXT = "What agents can use. Servers of the Model Context Protocol bring tools of other programs."
_NO_SERVERS = "A server is a program, or an address on the web, that offers tools. It starts when a task needs it."
_ABOUT = "A command such as uvx mcp-server-time, or an address that begins with https://. Keys: errand mcp add --env."
_LOG_LINES = 12
_DESCRIPTION = 160


def server_state(server: McpServer) -> tuple[str, Tone]:
    """The state of a server as a text for people."""
    if not server.enabled:
        return "off", "muted"
    match server.state:
        case "ready":
            count = len(server.tools)
            return f"ready, {count} tool{'s' if count != 1 else ''}", "done"
        case "idle":
            return "starts when a task needs it", "muted"
        case "starting":
            return "starting …", "muted"
        case "failed":
            return f"failed, and is tried again when needed. {server.problem}", "failed"
        case "given_up":
            return f"failed too often. {server.problem}", "failed"
        case "needs_login":
            return f"wants a key or a login. {server.problem}", "waiting"


class McpServerRowView(QWidget):
    """One server with what can be done to it; `remove_requested` comes after a confirmation."""

    remove_requested = Signal()
    restart_requested = Signal()
    log_requested = Signal()
    switched = Signal(bool)

    def __init__(self, theme: Theme, server: McpServer) -> None:
        super().__init__()
        name = escape_hidden_line(server.name)
        text, tone = server_state(server)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(TextLabel(theme, name, bold=True))
        words.addWidget(TextLabel(theme, escape_hidden(text), tone=tone, wrap=True))
        switch = QCheckBox("On")
        switch.setChecked(server.enabled)
        switch.setAccessibleName(f"Use {name}")
        switch.toggled.connect(self.switched)
        self._log = CodeExcerptView(theme, f"Log of {name}", most_lines=_LOG_LINES)
        self._log.hide()
        log, restart = push_button("Log", "quiet"), push_button("Restart" if server.process_id else "Start")
        log.setAccessibleName(f"Log of {name}")
        restart.setAccessibleName(f"{restart.text()} {name}")
        restart.setVisible(server.enabled)
        self._remove, self._confirm = push_button("Remove …"), push_button("Remove", "danger")
        self._keep = push_button("Keep")
        self._remove.setAccessibleName(f"Remove {name}")
        self._confirm.setAccessibleName(f"Yes, remove {name} with its keys")
        self._keep.setAccessibleName(f"Keep {name}")
        log.clicked.connect(self.log_requested)
        restart.clicked.connect(self.restart_requested)
        self._remove.clicked.connect(partial(self._show_question, True))
        self._keep.clicked.connect(partial(self._show_question, False))
        self._confirm.clicked.connect(self.remove_requested)
        head = QHBoxLayout()
        head.setSpacing(theme.tokens.space_close)
        head.addLayout(words, 1)
        for widget in (switch, log, restart, self._remove, self._confirm, self._keep):
            head.addWidget(widget, 0, Qt.AlignmentFlag.AlignTop)
        started = CodeExcerptView(theme, f"What {name} starts or opens", most_lines=2)
        started.set_text(escape_hidden(shlex.join(server.command) or server.url))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        column.addLayout(head)
        column.addWidget(started)
        column.addWidget(self._log)
        self._show_question(False)

    @property
    def shows_log(self) -> bool:
        return self._log.isVisible()

    def show_log(self, text: str) -> None:
        self._log.set_text(escape_hidden(text) or "It has written nothing since the engine started.")
        self._log.show()

    def hide_log(self) -> None:
        self._log.hide()

    def _show_question(self, asked: bool) -> None:
        self._remove.setVisible(not asked)
        self._confirm.setVisible(asked)
        self._keep.setVisible(asked)


class ToolRowView(QWidget):
    """One tool; `switched` gives it to the chosen personality, or takes it."""

    switched = Signal(bool)

    def __init__(self, theme: Theme, tool: ToolInfo, personality_id: str) -> None:
        super().__init__()
        name = escape_hidden_line(tool.name)
        box = QCheckBox()
        box.setAccessibleName(f"The agent has {name}")
        box.setChecked(personality_id in tool.personalities)
        box.toggled.connect(self.switched)
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(TextLabel(theme, name, bold=True))
        about = one_line(escape_hidden(tool.description), _DESCRIPTION)
        words.addWidget(TextLabel(theme, about, tone="muted", wrap=True))
        words.addWidget(TextLabel(theme, _facts(tool), tone="waiting" if tool.changed else "muted", wrap=True))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.tokens.space_close)
        row.addWidget(box, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(words, 1)


def _facts(tool: ToolInfo) -> str:
    tiers = {"free": "touches nothing", "read": "reads", "write": "reads and writes", "run": "runs programs"}
    origin = f"server {escape_hidden_line(tool.origin)}" if tool.origin else "of Errand"
    used = f"last used {tool.last_used_at.astimezone():%d %b %Y, %H:%M}" if tool.last_used_at else "not used lately"
    changed = ("its description has changed: rules do not hold",) if tool.changed else ()
    return " · ".join((tiers[tool.tier] if not tool.origin else "another program", origin, used, *changed))


class McpServerForm(Card):
    """Name and command or address of a new server; `entered` gives the params of `mcp/save`."""

    entered = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._name, self._what = QLineEdit(), QLineEdit()
        self._name.setAccessibleName("Name of the server")
        self._what.setAccessibleName("Command or address of the server")
        self._what.setPlaceholderText("uvx mcp-server-time")
        self._name.setPlaceholderText("time")
        self._problem = TextLabel(theme, tone="failed", wrap=True)
        self._problem.hide()
        add, cancel = push_button("Add server", "primary"), push_button("Cancel")
        fields = QFormLayout()
        fields.setSpacing(theme.tokens.space_close)
        fields.addRow("Name", self._name)
        fields.addRow("Command or address", self._what)
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.tokens.space_close)
        buttons.addWidget(add)
        buttons.addWidget(cancel)
        buttons.addStretch(1)
        inside = self.body
        inside.addWidget(TextLabel(theme, _ABOUT, tone="muted", wrap=True))
        inside.addLayout(fields)
        inside.addWidget(self._problem)
        inside.addLayout(buttons)
        add.clicked.connect(self._on_entered)
        self._what.returnPressed.connect(self._on_entered)
        cancel.clicked.connect(self.hide)
        self.hide()

    def open_form(self) -> None:
        self._problem.hide()
        self.show()
        self._name.setFocus()

    def close_form(self) -> None:
        self._name.clear()
        self._what.clear()
        self.hide()

    def show_problem(self, text: str) -> None:
        self._problem.setText(text)
        self._problem.show()

    def _on_entered(self) -> None:
        name, what = self._name.text().strip(), self._what.text().strip()
        if what.startswith(("http://", "https://")):
            self.entered.emit(McpSaveParams(name=name, url=what))
            return
        try:
            words = tuple(shlex.split(what))
        except ValueError as error:
            self.show_problem(f"The command cannot be read: {error}.")
            return
        self.entered.emit(McpSaveParams(name=name, command=words))


class ToolsPageView(SettingsPageView):
    def __init__(self, theme: Theme, tools: ToolStore, personalities: PersonalityStore) -> None:
        super().__init__(theme, "Tools", _TEXT)
        self._tools = tools
        self._personalities = personalities
        self._chosen = DEFAULT
        self._logs: dict[str, McpServerRowView] = {}
        self._with_log: set[str] = set()
        self._shown: object = None
        self._form = McpServerForm(theme)
        add = push_button("Add a server …")
        add.clicked.connect(self._form.open_form)
        self.top.addWidget(add, 0, Qt.AlignmentFlag.AlignLeft)
        self.top.addWidget(self._form)
        self._form.entered.connect(self._on_entered)
        tools.changed.connect(self._show)
        tools.failed.connect(self.show_failure)
        tools.log_loaded.connect(self._on_log_loaded)

    def load(self) -> None:
        self._tools.show(None)

    def _on_entered(self, params: McpSaveParams) -> None:
        self._tools.save(params, self._form.close_form, self._form.show_problem)

    def _show(self) -> None:
        shown = (self._tools.servers, self._tools.tools, self._chosen, self._personalities.all)
        if shown == self._shown:
            return  # a row keeps its focus and an open confirmation
        self._shown = shown
        self.clear_rows()
        self._logs = {}
        servers = self._tools.servers or ()
        if not servers:
            self.rows.addWidget(EmptyStateView(self.theme, "wrench", "No servers yet", _NO_SERVERS))
        for server in servers:
            self.rows.addWidget(self._server_row(server))
            self.rows.addWidget(hairline())
        self.rows.addWidget(self._personality_choice())
        for tool in self._tools.tools or ():
            row = ToolRowView(self.theme, tool, self._chosen)
            row.switched.connect(partial(self._on_switched, tool.name))
            self.rows.addWidget(row)

    def _server_row(self, server: McpServer) -> McpServerRowView:
        row = self._logs[server.name] = McpServerRowView(self.theme, server)
        row.remove_requested.connect(partial(self._tools.remove, server.name))
        row.restart_requested.connect(partial(self._tools.restart, server))
        row.log_requested.connect(partial(self._on_log_requested, server))
        row.switched.connect(partial(self._on_server_switched, server.name))
        if server.name in self._with_log:
            self._tools.load_log(server)
        return row

    def _personality_choice(self) -> QWidget:
        every = self._personalities.all
        names = tuple(escape_hidden_line(one.name) for one in every)
        choice = ComboBox(names)
        choice.setAccessibleName("Whose tools")
        ids = [one.id for one in every]
        if self._chosen in ids:
            choice.setCurrentIndex(ids.index(self._chosen))
        choice.currentIndexChanged.connect(partial(self._on_chosen, ids))
        panel = QWidget()
        row = QHBoxLayout(panel)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(self.theme.tokens.space_close)
        row.addWidget(TextLabel(self.theme, "Tools of agents with the personality", bold=True))
        row.addWidget(choice)
        row.addStretch(1)
        return panel

    def _on_chosen(self, ids: list[str], index: int) -> None:
        self._chosen = ids[index]
        self._show()

    def _on_switched(self, tool: str, on: bool) -> None:
        self._tools.switch(tool, self._chosen, on=on)

    def _on_server_switched(self, name: str, on: bool) -> None:
        self._tools.set_enabled(name, enabled=on)

    def _on_log_requested(self, server: McpServer) -> None:
        if server.name in self._with_log:
            self._with_log.discard(server.name)
            self._logs[server.name].hide_log()
        else:
            self._with_log.add(server.name)
            self._tools.load_log(server)

    def _on_log_loaded(self, name: str, text: str) -> None:
        if name in self._logs:
            self._logs[name].show_log(text)
