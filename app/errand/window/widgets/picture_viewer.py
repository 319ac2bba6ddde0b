"""Shows one picture large: fit to the window or zoomed, panned, copied and saved."""

import math
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QFocusEvent,
    QImage,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPixmap,
    QShortcut,
    QWheelEvent,
)
from PySide6.QtWidgets import QDialog, QFileDialog, QFrame, QHBoxLayout, QLabel, QScrollArea, QWidget

from errand.client.number_format import file_size
from errand.client.safe_text import plain
from errand.protocol.blocks import ImageBlock
from errand.system.regular_file import write_atomically
from errand.text.translation import tr
from errand.window.theme.style import paint_focus_ring, push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import fill, set_hbox, set_vbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.dialogs import resize_on_screen
from errand.window.widgets.pictures import BACKING, PictureLoader, fitted, picture_bytes, picture_size

_SCREEN_SHARE = 0.85
_MIN_SIZE = QSize(560, 360)
# Larger ones are shown scaled down: 16 million pixels take 64 MB.
_MAX_PIXELS = 16_000_000
_STEP = 1.25
_MAX_ZOOM = 16.0
_MIN_ZOOM = 0.02
_WHEEL_STEP = 120
_PAN_STEP = 64
_RING = 3

_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp"}
_MAX_NAME_LENGTH = 60


class _Canvas(QWidget):
    """Paints the part of the picture that is exposed."""

    def __init__(self) -> None:
        super().__init__()
        self.picture = QPixmap()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self.picture.isNull() or self.width() < 1 or self.height() < 1:
            return
        painter, exposed = QPainter(self), QRectF(event.rect())
        across, down = self.picture.width() / self.width(), self.picture.height() / self.height()
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform, across > 0.5)  # enlarged pixels stay sharp
        source = QRectF(exposed.x() * across, exposed.y() * down, exposed.width() * across, exposed.height() * down)
        if self.picture.hasAlphaChannel():
            painter.fillRect(exposed, BACKING)
        painter.drawPixmap(exposed, self.picture, source)


class PictureArea(QScrollArea):
    """The picture, fitted or zoomed. A zoom of 1 shows one pixel of the picture as one of the screen.

    The wheel zooms at the pointer, dragging and the arrow keys pan. `on_zoom` is called when the zoom changed.
    """

    def __init__(self, size: QSize, on_zoom: Callable[[], None]) -> None:
        super().__init__()
        self._size = size
        self._on_zoom = on_zoom
        self._canvas = _Canvas()
        self._is_fitted = True
        self._zoom = 1.0
        self._dragged_from: QPoint | None = None
        self._dragged_scroll = QPoint()
        self.setWidget(self._canvas)
        self.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setCursor(Qt.CursorShape.OpenHandCursor)

    @property
    def zoom(self) -> float:
        return self._zoom

    def show_picture(self, picture: QPixmap) -> None:
        self._canvas.picture = picture
        self._canvas.update()

    def fit(self) -> None:
        """Show all of it, also after the window is resized; a small picture is not enlarged."""
        self._is_fitted = True
        room = self.maximumViewportSize()
        fitted_size = fitted(self._shown(1.0), room)
        self._apply(fitted_size.width() / max(1, self._shown(1.0).width()))

    def set_zoom(self, zoom: float, at: QPointF | None = None) -> None:
        """The point `at` of the viewport, by default its middle, stays where it is."""
        self._is_fitted = False
        middle = at if at is not None else QPointF(self.viewport().rect().center())
        before = QPointF(self._canvas.mapFrom(self.viewport(), middle.toPoint()))
        old = self._zoom
        self._apply(min(max(zoom, _MIN_ZOOM), _MAX_ZOOM))
        after = before * (self._zoom / old) - middle
        self.horizontalScrollBar().setValue(round(after.x()))
        self.verticalScrollBar().setValue(round(after.y()))

    def step(self, *, larger: bool, at: QPointF | None = None) -> None:
        self.set_zoom(self._zoom * _STEP if larger else self._zoom / _STEP, at)

    def _apply(self, zoom: float) -> None:
        self._zoom = zoom
        self._canvas.resize(self._shown(zoom))
        self._on_zoom()

    def _shown(self, zoom: float) -> QSize:
        """Return the size on the screen, in its logical pixels."""
        scale = zoom / self.devicePixelRatioF()
        return QSize(max(1, round(self._size.width() * scale)), max(1, round(self._size.height() * scale)))

    def viewportEvent(self, event: QEvent) -> bool:
        done = super().viewportEvent(event)
        if event.type() == QEvent.Type.Resize and self._is_fitted:
            self.fit()
        return done

    def wheelEvent(self, event: QWheelEvent) -> None:
        turns = event.angleDelta().y() / _WHEEL_STEP
        if turns:
            self.set_zoom(self._zoom * _STEP**turns, event.position())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self._dragged_from = event.position().toPoint()
            self._dragged_scroll = QPoint(self.horizontalScrollBar().value(), self.verticalScrollBar().value())
            self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._dragged_from is not None:
            moved = self._dragged_scroll - (event.position().toPoint() - self._dragged_from)
            self.horizontalScrollBar().setValue(moved.x())
            self.verticalScrollBar().setValue(moved.y())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._dragged_from = None
        self.viewport().setCursor(Qt.CursorShape.OpenHandCursor)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        if self._is_fitted:
            self.set_zoom(1.0, event.position())
        else:
            self.fit()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        across, down = self.horizontalScrollBar(), self.verticalScrollBar()
        match event.key():
            case Qt.Key.Key_Left:
                across.setValue(across.value() - _PAN_STEP)
            case Qt.Key.Key_Right:
                across.setValue(across.value() + _PAN_STEP)
            case Qt.Key.Key_Up:
                down.setValue(down.value() - _PAN_STEP)
            case Qt.Key.Key_Down:
                down.setValue(down.value() + _PAN_STEP)
            case _:
                event.ignore()  # Escape is the dialog's

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._update_frame()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._update_frame()

    def _update_frame(self) -> None:
        frame = self.parentWidget()
        assert frame is not None, "it paints the focus"
        frame.update()


class _Frame(QWidget):
    """Paints the focus ring around the area."""

    def __init__(self, area: PictureArea, theme: Theme) -> None:
        super().__init__()
        self._area = area
        self._theme = theme
        set_hbox(self, area, margins=(_RING, _RING, _RING, _RING))

    def paintEvent(self, event: QPaintEvent) -> None:
        tokens, painter = self._theme.tokens, QPainter(self)
        if self._area.hasFocus():
            paint_focus_ring(painter, self.rect(), tokens, tokens.radius_control)


class PictureViewer(QDialog):
    """`copy` puts the picture on the clipboard. Escape closes; + and − zoom, 0 fits, 1 shows it at 100 %."""

    def __init__(self, image: ImageBlock, theme: Theme, copy: Callable[[QImage], None], over: QWidget) -> None:
        super().__init__(over)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowFlag(Qt.WindowType.WindowMaximizeButtonHint)
        self._image = image
        self._theme = theme
        self._copy = copy
        self._name = plain(image.name) or tr("Picture")
        self._picture = QImage()
        self._size = picture_size(image)
        self.setWindowTitle(self._name)
        self.area = PictureArea(self._size, self._show_zoom)
        self.area.setAccessibleName(tr("Picture {name}").format(name=self._name))
        self.message = QLabel(tr("Opening…"))
        self.message.setTextFormat(Qt.TextFormat.PlainText)
        set_style(self.message, "tone", "muted")
        self.zoom_button = push_button("", "quiet")
        self.zoom_button.clicked.connect(lambda: self.area.set_zoom(1.0))
        self._needs_picture: list[QWidget] = []
        self._lay_out()
        self._bind_keys()
        self._open_at_size(over)
        loader = PictureLoader(self)
        loader.loaded.connect(self._on_loaded)
        loader.load(image, self._most())

    def _most(self) -> QSize:
        pixels = self._size.width() * self._size.height()
        scale = math.sqrt(min(1.0, _MAX_PIXELS / max(1, pixels)))
        return self._size * scale if self._size.isValid() else QSize(1, 1)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        row = QHBoxLayout()
        row.setSpacing(tokens.space_tight)
        row.addWidget(self.message, 1)
        for icon, name, key, action in (
            ("zoom-out", tr("Zoom out"), "−", lambda: self.area.step(larger=False)),
            ("zoom-in", tr("Zoom in"), "+", lambda: self.area.step(larger=True)),
            ("maximize", tr("Fit to window"), "0", self.area.fit),
            ("copy", tr("Copy picture"), _keys(QKeySequence.StandardKey.Copy), self._on_copy),
            ("download", tr("Save as…"), _keys(QKeySequence.StandardKey.Save), self._on_save),
        ):
            button = IconButton(self._theme, icon, name, shortcut=key)
            button.clicked.connect(action)
            row.addWidget(button)
            self._needs_picture.append(button)
            if icon == "zoom-out":
                row.addWidget(self.zoom_button)
                self._needs_picture.append(self.zoom_button)
        close = push_button(tr("Close"))
        close.clicked.connect(self.close)
        row.addSpacing(tokens.space_close)
        row.addWidget(close)
        set_vbox(
            self,
            fill(_Frame(self.area, self._theme)),
            row,
            spacing=tokens.space_normal,
            margins=(tokens.space_wide, tokens.space_wide, tokens.space_wide, tokens.space_normal),
        )
        self.area.setFocus()

    def _bind_keys(self) -> None:
        keys: tuple[tuple[tuple[str, ...], Callable[[], None]], ...] = (
            (("+", "=", "Ctrl++", "Ctrl+="), lambda: self.area.step(larger=True)),
            (("-", "Ctrl+-"), lambda: self.area.step(larger=False)),
            (("0", "Ctrl+0"), self.area.fit),
            (("1", "Ctrl+1"), lambda: self.area.set_zoom(1.0)),
            ((_keys(QKeySequence.StandardKey.Copy),), self._on_copy),
            ((_keys(QKeySequence.StandardKey.Save),), self._on_save),
        )
        for names, action in keys:
            for name in names:
                QShortcut(QKeySequence(name), self).activated.connect(action)

    def _open_at_size(self, over: QWidget) -> None:
        room = over.screen().availableSize() * _SCREEN_SHARE
        frame = QSize(2 * self._theme.tokens.space_wide, 5 * self._theme.tokens.space_far)
        preferred = self._size / self.devicePixelRatioF() + frame if self._size.isValid() else _MIN_SIZE
        size = preferred.expandedTo(_MIN_SIZE).boundedTo(room)
        resize_on_screen(self, size.width(), size.height())

    def _on_loaded(self, picture: QImage) -> None:
        if picture.isNull():
            self.message.setText(tr("Can't show {name}: it's missing, damaged or too large.").format(name=self._name))
            for control in self._needs_picture:
                control.setEnabled(False)
            return
        self._picture = picture
        self.message.setText(self._facts())
        self.area.show_picture(QPixmap.fromImage(picture))

    def _facts(self) -> str:
        size = f"{self._size.width():,} × {self._size.height():,}"
        return " · ".join((self._name, size, file_size(_bytes_of(self._image))))

    def _show_zoom(self) -> None:
        percent = f"{self.area.zoom * 100:.0f} %"
        self.zoom_button.setText(percent)
        self.zoom_button.setAccessibleName(tr("Zoom {percent}, reset to 100%").format(percent=percent))

    def _on_copy(self) -> None:
        if not self._picture.isNull():
            self._copy(self._picture)
            self.message.setText(tr("Copied"))

    def _on_save(self) -> None:
        dialog = QFileDialog(self, tr("Save picture"), str(Path.home()))
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(suggested_name(self._image))
        dialog.fileSelected.connect(self.save)
        dialog.open()

    def save(self, path: str) -> None:
        """Write the picture's file, unchanged; the line below the picture says how it went."""
        data = picture_bytes(self._image)
        if not data:
            self.message.setText(tr("Couldn't save: the picture no longer exists."))
            return
        try:
            write_atomically(Path(path), data)
        except OSError as error:
            self.message.setText(tr("Couldn't save: {error}.").format(error=error.strerror or error))
        else:
            self.message.setText(tr("Saved as {path}.").format(path=plain(path)))


def suggested_name(image: ImageBlock) -> str:
    """Return a file name from the picture's name, with the ending of its type."""
    ending = _ENDINGS.get(image.media_type, Path(image.path).suffix or ".png")
    safe_name = "".join(letter if letter.isalnum() or letter in "-_." else " " for letter in image.name)
    stem = "-".join(safe_name.removesuffix(ending).split())[:_MAX_NAME_LENGTH].strip("-.")
    return (stem or "picture") + ending


def _bytes_of(image: ImageBlock) -> int:
    try:
        return Path(image.path).stat().st_size if image.path else len(image.data) * 3 // 4
    except OSError:
        return 0


def _keys(standard: QKeySequence.StandardKey) -> str:
    return QKeySequence(standard).toString(QKeySequence.SequenceFormat.NativeText)
