"""An MCP server: its row with state, log and trust, and the form that adds one."""

import shlex
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QPushButton, QWidget

from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.protocol.servers import McpSaveParams, McpServer
from errand.text.translation import tr, trn
from errand.text.visible_text import command_text
from errand.window.theme.style import Tone, check_box, push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, BoxPart, hbox, set_vbox
from errand.window.widgets.code_excerpt import CodeExcerptView
from errand.window.widgets.containers import Card
from errand.window.widgets.forms.confirmation import ConfirmationView
from errand.window.widgets.forms.form import form, line_edit
from errand.window.widgets.forms.in_place_form import InPlaceFormView
from errand.window.widgets.labels import TextLabel

_ABOUT = tr(
    "Enter a command, such as uvx mcp-server-time, or an https:// address. If a sign-in is needed, you are asked when "
    "the server starts. For a server that needs a key, run errand mcp add --env in a terminal."
)
_TRUST = tr("Trust this server? You will be asked again if the file changes.")
_NO_LOG = tr("No output since the engine started.")
_LOG_LINES = 12
_STARTED_LINES = 12
_ADDRESS_LINES = 3


def server_state(server: McpServer) -> tuple[str, Tone]:
    """Return the state of a server as a text for people."""
    if not server.enabled:
        return tr("Off"), "muted"
    if not server.command and not server.url:
        return tr("Can't be used. {problem}").format(problem=server.problem), "failed"
    if server.trust == "declined":
        return tr("Not used because you don't trust it."), "muted"
    if server.trust == "unknown":
        return (
            tr("Changed since you trusted it.") if server.changed else tr("Not used until you trust it."),
            "waiting",
        )
    if server.login_address:
        return tr("Waiting for you to sign in in the browser…"), "waiting"
    if server.login_problem:
        return tr("Not signed in. {problem}").format(problem=server.login_problem), "failed"
    match server.state:
        case "ready" if server.wants_login:
            return tr("Ready, but a call needs a sign-in with more permissions."), "waiting"
        case "ready":
            tools = trn("{n} tool", "{n} tools", len(server.tools))
            text = tr("Ready, {tools}, signed in") if server.has_login else tr("Ready, {tools}")
            return text.format(tools=tools), "done"
        case "idle":
            return tr("Starts when a task needs it"), "muted"
        case "starting":
            return tr("Starting…"), "muted"
        case "failed":
            return tr("Failed. Tried again when a task needs it. {problem}").format(problem=server.problem), "failed"
        case "given_up":
            return tr("Failed several times. Restart it to try again. {problem}").format(
                problem=server.problem
            ), "failed"
        case "needs_login":
            return tr("Needs a sign-in, or a key in a header"), "waiting"


class McpServerRowView(QWidget):
    """One server with what can be done to it. `remove_requested` and `trusted` come after a confirmation."""

    remove_requested = Signal()
    restart_requested = Signal()
    log_requested = Signal()
    switched = Signal(bool)
    trusted = Signal(bool)
    login_requested = Signal()
    issuer_allowed = Signal(str)
    login_cancelled = Signal()
    logout_requested = Signal()

    def __init__(self, theme: Theme, server: McpServer) -> None:
        super().__init__()
        self._theme = theme
        self._fingerprint = server.fingerprint
        self._new_issuer = server.new_issuer
        self._name = escape_hidden_line(server.name)
        self._switch = check_box(tr("On"), name=tr("Use {name}").format(name=self._name))
        self._state = TextLabel(theme, wrap=True)
        self._origin = TextLabel(theme, tone="muted", wrap=True)
        self._started = CodeExcerptView(
            theme, tr("Command or address of {name}").format(name=self._name), most_lines=_STARTED_LINES
        )
        self._log = CodeExcerptView(theme, tr("Log of {name}").format(name=self._name), most_lines=_LOG_LINES)
        self._log.hide()
        self._log_button, self._restart = push_button(tr("Show log"), "quiet"), push_button("")
        self._remove, self._trust, self._distrust = (
            push_button(tr("Remove…")),
            push_button(tr("Trust…")),
            push_button(tr("Don't trust")),
        )
        self._login, self._logout = push_button("", "primary"), push_button(tr("Sign out"))
        self._cancel = push_button(tr("Cancel sign-in"))
        self._address = CodeExcerptView(
            theme, tr("Sign-in address of {name}").format(name=self._name), most_lines=_ADDRESS_LINES
        )
        remove = push_button(tr("Remove"), "danger", name=tr("Remove {name} and its keys").format(name=self._name))
        self._removal = ConfirmationView(theme, remove, cancel=self._refusal(tr("Keep")))
        trust = push_button(tr("Trust"), "primary", name=tr("Confirm trust in {name}").format(name=self._name))
        self._trusting = ConfirmationView(theme, trust, cancel=self._refusal(tr("Not now")))
        send_name = tr("Send the client secret of {name}").format(name=self._name)
        send = push_button(tr("Send the client secret"), "primary", name=send_name)
        self._sending = ConfirmationView(theme, send, cancel=push_button(tr("Don't send it")))
        remove.clicked.connect(self.remove_requested)
        trust.clicked.connect(partial(self.trusted.emit, True))
        send.clicked.connect(lambda: self.issuer_allowed.emit(self._new_issuer))
        self._login.clicked.connect(self._on_login_clicked)
        self._name_buttons()
        self._lay_out()
        self._switch.clicked.connect(self.switched)
        self._log_button.clicked.connect(self.log_requested)
        self._restart.clicked.connect(self.restart_requested)
        question = tr("Remove {name} and its keys?").format(name=self._name)
        self._remove.clicked.connect(partial(self._removal.ask, question))
        self._trust.clicked.connect(partial(self._trusting.ask, _TRUST))
        self._distrust.clicked.connect(partial(self.trusted.emit, False))
        self._cancel.clicked.connect(self.login_cancelled)
        self._logout.clicked.connect(self.logout_requested)
        self.show_server(server)

    @property
    def shows_log(self) -> bool:
        return not self._log.isHidden()

    def show_server(self, server: McpServer) -> None:
        """The same server in its present state; an open question stays open."""
        text, tone = server_state(server)
        is_own, is_usable = not server.workspace, bool(server.command or server.url)
        is_trusted = server.trust == "trusted" and is_usable
        if server.fingerprint != self._fingerprint:
            self._fingerprint = server.fingerprint
            self._trusting.hide()  # the question was about something else
        if server.new_issuer != self._new_issuer:
            self._new_issuer = server.new_issuer
            self._sending.hide()
        self._state.setText(escape_hidden(text).strip())
        self._state.set_tone(tone)
        self._switch.setChecked(server.enabled)
        self._switch.setVisible(is_own)
        self._restart.setText(tr("Restart") if server.process_id or server.state == "ready" else tr("Start"))
        self._restart.setAccessibleName(f"{self._restart.text()} {self._name}")
        self._restart.setVisible(server.enabled and is_trusted and not server.login_address)
        self._show_login(server, can_sign_in=server.enabled and is_trusted)
        self._log_button.setVisible(is_trusted)
        self._remove.setVisible(is_own)
        self._trust.setVisible(not is_own and is_usable and server.trust != "trusted")
        self._distrust.setVisible(not is_own and is_usable and server.trust != "declined")
        self._origin.setText(tr("From {file} in this folder").format(file=escape_hidden_line(server.file)))
        self._origin.setVisible(not is_own)
        self._started.set_text(escape_hidden(_what(server)))
        self._started.setVisible(is_usable)

    def _show_login(self, server: McpServer, *, can_sign_in: bool) -> None:
        is_waiting = bool(server.login_address)
        is_needed = server.wants_login or bool(server.login_problem) or server.state == "needs_login"
        self._login.setText(tr("Open again") if is_waiting else tr("Sign in"))
        self._login.setAccessibleName(f"{self._login.text()}: {self._name}")
        self._login.setVisible(can_sign_in and (is_waiting or is_needed))
        self._cancel.setVisible(is_waiting)
        self._logout.setVisible(server.has_login and not is_waiting)
        self._address.set_text(server.login_address)
        self._address.setVisible(is_waiting)

    def _on_login_clicked(self) -> None:
        if not self._new_issuer:
            self.login_requested.emit()
            return
        issuer = escape_hidden_line(self._new_issuer)
        self._sending.ask(tr("Send your client secret to {issuer}?").format(issuer=issuer))

    def show_log(self, text: str) -> None:
        self._log.set_text(escape_hidden(text) or _NO_LOG)
        self._log.show()
        self._log_button.setText(tr("Hide log"))

    def hide_log(self) -> None:
        self._log.hide()
        self._log_button.setText(tr("Show log"))

    def _refusal(self, text: str) -> QPushButton:
        return push_button(text, name=f"{text}: {self._name}")

    def _name_buttons(self) -> None:
        self._log_button.setAccessibleName(tr("Log of {name}").format(name=self._name))
        self._remove.setAccessibleName(tr("Remove {name}").format(name=self._name))
        self._cancel.setAccessibleName(tr("Cancel sign-in at {name}").format(name=self._name))
        self._logout.setAccessibleName(tr("Sign out of {name}").format(name=self._name))
        self._trust.setAccessibleName(tr("Trust {name}").format(name=self._name))
        self._distrust.setAccessibleName(tr("Don't trust {name}").format(name=self._name))

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        login = (self._login, self._cancel, self._logout)
        others = (self._restart, self._trust, self._distrust, self._remove)
        controls = (self._switch, self._log_button, *login, *others)
        title = TextLabel(self._theme, self._name, bold=True)
        head = hbox(
            title,
            STRETCH,
            *(BoxPart(control, alignment=Qt.AlignmentFlag.AlignVCenter) for control in controls),
            spacing=tokens.space_close,
        )
        questions = (self._sending, self._trusting, self._removal)
        set_vbox(
            self,
            head,
            self._state,
            self._origin,
            self._started,
            self._address,
            *questions,
            self._log,
            spacing=tokens.space_tight,
        )


def _what(server: McpServer) -> str:
    """Its command or address; of a server that a person decides about, all that would be started."""
    return server.started if server.workspace else command_text(server.command) or server.url


class McpServerForm(InPlaceFormView):
    """The name and the command or address of a new server. `entered` gives the params of `mcp/save`."""

    entered = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._name = line_edit(tr("Server name"), "time")
        self._what = line_edit(tr("Server command or address"), "uvx mcp-server-time")
        self._client = line_edit(tr("Sign-in client ID"), tr("Only if you registered Errand with the server"))
        self._port = line_edit(tr("Sign-in port"), tr("8765 if registered for http://127.0.0.1:8765/callback"))
        self._problem = TextLabel(theme, tone="failed", wrap=True)
        self._problem.hide()
        self._add, cancel = push_button(tr("Add server"), "primary"), push_button(tr("Cancel"))
        self._fields = form(
            theme,
            (tr("Name"), self._name),
            (tr("Command or address"), self._what),
            (tr("Client ID"), self._client),
            (tr("Port"), self._port),
            column_spacing=theme.tokens.space_close,
        )
        card = Card(theme)
        card.body.addWidget(TextLabel(theme, _ABOUT, tone="muted", wrap=True))
        card.body.addLayout(self._fields)
        card.body.addWidget(self._problem)
        card.body.addLayout(self.row(self._add, cancel))
        set_vbox(self, card)
        self._add.clicked.connect(self._on_entered)
        for field in (self._name, self._what, self._client, self._port):
            field.textChanged.connect(self._on_edited)
            field.returnPressed.connect(self._on_entered)
        cancel.clicked.connect(self.close_form)

    def open_form(self) -> None:
        self._on_edited()
        self.show()
        self._name.setFocus()

    def close_form(self) -> None:
        for field in (self._name, self._what, self._client, self._port):
            field.clear()
        super().close_form()

    def show_problem(self, text: str) -> None:
        self._problem.setText(text)
        self._problem.show()

    def _on_edited(self) -> None:
        self._problem.hide()
        self._add.setEnabled(bool(self._name.text().strip() and self._what.text().strip()))
        for field in (self._client, self._port):
            self._fields.setRowVisible(field, self._is_address)

    @property
    def _is_address(self) -> bool:
        return self._what.text().strip().startswith(("http://", "https://"))

    def _on_entered(self) -> None:
        if not self._add.isEnabled():
            return
        name, what = self._name.text().strip(), self._what.text().strip()
        if self._is_address:
            client, port = self._client.text().strip(), self._port.text().strip() or "0"
            if not (port.isascii() and port.isdecimal() and len(port) <= 5):
                self.show_problem(tr("The port must be a number from 1024 to 65535."))
                return
            self.entered.emit(McpSaveParams(name=name, url=what, client_id=client, callback_port=int(port)))
            return
        try:
            command = tuple(shlex.split(what))
        except ValueError:
            self.show_problem(tr("The command is incomplete: a closing quote, or a character after \\, is missing."))
            return
        self.entered.emit(McpSaveParams(name=name, command=command))
