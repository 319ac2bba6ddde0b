"""The attachments of the next message, as a row of chips."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QImage, QKeyEvent, QPixmap, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QWidget

from errand.client.number_format import file_size
from errand.protocol.blocks import ImageBlock
from errand.system.regular_file import NotRegularFile, read_beginning
from errand.text.translation import tr
from errand.window.theme.style import set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import set_hbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.labels import ElidedLabel, TextLabel
from errand.window.widgets.pictures import PictureLoader, picture_format

_REMOVERS = (Qt.Key.Key_Delete, Qt.Key.Key_Backspace)

# The engine's limits, checked here before anything is sent.
_MAX_FILES = 20
_HEAD_BYTES = 16
_MAX_PICTURE_BYTES = 10 * 1024 * 1024


class AttachmentView(QFrame):
    """One attached file, with its picture once that is decoded. Emits `removed` on its button, Del or Backspace."""

    removed = Signal()

    def __init__(self, theme: Theme, path: str) -> None:
        super().__init__()
        self.setObjectName("chip")
        self.path = path
        self._theme = theme
        tokens = theme.tokens
        self._picture = QLabel()
        self._loader = PictureLoader(self)
        self._loader.loaded.connect(self._on_loaded)
        name = ElidedLabel(theme, Path(path).name, size=tokens.size_small, mode=Qt.TextElideMode.ElideMiddle)
        name.setMaximumWidth(tokens.column // 4)
        size_text = _size_of(path)
        self.button = IconButton(theme, "x", tr("Remove {name}").format(name=Path(path).name))
        set_hbox(
            self,
            self._picture,
            name,
            TextLabel(theme, size_text, size=tokens.size_small, tone="muted"),
            self.button,
            spacing=tokens.space_close,
            margins=(tokens.space_close, 0, 0, 0),
        )
        self.setAccessibleName(tr("Attached: {name}, {size}").format(name=Path(path).name, size=size_text))
        set_tool_tip(self, path)
        self.button.clicked.connect(self.removed)
        theme.changed.connect(self._on_theme_changed)
        self._on_theme_changed()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in _REMOVERS:
            self.removed.emit()
        else:
            super().keyPressEvent(event)

    def _on_theme_changed(self) -> None:
        side = self._theme.tokens.icon_large
        ratio = self.devicePixelRatio()
        self._picture.setPixmap(self._theme.icon("file", "muted").pixmap(QSize(side, side), ratio))
        self._loader.load(ImageBlock(media_type="", path=self.path), QSize(side, side) * ratio)

    def _on_loaded(self, picture: QImage) -> None:
        if not picture.isNull():
            thumbnail = QPixmap.fromImage(picture)
            thumbnail.setDevicePixelRatio(self.devicePixelRatio())
            self._picture.setPixmap(thumbnail)


def _size_of(path: str) -> str:
    try:
        return file_size(Path(path).stat().st_size)
    except OSError:
        return tr("gone")


class AttachmentsView(QScrollArea):
    """Hidden without attachments. Emits `changed` on each change, and `dropped` with the path that the user removed.

    Emits `refused` with the reason if a file cannot be attached, and `folder_dropped` with the path of a folder, which
    cannot be attached.
    """

    changed = Signal()
    dropped = Signal(str)
    refused = Signal(str)
    folder_dropped = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._chips: dict[str, AttachmentView] = {}
        self._inner = QWidget()
        self._row = QHBoxLayout(self._inner)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(theme.tokens.space_tight)
        self._row.addStretch(1)
        self.setAccessibleName(tr("Attached files"))
        self.setWidget(self._inner)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.viewport().setAutoFillBackground(False)
        self._inner.setAutoFillBackground(False)  # setWidget enables it
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.hide()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._chips)

    def add(self, paths: Iterable[str]) -> None:
        """Attach files. Emits `refused` for files that cannot be attached."""
        for path in paths:
            if Path(path).is_dir():
                self.folder_dropped.emit(path)
            elif why := self._refusal(path):
                self.refused.emit(why)
            elif path not in self._chips:
                self._add_chip(path)
        self._show()

    def restore(self, paths: Iterable[str]) -> None:
        """Restore the files of a message that was not sent. Files that no longer exist are shown as missing."""
        for path in paths:
            if path not in self._chips:
                self._add_chip(path)
        self._show()

    def clear(self) -> None:
        for path in self.paths:
            self._remove(path)
        self._show()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def _refusal(self, path: str) -> str:
        name = Path(path).name
        try:
            head = read_beginning(Path(path), _HEAD_BYTES)
            size = Path(path).stat().st_size
        except NotRegularFile as error:
            return tr("Couldn't attach {name}: {error}.").format(name=name, error=error.strerror)
        except OSError:
            return tr("Couldn't attach {name}: it's missing or can't be read.").format(name=name)
        if len(self._chips) >= _MAX_FILES:
            return tr("Couldn't attach {name}: a message can have up to {most} files.").format(
                name=name, most=_MAX_FILES
            )
        if size > _MAX_PICTURE_BYTES and picture_format(head):
            return tr("Couldn't attach {name}: pictures can be up to 10 MB.").format(name=name)
        return ""

    def _add_chip(self, path: str) -> None:
        chip = AttachmentView(self._theme, path)
        chip.removed.connect(partial(self._on_removed, path))
        self._chips[path] = chip
        self._row.insertWidget(self._row.count() - 1, chip)

    def _remove(self, path: str) -> None:
        chip = self._chips.pop(path)
        self._row.removeWidget(chip)
        chip.hide()
        chip.deleteLater()

    def _show(self) -> None:
        self.setVisible(bool(self._chips))
        self._fit()
        self.changed.emit()

    def _fit(self) -> None:
        """Resize to the height of a chip, plus the scroll bar if the chips exceed the width."""
        size = self._inner.sizeHint()
        bar = self.horizontalScrollBar().sizeHint().height() if size.width() > self.width() else 0
        self.setFixedHeight(size.height() + bar)

    def _on_removed(self, path: str) -> None:
        number = self.paths.index(path)
        self._remove(path)
        self._show()
        if self._chips:
            list(self._chips.values())[min(number, len(self._chips) - 1)].button.setFocus()
        self.dropped.emit(path)
