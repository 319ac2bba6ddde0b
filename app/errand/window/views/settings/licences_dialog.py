"""The libraries that Errand is made of, and the texts of their licences."""

import asyncio

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QSplitter,
    QWidget,
)

from errand.system.licences import Library, libraries
from errand.text.translation import tr, trn
from errand.window.theme.style import set_style
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls
from errand.window.views.shared.item_delegate import DETAIL, ItemDelegate
from errand.window.widgets.boxes import fill, hbox, set_vbox
from errand.window.widgets.dialogs import resize_on_screen
from errand.window.widgets.forms.search_field import SearchField
from errand.window.widgets.labels import TextLabel

_WIDTH, _HEIGHT, _LIST_WIDTH = 900, 620, 320
_LIBRARY = Qt.ItemDataRole.UserRole + 100


class LicencesDialog(QDialog):
    """Reads them when it is first shown. Not modal."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._found: tuple[Library, ...] = ()
        self.setWindowTitle(tr("Licences"))
        resize_on_screen(self, theme.pixels(_WIDTH), theme.pixels(_HEIGHT))
        self.search = SearchField(theme, tr("Search libraries"))
        self.list = QListWidget()
        self.text = QPlainTextEdit()
        self._head = TextLabel(theme, tr("Loading…"), tone="muted")
        self._lay_out()
        self.search.searched.connect(self._filter)
        self.search.down_pressed.connect(self.list.setFocus)
        self.list.currentItemChanged.connect(self._on_current_changed)

    def load(self, calls: EngineCalls) -> None:
        if not self._found:
            calls.spawn(self._load(), self._head.setText)

    async def _load(self) -> None:
        self._found = await asyncio.to_thread(libraries)
        self._head.setText(trn("{n} library", "{n} libraries", len(self._found)))
        for library in self._found:
            item = QListWidgetItem(f"{library.name} {library.version}".strip())
            item.setData(DETAIL, library.licence)
            item.setData(_LIBRARY, library)
            self.list.addItem(item)
        self.list.setCurrentRow(0)

    def _filter(self, text: str) -> None:
        for row in range(self.list.count()):
            item = self.list.item(row)
            item.setHidden(text.casefold() not in f"{item.text()} {item.data(DETAIL)}".casefold())

    def _on_current_changed(self, current: QListWidgetItem | None) -> None:
        library: object = current.data(_LIBRARY) if current is not None else None
        if isinstance(library, Library):
            self.text.setPlainText(
                "\n\n".join(library.texts) or tr("{licence}. No licence text included.").format(licence=library.licence)
            )

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.list.setAccessibleName(tr("Libraries"))
        self.list.setItemDelegate(ItemDelegate(self._theme, self.list))
        self.list.setFrameShape(QListWidget.Shape.NoFrame)
        self.list.setUniformItemSizes(True)
        self.text.setAccessibleName(tr("Licence"))
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setFont(self._theme.font(tokens.size_small, mono=True))
        self.text.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        set_style(self.text, "look", "code")
        splitter = QSplitter(Qt.Orientation.Horizontal)
        splitter.setChildrenCollapsible(False)
        splitter.addWidget(self.list)
        splitter.addWidget(self.text)
        splitter.setStretchFactor(1, 1)
        splitter.setSizes([_LIST_WIDTH, _WIDTH - _LIST_WIDTH])
        set_vbox(
            self,
            hbox(fill(self.search), tokens.space_close, self._head),
            fill(splitter),
            spacing=tokens.space_normal,
            margins=(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_wide),
        )
