"""The providers whose models can be used, and what adds another one."""

from collections.abc import Coroutine
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from errand.protocol.settings import (
    KEY_SET,
    MODEL_CHOOSE,
    MODEL_LIST,
    MODEL_REMOVE,
    MODEL_SAVE,
    MODEL_SERVER_REMOVE,
    MODEL_SERVER_SAVE,
    MODEL_SERVER_TEST,
    MODEL_TEST,
    KeySetParams,
    ModelChooseParams,
    ModelListParams,
    ModelListResult,
    ModelRemoveParams,
    ModelSaveParams,
    ModelServerRemoveParams,
    ModelServerSaveParams,
    ModelServerTestParams,
    ModelTestParams,
    Provider,
)
from errand.text.translation import tr
from errand.window.theme.style import push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls, SettingsPageView
from errand.window.views.settings.providers.form import ProviderFormCard, provider_kinds
from errand.window.views.settings.providers.models_view import ProviderModelsView
from errand.window.views.settings.providers.row import ProviderRowView
from errand.window.widgets.boxes import STRETCH, set_hbox
from errand.window.widgets.containers import hairline
from errand.window.widgets.labels import TextLabel

_TEXT = tr(
    "API keys are stored in the system keyring, or in an encrypted file if there is none. They are never shown again."
)
_EMPTY = tr(
    "No provider set up yet. Add one with its API key, or start Ollama, LM Studio, llama.cpp or vLLM "
    "on this computer: they're found automatically."
)
# Its address comes with a task from the terminal; the window adds such servers under a name.
_GIVEN_WITH_A_TASK = "openai_compatible"
_SCRIPTED = "scripted"
_WITH_KEY = ("environment", "keyring", "file")
_REFRESH = tr("Refresh models")


class ProvidersPageView(SettingsPageView):
    """Emits `models_changed` when other models can be chosen."""

    models_changed = Signal()

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme, tr("Models and keys"), _TEXT)
        self._calls = calls
        self._rows: dict[str, ProviderRowView] = {}
        self._under_test: set[str] = set()
        # Results that came while a list was on its way: its rows are new and show them too.
        self._told: dict[str, tuple[str, bool]] = {}
        self._models: ProviderModelsView | None = None
        self._add = push_button(tr("Add provider…"), "primary")
        self._form = ProviderFormCard(theme)
        self._refresh_button = push_button(_REFRESH)
        set_tool_tip(self._refresh_button, tr("Find local servers and update each provider's models"))
        self._buttons = QWidget()
        set_hbox(self._buttons, self._add, self._refresh_button, STRETCH)
        self.top.addWidget(self._buttons)
        self.top.addWidget(self._form)
        self._add.clicked.connect(self._on_add_clicked)
        self._form.cancelled.connect(self._on_form_cancelled)
        self._form.tested.connect(self._on_server_tested)
        self._form.saved.connect(self._on_server_saved)
        self._form.key_saved.connect(self._on_key_saved)
        self._refresh_button.clicked.connect(self._on_refresh_clicked)

    def load(self) -> None:
        self._told.clear()
        self._calls.spawn(self._load(), self.show_failure)

    def add_provider(self) -> None:
        """Open the form for a new provider, as the button does."""
        self._open_form(None)

    def _open_form(self, provider: Provider | None) -> None:
        """Open the form in place of the buttons."""
        self._buttons.hide()
        self._form.open_for(provider)

    async def _load(self, *, fetch: bool = False) -> None:
        self._show(await self._calls.call(MODEL_LIST, ModelListParams(refresh=fetch, fetch=fetch)))

    async def _refresh(self) -> None:
        self._refresh_button.setEnabled(False)
        self._refresh_button.setText(tr("Refreshing…"))
        self._told.clear()
        try:
            await self._load(fetch=True)
            self.models_changed.emit()
        finally:
            self._refresh_button.setText(_REFRESH)
            self._refresh_button.setEnabled(True)

    def _show(self, found: ModelListResult) -> None:
        opened = self._models.provider.name if self._models is not None else ""
        self._models = None
        self.clear_rows()
        self._rows = {}
        self._form.set_kinds(provider_kinds(found.providers))
        for provider in sorted(filter(_is_set_up, found.providers), key=_order):
            if self._rows:
                self.rows.addWidget(hairline())
            row = self._made_row(provider, found)
            self.rows.addWidget(row)
            if provider.name == opened:
                self._open_models(row)
        if not self._rows:
            self.rows.addWidget(TextLabel(self.theme, _EMPTY, tone="muted", wrap=True))

    def _made_row(self, provider: Provider, found: ModelListResult) -> ProviderRowView:
        models = tuple(model for model in found.models if model.provider == provider.name)
        row = ProviderRowView(self.theme, provider, models, self._form.title_of(provider) if provider.own else "")
        self._rows[provider.name] = row
        row.test_requested.connect(partial(self._on_test_requested, provider.name))
        row.edit_requested.connect(partial(self._open_form, provider))
        row.remove_requested.connect(partial(self._on_remove_requested, provider))
        row.models_requested.connect(partial(self._on_models_requested, row))
        if provider.name in self._under_test:
            row.show_testing()
        elif provider.name in self._told:
            text, ok = self._told[provider.name]
            row.show_tested(text, ok=ok)
        return row

    def _open_models(self, row: ProviderRowView) -> None:
        """Below its row; one at a time."""
        self._close_models()
        self._models = view = ProviderModelsView(self.theme, row.provider, row.models)
        view.chosen.connect(self._on_models_chosen)
        view.model_saved.connect(self._on_model_saved)
        view.model_removed.connect(self._on_model_removed)
        view.form_opened.connect(partial(self.bring_into_view, view.form))
        row.show_models(view)

    def _close_models(self) -> None:
        if self._models is not None:
            self._rows[self._models.provider.name].show_models(None)
            self._models = None

    async def _test_server(self, params: ModelServerTestParams) -> None:
        self._form.show_tested(params, await self._calls.call(MODEL_SERVER_TEST, params))

    async def _save_server(self, params: ModelServerSaveParams) -> None:
        result = await self._calls.call(MODEL_SERVER_SAVE, params)
        await self._show_saved(result.id, result.text, ok=result.ok)

    async def _save_key(self, params: KeySetParams) -> None:
        result = await self._calls.call(KEY_SET, params)
        await self._show_saved(params.provider, tr("Saved. {notice}").format(notice=result.notice), ok=True)

    async def _show_saved(self, provider: str, text: str, *, ok: bool) -> None:
        """The result stands in the provider's row, which has the focus and is in view."""
        self._close_form()
        self._told[provider] = text, ok
        await self._load()
        self.models_changed.emit()
        row = self._rows.get(provider)
        if row is not None:
            row.take_focus()
            self.bring_into_view(row)

    async def _remove(self, provider: Provider) -> None:
        if provider.own:
            params = ModelServerRemoveParams(id=provider.name)
            text = (await self._calls.call(MODEL_SERVER_REMOVE, params)).text
        else:
            text = (await self._calls.call(KEY_SET, KeySetParams(provider=provider.name, key=""))).notice
        self._told.pop(provider.name, None)
        await self._load()
        self.models_changed.emit()
        self.banner.show_message(text, "done")
        self._add.setFocus()

    async def _test(self, provider: str) -> None:
        result = await self._calls.call(MODEL_TEST, ModelTestParams(provider=provider))
        self._show_test(provider, result.text, ok=result.ok)

    def _show_test(self, provider: str, text: str, *, ok: bool) -> None:
        """The page may have been reloaded meanwhile, without the provider."""
        self._under_test.discard(provider)
        self._told[provider] = text, ok
        if provider in self._rows:
            self._rows[provider].show_tested(text, ok=ok)

    def _spawn_for_form(self, work: Coroutine[None, None, None]) -> None:
        self._calls.spawn(work, self._form.show_failure)

    def _on_test_requested(self, provider: str) -> None:
        if provider in self._under_test:
            return
        self._under_test.add(provider)
        self._rows[provider].show_testing()
        self._calls.spawn(self._test(provider), partial(self._show_test, provider, ok=False))

    def _on_add_clicked(self) -> None:
        self.add_provider()

    def _on_form_cancelled(self) -> None:
        self._close_form()
        self._add.setFocus()

    def _close_form(self) -> None:
        self._form.hide()
        self._buttons.show()

    def _on_server_tested(self, params: ModelServerTestParams) -> None:
        self._spawn_for_form(self._test_server(params))

    def _on_server_saved(self, params: ModelServerSaveParams) -> None:
        self._spawn_for_form(self._save_server(params))

    def _on_key_saved(self, params: KeySetParams) -> None:
        self._spawn_for_form(self._save_key(params))

    def _on_remove_requested(self, provider: Provider) -> None:
        self._calls.spawn(self._remove(provider), self.show_failure)

    def _on_models_requested(self, row: ProviderRowView) -> None:
        if self._models is not None and self._models.provider.name == row.provider.name:
            self._close_models()
        else:
            self._open_models(row)

    def _on_models_chosen(self, params: ModelChooseParams) -> None:
        self._calls.spawn(self._choose(params), self.show_failure)

    async def _choose(self, params: ModelChooseParams) -> None:
        await self._calls.call(MODEL_CHOOSE, params)
        self.models_changed.emit()

    def _on_model_saved(self, params: ModelSaveParams) -> None:
        self._calls.spawn(self._save_model(params), self._show_model_failure)

    async def _save_model(self, params: ModelSaveParams) -> None:
        await self._calls.call(MODEL_SAVE, params)
        await self._reload_models()

    def _on_model_removed(self, params: ModelRemoveParams) -> None:
        self._calls.spawn(self._remove_model(params), self._show_model_failure)

    async def _remove_model(self, params: ModelRemoveParams) -> None:
        await self._calls.call(MODEL_REMOVE, params)
        await self._reload_models()

    async def _reload_models(self) -> None:
        await self._load()
        if self._models is not None:
            self._models.take_focus()
        self.models_changed.emit()

    def _show_model_failure(self, text: str) -> None:
        """The form of the model keeps what was typed."""
        if self._models is not None:
            self._models.show_failure(text)

    def _on_refresh_clicked(self) -> None:
        self._calls.spawn(self._refresh(), self.show_failure)


def _is_set_up(provider: Provider) -> bool:
    """Without the models of the tour, and without what was never given a key."""
    if provider.name in (_GIVEN_WITH_A_TASK, _SCRIPTED):
        return False
    return provider.ready or provider.own or provider.key_source in _WITH_KEY


def _order(provider: Provider) -> tuple[bool, bool]:
    """Return a sort key: the person's own providers first, and ready ones before others."""
    return not provider.own, not provider.ready
