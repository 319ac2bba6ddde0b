"""The models of one provider, opened below its row, and what a person changes there."""

from functools import partial
from typing import TypeVar

from PySide6.QtCore import QObject, Signal

from errand.protocol.base import EmptyResult, Method, Wire
from errand.protocol.settings import (
    MODEL_CHOOSE,
    MODEL_REMOVE,
    MODEL_SAVE,
    ModelChooseParams,
)
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls
from errand.window.views.settings.providers.models_view import ProviderModelsView
from errand.window.views.settings.providers.row import ProviderRowView

P = TypeVar("P", bound=Wire)


class OpenedModels(QObject):
    """The models of one provider at a time.

    `chosen` says that other models are offered, `listed` that a model was added, changed or removed: the list is to be
    loaded again. `form_opened` gives the form of a model, to be brought into view, `failed` a reason.
    """

    chosen = Signal()
    listed = Signal()
    form_opened = Signal(object)
    failed = Signal(str)

    def __init__(self, theme: Theme, calls: EngineCalls, parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme
        self._calls = calls
        self._row: ProviderRowView | None = None
        self._view: ProviderModelsView | None = None

    @property
    def provider(self) -> str:
        """The name of the provider whose models are open; "" for none."""
        return self._row.provider.name if self._row is not None else ""

    def toggle(self, row: ProviderRowView) -> None:
        """Open the models below a row, or close them."""
        if self.provider == row.provider.name:
            self.close()
        else:
            self.open(row)

    def open(self, row: ProviderRowView) -> None:
        """Open the models below a row; those of another row are closed."""
        self.close()
        self._row = row
        self._view = view = ProviderModelsView(self._theme, row.provider, row.models)
        view.chosen.connect(self._on_chosen)
        view.model_saved.connect(partial(self._change, MODEL_SAVE))
        view.model_removed.connect(partial(self._change, MODEL_REMOVE))
        view.form_opened.connect(partial(self.form_opened.emit, view.form))
        row.show_models(view)

    def close(self) -> None:
        if self._row is not None:
            self._row.show_models(None)
        self.forget()

    def forget(self) -> None:
        """The rows are gone, and the models with them."""
        self._row = self._view = None

    def take_focus(self) -> None:
        if self._view is not None:
            self._view.take_focus()

    def _on_chosen(self, params: ModelChooseParams) -> None:
        self._calls.spawn(self._choose(params), self.failed.emit)

    async def _choose(self, params: ModelChooseParams) -> None:
        await self._calls.call(MODEL_CHOOSE, params)
        self.chosen.emit()

    def _change(self, method: Method[P, EmptyResult], params: P) -> None:
        self._calls.spawn(self._send_change(method, params), self._show_failure)

    async def _send_change(self, method: Method[P, EmptyResult], params: P) -> None:
        await self._calls.call(method, params)
        self.listed.emit()

    def _show_failure(self, text: str) -> None:
        """The form of the model keeps what was typed."""
        if self._view is not None:
            self._view.show_failure(text)
