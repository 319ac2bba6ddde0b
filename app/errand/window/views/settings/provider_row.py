"""One provider: state, key field, test."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from errand.client.number_format import count
from errand.protocol.settings import Provider
from errand.window.theme.style import Tone, push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.labels import TextLabel

_OWN_KEYS = {"keyring": ", with a key in the system's keyring", "file": ", with a key in the encrypted file"}


class TestableRowView(QWidget):
    """The name of a provider, its state as text, and a test button (`test_requested`); base of all rows."""

    test_requested = Signal()

    def __init__(self, theme: Theme, provider: Provider, models: int) -> None:
        super().__init__()
        words, tone = provider_status(provider, models)
        self._title = TextLabel(theme, provider.title, bold=True)
        self._state = TextLabel(theme, words, tone=tone, wrap=True)
        self._test = push_button("Test")
        self._test.setAccessibleName(f"Test {provider.title}")
        set_tool_tip(self._test, "Ask one of its models for a word, for real")
        self._test.setVisible(provider.ready and models > 0)
        self._test.clicked.connect(self.test_requested)

    def show_status(self, text: str, tone: Tone) -> None:
        """Show the result in place of the state."""
        self._state.setText(text)
        self._state.set_tone(tone)

    def show_testing(self) -> None:
        """Show a running test. The button stays enabled, because disabling it would lose the focus."""
        self.show_status("Asking one of its models …", "muted")
        self._test.setText("Testing …")

    def show_tested(self, text: str, *, ok: bool) -> None:
        self.show_status(text, "done" if ok else "failed")
        self._test.setText("Test")

    def head(self, theme: Theme, *buttons: QPushButton) -> QHBoxLayout:
        """Name and state, with the test and other buttons on the right."""
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(self._title)
        words.addWidget(self._state)
        row = QHBoxLayout()
        row.setSpacing(theme.tokens.space_close)
        row.addLayout(words, 1)
        for button in (self._test, *buttons):
            row.addWidget(button)
        return row


class ProviderRowView(TestableRowView):
    """`key_entered` gives the key to store, or an empty one to remove the stored key."""

    key_entered = Signal(str)

    def __init__(self, theme: Theme, provider: Provider, models: int) -> None:
        super().__init__(theme, provider, models)
        self._key = QLineEdit()
        self._key.setEchoMode(QLineEdit.EchoMode.Password)
        self._key.setPlaceholderText("Paste the key")
        self._key.setAccessibleName(f"Key of {provider.title}")
        self._save = push_button("Save", "primary")
        self._entry = QWidget()
        self._entry.hide()
        self._set = push_button("Replace key …" if provider.ready else "Add key …")
        self._set.setAccessibleName(f"{self._set.text()} {provider.title}")
        self._remove = push_button("Remove key", "danger")
        self._remove.setAccessibleName(f"Remove the key of {provider.title}")
        if provider.key_source == "not_needed":
            self._set.hide()
        if provider.key_source not in ("keyring", "file"):
            self._remove.hide()
        self._lay_out(theme)
        self._on_typed("")
        self._set.clicked.connect(self._on_edit_clicked)
        self._remove.clicked.connect(self._on_removed)
        self._save.clicked.connect(self._on_saved)
        self._key.returnPressed.connect(self._on_saved)
        self._key.textChanged.connect(self._on_typed)

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        entry = QHBoxLayout(self._entry)
        entry.setContentsMargins(0, 0, 0, 0)
        entry.setSpacing(tokens.space_close)
        entry.addWidget(self._key, 1)
        entry.addWidget(self._save)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(tokens.space_close)
        column.addLayout(self.head(theme, self._set, self._remove))
        column.addWidget(self._entry)

    def _on_edit_clicked(self) -> None:
        self._entry.setVisible(not self._entry.isVisible())
        self._key.setFocus()

    def _on_typed(self, text: str) -> None:
        self._save.setEnabled(bool(text.strip()))

    def _on_saved(self) -> None:
        key = self._key.text().strip()
        if key:
            self._key.clear()
            self.key_entered.emit(key)

    def _on_removed(self) -> None:
        self.key_entered.emit("")


def provider_status(provider: Provider, models: int) -> tuple[str, Tone]:
    """Whether the provider can be used, the source of its key, and its number of models."""
    offers = f" · {count(models, 'model')}" if models else ""
    if provider.listed_at is not None and not provider.own:  # custom servers are queried repeatedly
        offers += f", listed on {provider.listed_at.astimezone():%d %B %Y}"
    if warning := _warning(provider):
        return warning, "waiting"
    if provider.own:
        return f"At {provider.api_base}{_OWN_KEYS.get(provider.key_source, '')}{offers}", "done" if models else "muted"
    if provider.local:
        return (f"Runs at {provider.api_base}{offers}", "done") if provider.ready else ("Not running here", "muted")
    match provider.key_source:
        case "environment":
            return f"Ready, with the key in {provider.key_variable}{offers}", "done"
        case "keyring":
            return f"Ready, with the key in the system's keyring{offers}", "done"
        case "file":
            return f"Ready, with the key in the encrypted file{offers}", "done"
        case "not_needed":
            return f"Needs no key{offers}", "muted"
        case "none":
            return f"No key{f' ({provider.key_variable})' if provider.key_variable else ''}", "muted"


def _warning(provider: Provider) -> str:
    if provider.list_error:
        return provider.list_error
    if not provider.ready:
        has_key = provider.key_source in ("environment", "keyring", "file")
        return "It has a key, but no address: set it in General, under Shared models" if has_key else ""
    return f"Ready, but what is sent to {provider.api_base} is not encrypted" if provider.in_the_clear else ""
