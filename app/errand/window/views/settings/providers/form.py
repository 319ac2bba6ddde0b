"""The form that adds or changes a provider: kind, name, address and key, with a test before anything is saved."""

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLineEdit

from errand.protocol.settings import (
    KEY_SET,
    MODEL_SERVER_SAVE,
    MODEL_SERVER_TEST,
    KeySetParams,
    ModelServerSaveParams,
    ModelServerTestParams,
    ModelServerTestResult,
    Provider,
)
from errand.text.translation import tr, trn
from errand.window.theme.style import Tone, push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls
from errand.window.widgets.boxes import STRETCH, fill, hbox
from errand.window.widgets.containers import Card
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.forms.form import form, line_edit
from errand.window.widgets.labels import TextLabel

_OPENAI, _ANTHROPIC, _SHARED = "openai_compatible", "anthropic_compatible", "proxy"
_ABOUT = {
    _OPENAI: tr("Any server with an OpenAI-compatible API, such as vLLM, llama.cpp, LiteLLM or a company gateway."),
    _ANTHROPIC: tr("Any server with the Anthropic Messages API."),
    _SHARED: tr("A computer that shares its models with “errand share-models”."),
}
_EXAMPLES = {
    _OPENAI: "http://127.0.0.1:8000/v1",
    _ANTHROPIC: "https://gateway.example.com",
    _SHARED: "http://192.168.1.20:8765",
}
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True)
class ProviderKind:
    """A kind of provider that can be added.

    `address` is the usual one, if any. A provider of the catalogue without it has no address to change.
    """

    name: str
    title: str
    address: str = ""

    @property
    def needs_address(self) -> bool:
        return self.name in (_OPENAI, _ANTHROPIC, _SHARED)


def provider_kinds(providers: Iterable[Provider]) -> tuple[ProviderKind, ...]:
    """Return the two interfaces, then the providers of the catalogue; local servers are found by themselves."""
    kinds = [
        ProviderKind(_OPENAI, tr("OpenAI-compatible")),
        ProviderKind(_ANTHROPIC, tr("Anthropic-compatible")),
    ]
    for provider in providers:
        if provider.own or provider.local or provider.name in (_OPENAI, "scripted"):
            continue
        title = tr("Errand on another computer") if provider.name == _SHARED else provider.title
        kinds.append(ProviderKind(provider.name, title, provider.api_base))
    return tuple(kinds)


def kind_title(provider: Provider, kinds: Iterable[ProviderKind]) -> str:
    """Return the title of the kind that a provider was added as; "" for one of the catalogue."""
    return next((kind.title for kind in kinds if provider.own and kind.name == provider.kind), "")


class ProviderFormCard(Card):
    """Stores nothing before Save.

    `saved` gives the name of the provider that was stored, and what the engine said about it: the text, and whether
    the provider works. `cancelled` is emitted on cancel.
    """

    saved = Signal(str, str, bool)
    cancelled = Signal()

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme)
        self._theme = theme
        self._calls = calls
        self._provider: Provider | None = None
        self._kinds: tuple[ProviderKind, ...] = provider_kinds(())
        self._removes_key = False
        self._title = TextLabel(theme, bold=True)
        self._kind = ComboBox(tuple(kind.title for kind in self._kinds), name=tr("Provider type"))
        self._name = line_edit(tr("Provider name"), max_length=60)
        self._address = line_edit(tr("Base URL"))
        self._key = line_edit(tr("API key"))
        self._key.setEchoMode(QLineEdit.EchoMode.Password)
        self._remove_key = push_button(tr("Remove key"), "quiet")
        self._status = TextLabel(theme, wrap=True)
        self._save, self._cancel = push_button(tr("Save"), "primary"), push_button(tr("Cancel"))
        self._test = push_button(tr("Test"), name=tr("Test this provider"))
        self._asked: ModelServerTestParams | None = None
        set_tool_tip(self._test, tr("Makes one real call to the model. Nothing is saved."))
        self._form = form(
            theme,
            (tr("Type"), self._kind),
            (tr("Name"), self._name),
            (tr("Base URL"), self._address),
            (tr("API key"), hbox(fill(self._key), self._remove_key, spacing=theme.tokens.space_close)),
        )
        self._lay_out()
        for field in (self._name, self._address, self._key):
            field.textChanged.connect(self._on_changed)
            field.returnPressed.connect(self._on_saved)
        self._kind.activated.connect(self._on_kind_chosen)
        self._save.clicked.connect(self._on_saved)
        self._test.clicked.connect(self._on_tested)
        self._cancel.clicked.connect(self.cancelled)
        self._remove_key.clicked.connect(self._on_key_removed)
        self.hide()

    def set_kinds(self, kinds: tuple[ProviderKind, ...]) -> None:
        """Set what can be added; an open form keeps what is chosen."""
        if kinds != self._kinds:
            self._kinds = kinds
            chosen = self._kind.currentText()
            self._kind.clear()
            self._kind.addItems([kind.title for kind in kinds])
            self._kind.setCurrentIndex(max(0, self._kind.findText(chosen)))

    def open_for(self, provider: Provider | None) -> None:
        """Open the form for a new provider if `provider` is None, otherwise to edit one."""
        self._provider, self._removes_key, self._asked = provider, False, None
        self._title.setText(
            tr("Edit {name}").format(name=provider.title) if provider is not None else tr("Add provider")
        )
        self.setAccessibleName(self._title.text())
        kind_name = (provider.kind or provider.name) if provider is not None else _OPENAI
        self._kind.setCurrentIndex(next((n for n, kind in enumerate(self._kinds) if kind.name == kind_name), 0))
        self._name.setText(provider.title if provider is not None and provider.own else "")
        self._address.setText(self._address_of(provider))
        self._key.clear()
        self._show_kind()
        self._show_key()
        self._show_busy("")
        self.show()
        first = next(field for field in (self._kind, self._name, self._key) if field.isVisibleTo(self))
        first.setFocus(Qt.FocusReason.OtherFocusReason)
        self._name.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    @property
    def _chosen(self) -> ProviderKind:
        return self._kinds[max(0, self._kind.currentIndex())]

    @property
    def _is_catalogs_own(self) -> bool:
        """True while only a key can be changed: there is one such provider."""
        return self._provider is not None and not self._provider.own and not self._chosen.needs_address

    def _address_of(self, provider: Provider | None) -> str:
        if provider is None:
            return ""
        usual = next((kind.address for kind in self._kinds if kind.name == provider.kind), "")
        return "" if provider.own and provider.api_base == usual else provider.api_base

    def _lay_out(self) -> None:
        space = self._theme.tokens.space_close
        buttons = hbox(self._save, self._test, self._cancel, STRETCH, spacing=space)
        self.body.setSpacing(self._theme.tokens.space_normal)
        self.body.addWidget(self._title)
        self.body.addLayout(self._form)
        self.body.addWidget(self._status)
        self.body.addLayout(buttons)

    def _show_tested(self, params: ModelServerTestParams, result: ModelServerTestResult) -> None:
        """Show the result, unless it is outdated; the address found by the test replaces the typed one."""
        if params is not self._asked:
            return
        self._show_busy("")
        if result.ok and result.address:
            self._address.setText(result.address)
        names = ", ".join(result.models[:_MAX_NAMED])
        if len(result.models) > _MAX_NAMED:
            more = trn("{names} and {n} more", "{names} and {n} more", len(result.models) - _MAX_NAMED)
            names = more.format(names=names)
        text = f"{result.text.rstrip('.')}: {names}" if names and result.ok else result.text
        self._show_status(text, "done" if result.ok and names else "waiting" if result.ok else "failed")

    def _show_failure(self, text: str) -> None:
        """The rejected values stay in the fields."""
        self._show_busy("")
        self._show_status(text, "failed")

    def _show_kind(self) -> None:
        """Show the fields that this kind has."""
        kind, is_new = self._chosen, self._provider is None
        self._form.setRowVisible(0, is_new)
        self._form.setRowVisible(1, kind.name != _SHARED and not self._is_catalogs_own)
        self._form.setRowVisible(2, kind.needs_address or (bool(kind.address) and not self._is_catalogs_own))
        self._name.setPlaceholderText(tr("My server") if kind.needs_address else kind.title)
        self._address.setPlaceholderText(kind.address or _EXAMPLES.get(kind.name, ""))
        self._show_status(_ABOUT.get(kind.name, "") if is_new else "", "muted")

    def _show_key(self) -> None:
        provider = self._provider
        is_stored = provider is not None and provider.key_source in ("keyring", "file")
        self._remove_key.setVisible(is_stored and not self._removes_key and provider is not None and provider.own)
        if self._removes_key:
            hint = tr("Removed when you save")
        elif is_stored:
            hint = tr("Saved. Type a new one to replace it.")
        elif provider is not None and provider.key_source == "environment":
            hint = tr("{variable} is used first").format(variable=provider.key_variable)
        else:
            hint = tr("Optional") if self._chosen.name in (_OPENAI, _ANTHROPIC) else tr("Paste your API key")
        self._key.setPlaceholderText(hint)

    def _show_status(self, text: str, tone: Tone) -> None:
        self._status.setText(text)
        self._status.set_tone(tone)
        self._status.setVisible(bool(text))

    def _show_busy(self, words: str) -> None:
        """The buttons stay enabled meanwhile, because disabling them would lose the focus."""
        if not words:
            self._asked = None
        self._test.setText(tr("Testing…") if words else tr("Test"))
        if words:
            self._show_status(words, "muted")
        self._on_changed()

    def _on_changed(self) -> None:
        kind, has_key = self._chosen, bool(self._key.text().strip())
        has_stored_key = self._provider is not None and self._provider.key_source in ("keyring", "file")
        has_address = bool(self._address.text().strip()) or not kind.needs_address
        has_name = bool(self._name.text().strip()) or kind.name not in (_OPENAI, _ANTHROPIC)
        key_is_fine = has_key or has_stored_key or kind.name in (_OPENAI, _ANTHROPIC)
        self._test.setEnabled(has_address and key_is_fine and (has_key or not self._is_catalogs_own))
        self._save.setEnabled(has_address and has_name and key_is_fine and (has_key or not self._is_catalogs_own))

    @property
    def _typed_key(self) -> str | None:
        """None keeps the stored key."""
        typed = self._key.text().strip()
        if typed or self._provider is None or self._removes_key:
            return typed
        return None

    def _on_kind_chosen(self) -> None:
        self._show_kind()
        self._show_key()
        self._show_busy("")

    def _on_key_removed(self) -> None:
        self._removes_key = True
        self._show_key()
        self._key.setFocus()

    @property
    def _own_id(self) -> str | None:
        return self._provider.name if self._provider is not None and self._provider.own else None

    def _on_tested(self) -> None:
        if self._asked is not None:
            return
        self._asked = ModelServerTestParams(
            address="" if self._is_catalogs_own else self._address.text(),
            key=self._typed_key,
            id=self._own_id,
            kind=self._chosen.name,
            calls=True,
        )
        self._show_busy(tr("Testing one of its models…"))
        self._spawn(self._send_test(self._asked))

    def _on_saved(self) -> None:
        if not self._save.isEnabled():
            return
        self._show_status(tr("Saving…"), "muted")
        if self._is_catalogs_own and self._provider is not None:
            self._spawn(self._save_key(KeySetParams(provider=self._provider.name, key=self._key.text().strip())))
            return
        params = ModelServerSaveParams(
            name=self._name.text().strip() or self._chosen.title,
            address=self._address.text(),
            key=self._typed_key,
            id=self._own_id,
            kind=self._chosen.name,
        )
        self._spawn(self._save_server(params))

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        self._calls.spawn(work, self._show_failure)

    async def _send_test(self, params: ModelServerTestParams) -> None:
        self._show_tested(params, await self._calls.call(MODEL_SERVER_TEST, params))

    async def _save_server(self, params: ModelServerSaveParams) -> None:
        result = await self._calls.call(MODEL_SERVER_SAVE, params)
        self.saved.emit(result.id, result.text, result.ok)

    async def _save_key(self, params: KeySetParams) -> None:
        result = await self._calls.call(KEY_SET, params)
        self.saved.emit(params.provider, tr("Saved. {notice}").format(notice=result.notice), True)
