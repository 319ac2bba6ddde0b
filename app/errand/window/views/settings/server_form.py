"""A custom model server: its row, and the form for name, address and key with a test."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QLineEdit, QVBoxLayout

from errand.protocol.settings import ModelServerSaveParams, ModelServerTestParams, ModelServerTestResult, Provider
from errand.window.theme.style import Tone, push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.provider_row import TestableRowView
from errand.window.widgets.confirmation import ConfirmationView
from errand.window.widgets.containers import Card
from errand.window.widgets.labels import TextLabel

_ABOUT = "Any server that speaks OpenAI's interface: vLLM, llama.cpp, LiteLLM, or a gateway of your company."
_MAX_NAMED = 5


class ServerFormCard(Card):
    """Stores nothing before Save.

    `saved` and `tested` give the params of the call; `cancelled` is emitted on cancel."""

    saved = Signal(object)
    tested = Signal(object)
    cancelled = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._theme = theme
        self._provider: Provider | None = None
        self._removes_key = False
        self._title = TextLabel(theme, bold=True)
        self._name, self._address, self._key = QLineEdit(), QLineEdit(), QLineEdit()
        self._remove_key = push_button("Remove key", "quiet")
        self._status = TextLabel(theme, wrap=True)
        self._save, self._cancel = push_button("Save", "primary"), push_button("Cancel")
        self._test = push_button("Test")
        self._asked: ModelServerTestParams | None = None
        self._test.setAccessibleName("Test this server")
        set_tool_tip(self._test, "Ask it for its models; nothing is saved")
        self._name_fields()
        self._lay_out()
        for field in (self._name, self._address, self._key):
            field.textChanged.connect(self._on_changed)
            field.returnPressed.connect(self._on_saved)
        self._save.clicked.connect(self._on_saved)
        self._test.clicked.connect(self._on_tested)
        self._cancel.clicked.connect(self.cancelled)
        self._remove_key.clicked.connect(self._on_key_removed)
        self.hide()

    def open_for(self, provider: Provider | None) -> None:
        """For a new server if `provider` is None, otherwise to edit one."""
        self._provider, self._removes_key, self._asked = provider, False, None
        self._title.setText(f"Change {provider.title}" if provider is not None else "Add a model server")
        self.setAccessibleName(self._title.text())
        self._name.setText(provider.title if provider is not None else "")
        self._address.setText(provider.api_base if provider is not None else "")
        self._key.clear()
        self._show_key()
        self._show_status("" if provider is not None else _ABOUT, "muted")
        self._show_busy("")
        self.show()
        self._name.setFocus(Qt.FocusReason.OtherFocusReason)
        self._name.selectAll()

    def show_tested(self, params: ModelServerTestParams, result: ModelServerTestResult) -> None:
        """Show the result, unless it is outdated; the address found by the test replaces the typed one."""
        if params is not self._asked:
            return
        self._show_busy("")
        if result.ok:
            self._address.setText(result.address)
        names = ", ".join(result.models[:_MAX_NAMED])
        more = f" and {len(result.models) - _MAX_NAMED:,} more" if len(result.models) > _MAX_NAMED else ""
        text = f"{result.text.rstrip('.')}: {names}{more}" if names else result.text
        self._show_status(text, "done" if result.ok and names else "waiting" if result.ok else "failed")

    def show_failure(self, text: str) -> None:
        """The rejected values stay in the fields."""
        self._show_busy("")
        self._show_status(text, "failed")

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def _name_fields(self) -> None:
        self._name.setAccessibleName("Name of the server")
        self._name.setPlaceholderText("as you call it, such as Lab")
        self._name.setMaxLength(60)
        self._address.setAccessibleName("Address of the server")
        self._address.setPlaceholderText("http://127.0.0.1:8000/v1")
        self._key.setAccessibleName("Key of the server")
        self._key.setEchoMode(QLineEdit.EchoMode.Password)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        key = QHBoxLayout()
        key.setSpacing(tokens.space_close)
        key.addWidget(self._key, 1)
        key.addWidget(self._remove_key)
        form = QFormLayout()
        form.setHorizontalSpacing(tokens.space_wide)
        form.setVerticalSpacing(tokens.space_close)
        form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setLabelAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        form.addRow(TextLabel(self._theme, "Name"), self._name)
        form.addRow(TextLabel(self._theme, "Address"), self._address)
        form.addRow(TextLabel(self._theme, "Key"), key)
        buttons = QHBoxLayout()
        buttons.setSpacing(tokens.space_close)
        for button in (self._save, self._test, self._cancel):
            buttons.addWidget(button)
        buttons.addStretch(1)
        self.body.setSpacing(tokens.space_normal)
        self.body.addWidget(self._title)
        self.body.addLayout(form)
        self.body.addWidget(self._status)
        self.body.addLayout(buttons)

    def _show_key(self) -> None:
        is_stored = self._provider is not None and self._provider.key_source in ("keyring", "file")
        self._remove_key.setVisible(is_stored and not self._removes_key)
        if self._removes_key:
            hint = "is removed when you save"
        else:
            hint = "stored; type another one to replace it" if is_stored else "only if it wants one"
        self._key.setPlaceholderText(hint)

    def _show_status(self, text: str, tone: Tone) -> None:
        self._status.setText(text)
        self._status.set_tone(tone)
        self._status.setVisible(bool(text))

    def _show_busy(self, words: str) -> None:
        """The buttons stay enabled meanwhile, because disabling them would lose the focus."""
        if not words:
            self._asked = None
        self._test.setText("Testing …" if words else "Test")
        if words:
            self._show_status(words, "muted")
        self._on_changed()

    def _on_changed(self) -> None:
        has_address = bool(self._address.text().strip())
        self._test.setEnabled(has_address)
        self._save.setEnabled(has_address and bool(self._name.text().strip()))

    @property
    def _typed_key(self) -> str | None:
        """None keeps the stored key."""
        typed = self._key.text().strip()
        if typed or self._provider is None or self._removes_key:
            return typed
        return None

    def _on_key_removed(self) -> None:
        self._removes_key = True
        self._show_key()
        self._key.setFocus()

    def _on_tested(self) -> None:
        if self._asked is not None:
            return
        own = self._provider.name if self._provider is not None else None
        self._asked = ModelServerTestParams(address=self._address.text(), key=self._typed_key, id=own)
        self._show_busy("Asking it for its models …")
        self.tested.emit(self._asked)

    def _on_saved(self) -> None:
        if not self._save.isEnabled():
            return
        self._show_status("Saving, and asking it for its models …", "muted")
        own = self._provider.name if self._provider is not None else None
        params = ModelServerSaveParams(
            name=self._name.text(), address=self._address.text(), key=self._typed_key, id=own
        )
        self.saved.emit(params)


class ServerRowView(TestableRowView):
    """`edit_requested` requests editing, `remove_requested` is emitted after a confirmed removal."""

    edit_requested = Signal()
    remove_requested = Signal()

    def __init__(self, theme: Theme, provider: Provider, models: int) -> None:
        super().__init__(theme, provider, models)
        self._provider = provider
        self._edit, self._remove = push_button("Edit …"), push_button("Remove …")
        self._edit.setAccessibleName(f"Edit {provider.title}")
        self._remove.setAccessibleName(f"Remove {provider.title}")
        self._yes, self._no = push_button("Remove it", "danger"), push_button("Keep it")
        self._question = ConfirmationView(theme, self._no, self._yes)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        column.addLayout(self.head(theme, self._edit, self._remove))
        column.addWidget(self._question)
        self._edit.clicked.connect(self.edit_requested)
        self._remove.clicked.connect(self._on_remove_clicked)
        self._yes.clicked.connect(self.remove_requested)
        self._no.clicked.connect(self._on_keep_clicked)

    def take_focus(self) -> None:
        """Focuses the most used control."""
        (self._test if self._test.isVisibleTo(self) else self._edit).setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_remove_clicked(self) -> None:
        has_key = self._provider.key_source in ("keyring", "file")
        key = " and its key" if has_key else ""
        self._question.ask(f"Remove {self._provider.title}{key}? Conversations with its models stay.", self._no)

    def _on_keep_clicked(self) -> None:
        self._question.hide()
        self._remove.setFocus()
