"""The part of the page of the state about other folders: what was decided, and what is not given again."""

from functools import partial

from PySide6.QtWidgets import QPushButton, QWidget

from errand.client.texts.recall import folder_text
from errand.protocol.memory import SharedFolders, ShareMode
from errand.text.translation import tr, trn
from errand.window.stores.memory.shared_folders import SharedFoldersStore
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import fill, hbox, set_hbox, set_vbox, stretch
from errand.window.widgets.labels import TextLabel
from errand.window.widgets.list_column import ListColumn

_MODES: dict[ShareMode, str] = {
    "ask": tr("Ask for each pair of folders"),
    "share": tr("Share all folders"),
    "apart": tr("Keep all apart"),
}


class SharedFoldersView(QWidget):
    """Pairs of folders, each with a button that turns the decision; what holds for all others; entries not given."""

    def __init__(self, store: SharedFoldersStore, theme: Theme) -> None:
        super().__init__()
        self._store = store
        self._theme = theme
        space = theme.tokens.space_close
        self._pairs = ListColumn(space, self._row, make_empty=self._empty, has_lines=False)
        self._modes: dict[ShareMode, QPushButton] = {mode: push_button(text) for mode, text in _MODES.items()}
        for mode, button in self._modes.items():
            button.setCheckable(True)
            button.clicked.connect(partial(self._on_mode_clicked, mode))
        self._not_given = TextLabel(theme, wrap=True)
        self._give_again = push_button(tr("Give them again"))
        self._give_again.clicked.connect(store.give_all_again)
        modes = hbox(*self._modes.values(), stretch(1), spacing=space)
        not_given = hbox(fill(self._not_given), self._give_again, spacing=space)
        set_vbox(self, modes, self._pairs, not_given, spacing=space)
        store.changed.connect(self._show)

    def _show(self) -> None:
        result = self._store.result
        if result is None:
            return
        for mode, button in self._modes.items():
            button.setChecked(mode == result.mode)
        self._pairs.show_items({f"{pair.first}\n{pair.second}": pair for pair in result.pairs})
        count = len(result.not_given)
        self._not_given.setText(
            trn("{n} entry is never given again unasked.", "{n} entries are never given again unasked.", count)
        )
        self._not_given.setVisible(count > 0)
        self._give_again.setVisible(count > 0)

    def _empty(self) -> TextLabel:
        return TextLabel(self._theme, tr("Nothing was decided about two folders yet."), tone="muted")

    def _row(self, pair: SharedFolders) -> QWidget:
        text = tr("{first} and {second}: shared") if pair.shares else tr("{first} and {second}: kept apart")
        label = text.format(first=folder_text(pair.first), second=folder_text(pair.second))
        turn = tr("Keep apart") if pair.shares else tr("Share")
        button = push_button(turn, name=f"{turn}: {label}")
        button.clicked.connect(partial(self._on_turned, pair))
        view = QWidget()
        set_hbox(view, fill(TextLabel(self._theme, label, wrap=True)), button, spacing=self._theme.tokens.space_close)
        return view

    def _on_turned(self, pair: SharedFolders, _: bool = False) -> None:
        self._store.share(pair, not pair.shares)

    def _on_mode_clicked(self, mode: ShareMode, _: bool = False) -> None:
        self._store.set_mode(mode)
