"""One provider: its state in words, and buttons to test, edit and remove it and to choose its models."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from errand.client.number_format import day_text
from errand.protocol.settings import Model, Provider
from errand.text.translation import tr, trn
from errand.window.theme.style import Tone, push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, hbox, vbox
from errand.window.widgets.forms.confirmation import ConfirmationView
from errand.window.widgets.labels import TextLabel

_OWN_KEYS = {"keyring": tr("key in the keyring"), "file": tr("key in the encrypted file")}


class ProviderRowView(QWidget):
    """`remove_requested` is emitted after a confirmation."""

    test_requested = Signal()
    edit_requested = Signal()
    remove_requested = Signal()
    models_requested = Signal()

    def __init__(self, theme: Theme, provider: Provider, models: tuple[Model, ...], kind: str) -> None:
        """`kind` is what the provider was added as, in words; empty for one of the catalogue."""
        super().__init__()
        self.provider = provider
        self.models = models
        status, tone = provider_status(provider, len(models))
        self._title = TextLabel(theme, provider.title, bold=True)
        self._kind = TextLabel(theme, kind, tone="muted")
        self._state = TextLabel(theme, status, tone=tone, wrap=True)
        self._test, self._models = push_button(tr("Test")), push_button(tr("Models…"))
        self._edit, self._remove = push_button(tr("Edit…")), push_button(tr("Remove…"))
        for button in (self._test, self._models, self._edit, self._remove):
            button.setAccessibleName(f"{button.text().rstrip('…')} {provider.title}")
        set_tool_tip(self._test, tr("Makes one real call to the model"))
        set_tool_tip(self._models, tr("Choose models and add unlisted ones"))
        is_stored = provider.key_source in ("keyring", "file")
        self._test.setVisible(provider.ready and bool(models))
        self._models.setVisible(provider.ready)
        self._edit.setVisible(provider.own or provider.key_source != "not_needed")
        self._remove.setVisible(provider.own or is_stored)
        confirm, keep = push_button(tr("Remove"), "danger"), push_button(tr("Cancel"))
        self._question = ConfirmationView(theme, keep, confirm, cancel=keep, opener=self._remove)
        self._column = QVBoxLayout(self)
        self._lay_out(theme)
        self._test.clicked.connect(self.test_requested)
        self._models.clicked.connect(self.models_requested)
        self._edit.clicked.connect(self.edit_requested)
        self._remove.clicked.connect(self._on_remove_clicked)
        confirm.clicked.connect(self.remove_requested)

    def show_testing(self) -> None:
        """Show a running test. The button stays enabled, because disabling it would lose the focus."""
        self._show_status(tr("Testing one of its models…"), "muted")
        self._test.setText(tr("Testing…"))

    def show_tested(self, text: str, *, ok: bool) -> None:
        """Show the result of a test or of saving in place of the state."""
        self._show_status(text, "done" if ok else "failed")
        self._test.setText(tr("Test"))

    def show_models(self, view: QWidget | None) -> None:
        """Show this view of the models below, or remove the one that is there."""
        open_item = self._column.itemAt(2)
        if open_item is not None and (old := open_item.widget()) is not None:
            self._column.removeWidget(old)
            old.hide()
            old.deleteLater()
        if view is not None:
            self._column.addWidget(view)

    def take_focus(self) -> None:
        """Focuses the most used control."""
        order = (self._test, self._models, self._edit)
        first = next((button for button in order if button.isVisibleTo(self)), self._edit)
        first.setFocus(Qt.FocusReason.OtherFocusReason)

    def _lay_out(self, theme: Theme) -> None:
        head = hbox(
            self._title,
            self._kind,
            STRETCH,
            self._test,
            self._models,
            self._edit,
            self._remove,
            spacing=theme.tokens.space_close,
        )
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(theme.tokens.space_close)
        self._column.addLayout(vbox(head, self._state, spacing=theme.tokens.space_tight))
        self._column.addWidget(self._question)

    def _show_status(self, text: str, tone: Tone) -> None:
        self._state.setText(text)
        self._state.set_tone(tone)

    def _on_remove_clicked(self) -> None:
        title = self.provider.title
        has_key = self.provider.key_source in ("keyring", "file")
        if not self.provider.own:
            text = tr("Remove the API key of {title}? Conversations with its models stay.").format(title=title)
        elif has_key:
            text = tr("Remove {title} and its API key? Conversations with its models stay.").format(title=title)
        else:
            text = tr("Remove {title}? Conversations with its models stay.").format(title=title)
        self._question.ask(text)


def provider_status(provider: Provider, models: int) -> tuple[str, Tone]:
    """Return whether the provider can be used, the source of its key, and its number of models."""
    if warning := _warning(provider):
        return warning, "waiting"
    offers = trn("{n} model", "{n} models", models) if models else ""
    if provider.listed_at is not None and not provider.own:  # custom servers are queried repeatedly
        day = day_text(provider.listed_at.astimezone())
        listed = tr("listed on {day}").format(day=day)
        offers = f"{offers}, {listed}" if offers else listed
    parts = (provider.api_base or tr("Its usual address"), _OWN_KEYS.get(provider.key_source, ""))
    if not provider.own:
        parts = (_place(provider),)
    return " · ".join(part for part in (*parts, offers) if part), "muted"


def _place(provider: Provider) -> str:
    """Return where a provider of the catalogue runs, or where its key is."""
    if provider.local:
        return tr("Running at {address}").format(address=provider.api_base)
    match provider.key_source:
        case "environment":
            return tr("Key from {variable}").format(variable=provider.key_variable)
        case "keyring":
            return tr("Key in the system's keyring")
        case "file":
            return tr("Key in the encrypted file")
        case "not_needed" | "none":
            return tr("No key")


def _warning(provider: Provider) -> str:
    if provider.list_error:
        return provider.list_error
    if not provider.ready:
        return tr("No address yet: choose Edit…") if provider.key_source in ("environment", "keyring", "file") else ""
    return (
        tr("The connection to {address} isn't encrypted").format(address=provider.api_base)
        if provider.in_the_clear
        else ""
    )
