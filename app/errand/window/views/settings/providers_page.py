"""Model providers and their keys; those that are ready first."""

from functools import partial

from PySide6.QtWidgets import QHBoxLayout, QPushButton

from errand.protocol.settings import (
    KEY_SET,
    MODEL_LIST,
    MODEL_SERVER_REMOVE,
    MODEL_SERVER_SAVE,
    MODEL_SERVER_TEST,
    MODEL_TEST,
    KeySetParams,
    ModelListParams,
    ModelListResult,
    ModelServerRemoveParams,
    ModelServerSaveParams,
    ModelServerTestParams,
    ModelTestParams,
    Provider,
)
from errand.window.theme.style import push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls, SettingsPageView
from errand.window.views.settings.provider_row import ProviderRowView, TestableRowView
from errand.window.views.settings.server_form import ServerFormCard, ServerRowView
from errand.window.widgets.containers import hairline

_TEXT = (
    "Keys are found in the environment, the system's keyring, or an encrypted file. A key you add here goes to the "
    "keyring where there is one; it is never shown, logged or given to tools."
)


# Its address comes with a task from the terminal; the window adds such servers under a name.
_GIVEN_WITH_A_TASK = "openai_compatible"
_REFRESH = "Look for local model servers"
_FETCH = "Fetch lists of models"


class ProvidersPageView(SettingsPageView):
    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme, "Models and keys", _TEXT)
        self._calls = calls
        self._rows: dict[str, TestableRowView] = {}
        self._under_test: set[str] = set()
        # Results of tests that ended while a list was on its way: its rows are new and show them too.
        self._tested: dict[str, tuple[str, bool]] = {}
        self._add = push_button("Add a server …")
        set_tool_tip(self._add, "A model server of your own, with an address and perhaps a key")
        self._form = ServerFormCard(theme)
        self._refresh_button = push_button(_REFRESH)
        self._fetch_button = push_button(_FETCH)
        set_tool_tip(
            self._fetch_button, "Ask each provider that has a key which models it offers now; the lists are kept"
        )
        buttons = QHBoxLayout()
        for button in (self._add, self._refresh_button, self._fetch_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        self.top.addLayout(buttons)
        self.top.addWidget(self._form)
        self._add.clicked.connect(self._on_add_clicked)
        self._form.cancelled.connect(self._on_form_cancelled)
        self._form.tested.connect(self._on_server_tested)
        self._form.saved.connect(self._on_server_saved)
        self._refresh_button.clicked.connect(self._on_refresh_clicked)
        self._fetch_button.clicked.connect(self._on_fetch_clicked)

    def load(self) -> None:
        self._calls.spawn(self._load(refresh=False), self.show_failure)

    async def _load(self, *, refresh: bool, fetch: bool = False) -> None:
        self._tested.clear()
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
            self._rows[provider].show_status(result.notice, "done" if key else "muted")

    def _show(self, found: ModelListResult) -> None:
        self.clear_rows()
        self._rows = {}
        shown = (provider for provider in found.providers if provider.name != _GIVEN_WITH_A_TASK)
        for provider in sorted(shown, key=_order):
            row = self._made_row(provider, sum(model.provider == provider.name for model in found.models))
            row.test_requested.connect(partial(self._on_test_requested, provider.name))
            if provider.name in self._under_test:
                row.show_testing()
            elif provider.name in self._tested:
                text, ok = self._tested[provider.name]
                row.show_tested(text, ok=ok)
            if self._rows:
                self.rows.addWidget(hairline())
            self._rows[provider.name] = row
            self.rows.addWidget(row)

    def _made_row(self, provider: Provider, models: int) -> TestableRowView:
        if provider.own:
            server = ServerRowView(self.theme, provider, models)
            server.edit_requested.connect(partial(self._form.open_for, provider))
            server.remove_requested.connect(partial(self._on_remove_requested, provider.name))
            return server
        row = ProviderRowView(self.theme, provider, models)
        row.key_entered.connect(partial(self._on_key_entered, provider.name))
        return row

    async def _test_server(self, params: ModelServerTestParams) -> None:
        self._form.show_tested(params, await self._calls.call(MODEL_SERVER_TEST, params))

    async def _save_server(self, params: ModelServerSaveParams) -> None:
        result = await self._calls.call(MODEL_SERVER_SAVE, params)
        self._form.hide()
        await self._load(refresh=False)
        row = self._rows.get(result.id)
        if isinstance(row, ServerRowView):
            row.show_status(result.text, "done" if result.ok else "waiting")
            row.take_focus()
            self.bring_into_view(row)

    async def _remove_server(self, server_id: str) -> None:
        result = await self._calls.call(MODEL_SERVER_REMOVE, ModelServerRemoveParams(id=server_id))
        await self._load(refresh=False)
        self.banner.show_message(result.text, "done")
        self._add.setFocus()

    async def _test(self, provider: str) -> None:
        result = await self._calls.call(MODEL_TEST, ModelTestParams(provider=provider))
        self._show_test(provider, result.text, ok=result.ok)

    def _show_test(self, provider: str, text: str, *, ok: bool) -> None:
        """The page may have been reloaded meanwhile, without the provider."""
        self._under_test.discard(provider)
        self._tested[provider] = text, ok
        if provider in self._rows:
            self._rows[provider].show_tested(text, ok=ok)

    def _on_test_requested(self, provider: str) -> None:
        if provider in self._under_test:
            return
        self._under_test.add(provider)
        self._rows[provider].show_testing()
        self._calls.spawn(self._test(provider), partial(self._show_test, provider, ok=False))

    def _on_key_entered(self, provider: str, key: str) -> None:
        tell = partial(self._rows[provider].show_status, tone="failed")
        self._calls.spawn(self._set_key(provider, key), tell)

    def _on_add_clicked(self) -> None:
        self._form.open_for(None)

    def _on_form_cancelled(self) -> None:
        self._form.hide()
        self._add.setFocus()

    def _on_server_tested(self, params: ModelServerTestParams) -> None:
        self._calls.spawn(self._test_server(params), self._form.show_failure)

    def _on_server_saved(self, params: ModelServerSaveParams) -> None:
        self._calls.spawn(self._save_server(params), self._form.show_failure)

    def _on_remove_requested(self, server_id: str) -> None:
        self._calls.spawn(self._remove_server(server_id), self.show_failure)

    def _on_refresh_clicked(self) -> None:
        self._calls.spawn(self._refresh(self._refresh_button, fetch=False), self.show_failure)

    def _on_fetch_clicked(self) -> None:
        self._calls.spawn(self._refresh(self._fetch_button, fetch=True), self.show_failure)


def _order(provider: Provider) -> tuple[bool, bool, bool]:
    """Custom servers first, then ready providers; providers without a key setting last."""
    is_bare = not provider.local and provider.key_source == "not_needed"
    return not provider.own, is_bare and not provider.own, not provider.ready
