"""Which models of a provider are offered: a list to tick, and a form for models of one's own."""

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtWidgets import QListWidget, QListWidgetItem, QSizePolicy, QWidget

from errand.protocol.settings import Model, ModelChooseParams, ModelRemoveParams, ModelSaveParams, Provider
from errand.text.translation import grouped, tr
from errand.window.stores.model_choice import abilities_text, context_text, price_text, shown_name
from errand.window.theme.style import plain_tool_tip, push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.providers.model_form import ModelFormView
from errand.window.widgets.boxes import STRETCH, hbox, set_vbox
from errand.window.widgets.forms.search_field import SearchField
from errand.window.widgets.labels import TextLabel

_KEY = Qt.ItemDataRole.UserRole
_SAVE_AFTER_MS = 300
_SHORT, _LONG, _ROW_HEIGHT = 3, 9, 26


class ProviderModelsView(QWidget):
    """`chosen`, `model_saved` and `model_removed` give the params of the call; ticks are sent after a short wait."""

    chosen = Signal(object)
    model_saved = Signal(object)
    model_removed = Signal(object)
    form_opened = Signal()

    def __init__(self, theme: Theme, provider: Provider, models: tuple[Model, ...]) -> None:
        super().__init__()
        self.provider = provider
        self._row_height = theme.pixels(_ROW_HEIGHT)
        self._by_id = {model.id: model for model in models}
        self._search = SearchField(theme, tr("Search models"))
        self._list = QListWidget()
        self._list.setAccessibleName(tr("Models of {provider}").format(provider=provider.title))
        self._list.setUniformItemSizes(True)
        self._list.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self._all, self._none = push_button(tr("Select all"), "quiet"), push_button(tr("Select none"), "quiet")
        self._count = TextLabel(theme, tone="muted", wrap=True)
        self._add, self._edit = push_button(tr("Add model…")), push_button(tr("Edit…"), name=tr("Edit selected model"))
        self._remove = push_button(tr("Remove"), name=tr("Remove selected model"))
        set_tool_tip(self._add, tr("Add a model that this provider doesn't list"))
        self.form = ModelFormView(theme, provider)
        self._timer = QTimer(self, singleShot=True, interval=_SAVE_AFTER_MS)
        self._fill(models)
        self._lay_out(theme, models)
        self._connect()
        self._show_count()
        self._on_selected()

    def show_failure(self, text: str) -> None:
        self.form.show_failure(text)

    def take_focus(self) -> None:
        """Focus the button that adds a model."""
        self._add.setFocus(Qt.FocusReason.OtherFocusReason)

    def _fill(self, models: tuple[Model, ...]) -> None:
        for model in models:
            facts = (
                context_text(model),
                price_text(model),
                abilities_text(model),
                tr("added by you") if model.own else "",
            )
            item = QListWidgetItem("   ·   ".join(part for part in (shown_name(model), *facts) if part))
            item.setData(_KEY, model.id)
            item.setToolTip(plain_tool_tip(model.id))
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            item.setCheckState(Qt.CheckState.Checked if model.shown else Qt.CheckState.Unchecked)
            item.setSizeHint(QSize(0, self._row_height))
            self._list.addItem(item)

    def _lay_out(self, theme: Theme, models: tuple[Model, ...]) -> None:
        tokens = theme.tokens
        self._search.setVisible(len(models) > _LONG)
        self._list.setVisible(bool(models))
        self._list.setFixedHeight(min(max(len(models), _SHORT), _LONG) * self._row_height + 2 * tokens.space_tight)
        buttons = hbox(
            self._add, self._edit, self._remove, STRETCH, self._count, self._all, self._none, spacing=tokens.space_close
        )
        for part in (self._edit, self._remove, self._all, self._none):
            part.setVisible(bool(models))
        set_vbox(
            self,
            self._search,
            self._list,
            buttons,
            self.form,
            spacing=tokens.space_close,
            margins=(0, tokens.space_tight, 0, 0),
        )

    def _connect(self) -> None:
        self._search.searched.connect(self._on_searched)
        self._list.itemChanged.connect(self._on_ticked)
        self._list.itemSelectionChanged.connect(self._on_selected)
        self._list.itemDoubleClicked.connect(self._on_edit_clicked)
        self._all.clicked.connect(self._on_all_clicked)
        self._none.clicked.connect(self._on_none_clicked)
        self._timer.timeout.connect(self._send)
        self._add.clicked.connect(self._on_add_clicked)
        self._edit.clicked.connect(self._on_edit_clicked)
        self._remove.clicked.connect(self._on_remove_clicked)
        self.form.saved.connect(self._on_saved)
        self.form.closed.connect(self._add.setFocus)

    @property
    def _items(self) -> list[QListWidgetItem]:
        return [self._list.item(row) for row in range(self._list.count())]

    @property
    def _selected(self) -> Model | None:
        items = self._list.selectedItems()
        key: object = items[0].data(_KEY) if items else None
        return self._by_id.get(key) if isinstance(key, str) else None

    @property
    def _ticked(self) -> list[str]:
        ids: list[object] = [item.data(_KEY) for item in self._items if item.checkState() == Qt.CheckState.Checked]
        return [key for key in ids if isinstance(key, str)]

    def _show_count(self) -> None:
        total = self._list.count()
        if not total:
            self._count.setText(tr("This provider doesn't list its models. Add the ones you use."))
        else:
            self._count.setText(
                tr("{ticked} of {total} selected").format(ticked=grouped(len(self._ticked)), total=grouped(total))
            )

    def _tick(self, state: Qt.CheckState) -> None:
        """Tick or untick the models that the search shows."""
        for item in self._items:
            if not item.isHidden():
                item.setCheckState(state)

    def _send(self) -> None:
        """Everything ticked means all, also what the provider lists later. Models of one's own are always offered."""
        ticked = self._ticked
        names = tuple(key.partition("/")[2] for key in ticked)
        everything = len(ticked) == self._list.count()
        self.chosen.emit(ModelChooseParams(provider=self.provider.name, models=None if everything else names))

    def _on_searched(self, text: str) -> None:
        search_words = text.lower().split()
        for item in self._items:
            searched_text = f"{item.text()} {item.toolTip()}".lower()
            item.setHidden(not all(word in searched_text for word in search_words))

    def _on_ticked(self) -> None:
        self._show_count()
        self._timer.start()

    def _on_selected(self) -> None:
        model = self._selected
        self._edit.setEnabled(model is not None)
        self._remove.setEnabled(model is not None and model.own)

    def _on_all_clicked(self) -> None:
        self._tick(Qt.CheckState.Checked)

    def _on_none_clicked(self) -> None:
        self._tick(Qt.CheckState.Unchecked)

    def _on_add_clicked(self) -> None:
        self.form.open_for(None)
        self.form_opened.emit()

    def _on_edit_clicked(self) -> None:
        if self._selected is not None:
            self.form.open_for(self._selected)
            self.form_opened.emit()

    def _on_remove_clicked(self) -> None:
        if self._selected is not None:
            self.model_removed.emit(ModelRemoveParams(id=self._selected.id))

    def _on_saved(self, params: ModelSaveParams) -> None:
        self.model_saved.emit(params)
