"""The providers whose models can be used, and what adds another one."""

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from errand.protocol.settings import (
    KEY_SET,
    MODEL_LIST,
    MODEL_SERVER_REMOVE,
    MODEL_TEST,
    KeySetParams,
    Model,
    ModelListParams,
    ModelListResult,
    ModelServerRemoveParams,
    ModelTestParams,
    Provider,
)
from errand.text.translation import tr
from errand.window.theme.style import push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls, SettingsPageView
from errand.window.views.settings.providers.form import ProviderFormCard, kind_title, provider_kinds
from errand.window.views.settings.providers.opened_models import OpenedModels
from errand.window.views.settings.providers.row import ProviderRowView
from errand.window.widgets.boxes import STRETCH, set_hbox
from errand.window.widgets.labels import TextLabel
from errand.window.widgets.list_column import ListColumn

_TEXT = tr(
    "API keys are stored in the system keyring, or in an encrypted file if there is none. They are never shown again."
)
_EMPTY = tr(
    "No provider set up yet. Add one with its API key, run a model on this machine, or start Ollama, LM Studio, "
    "llama.cpp or vLLM on this computer: they're found automatically."
)
# Its address comes with a task from the terminal; the window adds such servers under a name.
_GIVEN_WITH_A_TASK = "openai_compatible"
_SCRIPTED = "scripted"
_WITH_KEY = ("environment", "keyring", "file")
_REFRESH = tr("Refresh models")


@dataclass(frozen=True, slots=True)
class ListedProvider:
    """A provider with its models, and what it was added as, in words."""

    provider: Provider
    models: tuple[Model, ...]
    kind: str


class ProvidersPageView(SettingsPageView):
    """Emits `models_changed` when other models can be chosen.

    `local_models_requested` asks for the page of models that run on this machine.
    """

    models_changed = Signal()
    local_models_requested = Signal()

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme, tr("Models and keys"), _TEXT)
        self._calls = calls
        self._providers = ListColumn(theme.tokens.space_normal, self._row, make_empty=self._empty)
        self.rows.addLayout(self._providers)
        self._under_test: set[str] = set()
        # Results that came while a list was on its way: its rows are new and show them too.
        self._results: dict[str, tuple[str, bool]] = {}
        self._models = OpenedModels(theme, calls, self)
        self._add = push_button(tr("Add provider…"), "primary")
        self._form = ProviderFormCard(theme, calls)
        self._refresh_button = push_button(_REFRESH)
        set_tool_tip(self._refresh_button, tr("Find local servers and update each provider's models"))
        self._buttons = QWidget()
        self._run_here = push_button(tr("Run a model on this machine…"))
        set_hbox(self._buttons, self._add, self._run_here, self._refresh_button, STRETCH)
        self.top.addWidget(self._buttons)
        self.top.addWidget(self._form)
        self._add.clicked.connect(self.add_provider)
        self._form.cancelled.connect(self._on_form_cancelled)
        self._form.saved.connect(self._on_saved)
        self._models.chosen.connect(self.models_changed)
        self._models.listed.connect(self._on_models_listed)
        self._models.form_opened.connect(self.bring_into_view)
        self._models.failed.connect(self.show_failure)
        self._run_here.clicked.connect(self.local_models_requested)
        self._refresh_button.clicked.connect(self._on_refresh_clicked)

    def load(self) -> None:
        self._results.clear()
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
        self._results.clear()
        try:
            await self._load(fetch=True)
            self.models_changed.emit()
        finally:
            self._refresh_button.setText(_REFRESH)
            self._refresh_button.setEnabled(True)

    def _show(self, result: ModelListResult) -> None:
        opened = self._models.provider
        self._models.forget()
        kinds = provider_kinds(result.providers)
        self._form.set_kinds(kinds)
        providers = sorted(filter(_is_set_up, result.providers), key=_order)
        self._providers.show_items(
            {
                provider.name: ListedProvider(provider, _models_of(provider, result), kind_title(provider, kinds))
                for provider in providers
            }
        )
        if opened in self._providers.rows:
            self._models.open(self._providers.rows[opened])

    def _row(self, listed: ListedProvider) -> ProviderRowView:
        provider = listed.provider
        row = ProviderRowView(self.theme, provider, listed.models, listed.kind)
        row.test_requested.connect(partial(self._on_test_requested, provider.name))
        row.edit_requested.connect(partial(self._open_form, provider))
        row.remove_requested.connect(partial(self._on_remove_requested, provider))
        row.models_requested.connect(partial(self._models.toggle, row))
        if provider.name in self._under_test:
            row.show_testing()
        elif provider.name in self._results:
            text, ok = self._results[provider.name]
            row.show_tested(text, ok=ok)
        return row

    def _empty(self) -> TextLabel:
        return TextLabel(self.theme, _EMPTY, tone="muted", wrap=True)

    def _on_saved(self, provider: str, text: str, is_ok: bool) -> None:
        self._calls.spawn(self._show_saved(provider, text, ok=is_ok), self.show_failure)

    async def _show_saved(self, provider: str, text: str, *, ok: bool) -> None:
        """The result stands in the provider's row, which has the focus and is in view."""
        self._close_form()
        self._results[provider] = text, ok
        await self._load()
        self.models_changed.emit()
        row = self._providers.rows.get(provider)
        if row is not None:
            row.take_focus()
            self.bring_into_view(row)

    async def _remove(self, provider: Provider) -> None:
        if provider.own:
            params = ModelServerRemoveParams(id=provider.name)
            text = (await self._calls.call(MODEL_SERVER_REMOVE, params)).text
        else:
            text = (await self._calls.call(KEY_SET, KeySetParams(provider=provider.name, key=""))).notice
        self._results.pop(provider.name, None)
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
        self._results[provider] = text, ok
        if provider in self._providers.rows:
            self._providers.rows[provider].show_tested(text, ok=ok)

    def _on_test_requested(self, provider: str) -> None:
        if provider in self._under_test:
            return
        self._under_test.add(provider)
        self._providers.rows[provider].show_testing()
        self._calls.spawn(self._test(provider), partial(self._show_test, provider, ok=False))

    def _on_form_cancelled(self) -> None:
        self._close_form()
        self._add.setFocus()

    def _close_form(self) -> None:
        self._form.hide()
        self._buttons.show()

    def _on_remove_requested(self, provider: Provider) -> None:
        self._calls.spawn(self._remove(provider), self.show_failure)

    def _on_models_listed(self) -> None:
        self._calls.spawn(self._reload_models(), self.show_failure)

    async def _reload_models(self) -> None:
        await self._load()
        self._models.take_focus()
        self.models_changed.emit()

    def _on_refresh_clicked(self) -> None:
        self._calls.spawn(self._refresh(), self.show_failure)


def _is_set_up(provider: Provider) -> bool:
    """Without the models of the tour, and without what was never given a key."""
    if provider.name in (_GIVEN_WITH_A_TASK, _SCRIPTED):
        return False
    return provider.ready or provider.own or provider.key_source in _WITH_KEY


def _models_of(provider: Provider, result: ModelListResult) -> tuple[Model, ...]:
    return tuple(model for model in result.models if model.provider == provider.name)


def _order(provider: Provider) -> tuple[bool, bool]:
    """Return a sort key: the person's own providers first, and ready ones before others."""
    return not provider.own, not provider.ready
