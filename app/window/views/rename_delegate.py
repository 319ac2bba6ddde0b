"""An entry of a list whose title can be changed in its place."""

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPersistentModelIndex, Signal
from PySide6.QtWidgets import QLineEdit, QStyleOptionViewItem, QWidget

from app.window.views.entry import KEY, EntryDelegate

_Index = QModelIndex | QPersistentModelIndex
_LONGEST = 500


class RenameDelegate(EntryDelegate):
    """`renamed` with what the entry stands for and the new title; the entry changes when the engine says so."""

    renamed = Signal(str, str)

    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem, index: _Index) -> QWidget:
        return _TitleEdit(parent, _said(index.data(KEY)), _said(index.data()))

    def setEditorData(self, editor: QWidget, index: _Index) -> None:
        """It holds its title from the beginning: an event that comes while somebody types must not undo that."""

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: _Index) -> None:
        assert isinstance(editor, _TitleEdit)
        title = editor.text().strip()
        if title and title != editor.before:
            self.renamed.emit(editor.key, title)

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem, index: _Index) -> None:
        editor.setGeometry(self.place_of(option, index))


class _TitleEdit(QLineEdit):
    """Knows whose title it is: the entries may move while it is open."""

    def __init__(self, parent: QWidget, key: str, before: str) -> None:
        super().__init__(before, parent)
        self.key = key
        self.before = before
        self.setMaxLength(_LONGEST)
        self.setAccessibleName("Title")
        self.selectAll()


def _said(value: object) -> str:
    return value if isinstance(value, str) else ""
