"""Providers and their keys: ready ones first."""

from functools import partial

from PySide6.QtWidgets import QHBoxLayout, QPushButton

from app.protocol.models import ModelListParams, ModelListResult, ModelTestParams, Provider
from app.protocol.settings import KeySetParams
from app.protocol.wire import KEY_SET, MODEL_LIST, MODEL_TEST
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.views.settings.calls import Calls
from app.window.views.settings.page import SettingsPage, hairline
from app.window.views.settings.provider_row import ProviderRow

_TEXT = (
    "Keys are found in the environment, the system's keyring, or an encrypted file. A key you add here goes to the "
    "keyring where there is one; it is never shown, logged or given to tools."
)


_LOOK = "Look for local model servers"
_FETCH = "Fetch lists of models"


class ProvidersPage(SettingsPage):
    def __init__(self, theme: Theme, calls: Calls) -> None:
        super().__init__(theme, "Models and keys", _TEXT)
        self._calls = calls
        self._rows: dict[str, ProviderRow] = {}
        self._under_test: set[str] = set()
        self._look = push_button(_LOOK)
        self._fetch = push_button(_FETCH)
        self._fetch.setToolTip("Ask each provider that has a key which models it offers now; the lists are kept")
        buttons = QHBoxLayout()
        buttons.addWidget(self._look)
        buttons.addWidget(self._fetch)
        buttons.addStretch(1)
        self.top.addLayout(buttons)
        self._look.clicked.connect(self._on_look)
        self._fetch.clicked.connect(self._on_fetch)

    def load(self) -> None:
        self._calls.spawn(self._load(refresh=False), self.tell_failure)

    async def _load(self, *, refresh: bool, fetch: bool = False) -> None:
        self._show(await self._calls.call(MODEL_LIST, ModelListParams(refresh=refresh, fetch=fetch)))

    async def _refresh(self, button: QPushButton, *, fetch: bool) -> None:
        words = button.text()
        button.setEnabled(False)
        button.setText("Asking …" if fetch else "Looking …")
        try:
            await self._load(refresh=True, fetch=fetch)
        finally:
            button.setText(words)
            button.setEnabled(True)

    async def _set_key(self, provider: str, key: str) -> None:
        result = await self._calls.call(KEY_SET, KeySetParams(provider=provider, key=key))
        await self._load(refresh=False)
        if provider in self._rows:
            self._rows[provider].tell(result.notice, "done" if key else "muted")

    def _show(self, found: ModelListResult) -> None:
        self.clear_rows()
        self._rows = {}
        for provider in sorted(found.providers, key=_order):
            models = sum(model.provider == provider.name for model in found.models)
            row = ProviderRow(self.theme, provider, models)
            row.key_given.connect(partial(self._on_key_given, provider.name))
            row.test_asked.connect(partial(self._on_test_asked, provider.name))
            if provider.name in self._under_test:
                row.show_testing()
            if self._rows:
                self.rows.addWidget(hairline())
            self._rows[provider.name] = row
            self.rows.addWidget(row)

    async def _try(self, provider: str) -> None:
        result = await self._calls.call(MODEL_TEST, ModelTestParams(provider=provider))
        self._tell_test(provider, result.text, ok=result.ok)

    def _tell_test(self, provider: str, text: str, *, ok: bool) -> None:
        """The page may have been read anew meanwhile, and the provider be gone."""
        self._under_test.discard(provider)
        if provider in self._rows:
            self._rows[provider].show_tested(text, ok=ok)

    def _on_test_asked(self, provider: str) -> None:
        if provider in self._under_test:
            return
        self._under_test.add(provider)
        self._rows[provider].show_testing()
        self._calls.spawn(self._try(provider), partial(self._tell_test, provider, ok=False))

    def _on_key_given(self, provider: str, key: str) -> None:
        tell = partial(self._rows[provider].tell, tone="failed")
        self._calls.spawn(self._set_key(provider, key), tell)

    def _on_look(self) -> None:
        self._calls.spawn(self._refresh(self._look, fetch=False), self.tell_failure)

    def _on_fetch(self) -> None:
        self._calls.spawn(self._refresh(self._fetch, fetch=True), self.tell_failure)


def _order(provider: Provider) -> tuple[bool, bool]:
    """Ready ones first, and last what has no key to set."""
    return not provider.local and provider.key_source == "not_needed", not provider.ready
