"""The theme styles the application, follows the system, and draws icons and fonts."""

import re
from functools import partial
from importlib.resources import files
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject, QRect, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QIcon, QPainter, QPalette, QPixmap
from PySide6.QtWidgets import QApplication, QLabel, QPlainTextEdit, QVBoxLayout, QWidget
from pytestqt.qtbot import QtBot

import errand.engine.tools
import errand.window
from errand.window.theme.style import set_style
from errand.window.theme.theme import ZOOMS, Mode, Theme
from errand.window.theme.tokens import DARK, LIGHT
from errand.window.theme.zoom import rescale
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.labels import TextLabel
from tests.window.accessibility.contrast import ratio

ICONS = Path(str(files("errand.resources") / "icons"))


def test_a_chosen_mode_changes_tokens_palette_and_sheet_at_once(theme: Theme, qapp: QApplication, qtbot: QtBot) -> None:
    with qtbot.waitSignal(theme.changed):
        theme.set_mode("dark")
    assert theme.tokens == DARK
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(DARK.page)
    assert DARK.raised in qapp.styleSheet()
    theme.set_mode("light")
    assert theme.tokens == LIGHT
    assert qapp.palette().color(QPalette.ColorRole.Window) == QColor(LIGHT.page)


def test_the_same_mode_again_changes_nothing(theme: Theme, qtbot: QtBot) -> None:
    with qtbot.assertNotEmitted(theme.changed):
        theme.set_mode("light")


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_the_handle_of_a_scroll_bar_is_seen(theme: Theme, qtbot: QtBot, mode: Mode) -> None:
    theme.set_mode(mode)
    page = QWidget()
    set_style(page, "look", "page")
    qtbot.addWidget(page)
    text = QPlainTextEdit("\n" * 200)
    set_style(text, "look", "bare")
    QVBoxLayout(page).addWidget(text)
    page.show()
    bar = text.verticalScrollBar()
    left, picture = bar.mapTo(page, bar.rect().center()).x(), page.grab().toImage()
    handle, below = (picture.pixelColor(left, y).rgb() & 0xFFFFFF for y in (24, page.height() - 24))
    assert ratio(handle, below) >= 3


def test_icons_are_drawn_in_the_colour_asked_for_and_grey_when_disabled(theme: Theme) -> None:
    icon = theme.icon("square", "failed")
    size = QSize(16, 16)
    edge = icon.pixmap(size).toImage().pixelColor(8, 2)
    assert edge.red() > edge.blue() + 60
    disabled = icon.pixmap(size, QIcon.Mode.Disabled).toImage().pixelColor(8, 2)
    assert abs(disabled.red() - disabled.blue()) < 40


def test_an_icon_is_painted_in_the_resolution_of_its_display(theme: Theme) -> None:
    display = QPixmap(48, 48)
    display.setDevicePixelRatio(3)
    display.fill(Qt.GlobalColor.transparent)
    icon = theme.icon("brain", "failed")
    painter = QPainter(display)
    icon.paint(painter, QRect(0, 0, 16, 16))
    painter.end()
    assert (
        display.toImage().pixelColor(20, 20).alpha() == icon.pixmap(QSize(48, 48)).toImage().pixelColor(20, 20).alpha()
    )
    assert len({display.toImage().pixelColor(x, 24).alpha() for x in range(48)}) > 2


def test_an_icon_is_rendered_once_per_colour_and_again_for_another_theme(theme: Theme) -> None:
    first = theme.icon("check")
    assert theme.icon("check").cacheKey() == first.cacheKey()
    theme.set_mode("dark")
    assert theme.icon("check").cacheKey() != first.cacheKey()


def _source() -> str:
    folders = (errand.window.__path__[0], errand.engine.tools.__path__[0])
    return "\n".join(file.read_text(encoding="utf-8") for folder in folders for file in Path(folder).rglob("*.py"))


def test_only_icons_that_the_code_names_are_vendored() -> None:
    vendored = {file.stem for file in ICONS.glob("*.svg")}
    named = set(re.findall(r'"([a-z0-9-]+)"', _source()))
    assert vendored - named == set()


def test_every_icon_that_the_code_names_is_vendored() -> None:
    """Icons named in tables are drawn by the tests of all views, which a missing file fails."""
    vendored = {file.stem for file in ICONS.glob("*.svg")}
    constructors = r"(?:IconButton|EmptyStateView)\(\s*(?:self\.)?_?theme,"
    drawn = rf'(?:\bicon\(|set_face\(|show_line\(|{constructors})\s*"([a-z0-9-]+)"'
    named = set(re.findall(drawn, _source()))
    assert len(named) > 20
    assert named - vendored == set()


def test_fonts_have_the_size_in_pixels_and_code_is_a_little_smaller(theme: Theme) -> None:
    assert theme.font(13).pixelSize() == 13
    assert theme.font(15, mono=True).pixelSize() == 14
    assert theme.font(13, bold=True).bold()
    code = QFontMetrics(theme.font(13, mono=True))  # QFontInfo does not recognise some monospace fonts
    assert code.horizontalAdvance("i") == code.horizontalAdvance("W")


def test_a_style_property_changed_after_showing_keeps_the_font(theme: Theme, qtbot: QtBot) -> None:
    label = QLabel("text")
    qtbot.addWidget(label)
    set_style(label, "tone", "muted")
    label.setFont(theme.font(18))
    label.show()
    set_style(label, "tone", "failed")
    assert label.font().pixelSize() == 18
    assert label.palette().color(label.foregroundRole()) == QColor(theme.tokens.failed)


def test_the_application_has_its_icon_in_the_sizes_desktops_ask_for(theme: Theme, qapp: QApplication) -> None:
    sizes = {(size.width(), size.height()) for size in qapp.windowIcon().availableSizes()}
    assert {(16, 16), (32, 32), (256, 256)} <= sizes


def test_a_mode_chosen_before_the_theme_is_applied_holds(qapp: QApplication) -> None:
    theme = Theme()
    theme.set_mode("dark")
    theme.apply(qapp)
    assert theme.tokens == DARK
    assert DARK.raised in qapp.styleSheet()


def test_the_transcript_font_can_be_chosen_and_emits_changed(theme: Theme) -> None:
    sizes: list[int] = []
    theme.changed.connect(lambda: sizes.append(theme.tokens.size_reading))
    theme.set_transcript_font("Some Serif", 17)
    assert (sizes, theme.reading_font().families()[0], theme.reading_font().pixelSize()) == ([17], "Some Serif", 17)
    theme.set_mode("dark")
    assert (theme.tokens.dark, theme.tokens.size_reading) == (True, 17)


def test_motion_follows_the_system_until_it_is_chosen(theme: Theme) -> None:
    system = theme.motion
    theme.set_motion(False)
    assert not theme.motion
    theme.set_motion(None)
    assert theme.motion == system


def test_the_zoom_scales_tokens_fonts_and_sheet_and_comes_back_exactly(theme: Theme, qapp: QApplication) -> None:
    tokens, sheet = theme.tokens, qapp.styleSheet()
    for percent in (80, 200, 125):
        theme.set_zoom(percent)
    assert (theme.zoom, theme.tokens.column, theme.tokens.size_base, qapp.font().pixelSize()) == (125, 950, 16, 16)
    assert "padding: 5px 15px; min-height: 25px;" in qapp.styleSheet()
    theme.step_zoom(1)
    assert theme.zoom == 150
    theme.step_zoom(0)
    assert (theme.zoom, theme.tokens, qapp.styleSheet(), qapp.font().pixelSize()) == (100, tokens, sheet, 13)
    theme.set_zoom(1_000)
    theme.step_zoom(1)
    assert theme.zoom == 200


@pytest.mark.parametrize("percent", ZOOMS)
def test_sizes_of_text_stay_different_in_each_zoom(percent: int) -> None:
    theme = Theme()
    theme.set_zoom(percent)
    tokens = theme.tokens
    assert tokens.size_small < tokens.size_base < tokens.size_large < tokens.size_heading


def test_the_size_for_reading_scales_all_text_of_conversations_alone(theme: Theme, qapp: QApplication) -> None:
    sizes: list[int] = []
    theme.conversations.changed.connect(lambda: sizes.append(theme.conversations.tokens.size_base))
    theme.set_transcript_font("", 20)
    inside = theme.conversations.tokens
    assert (sizes, inside.size_small, inside.size_heading, inside.column) == ([20], 18, 28, 760)
    assert theme.tokens.size_base == qapp.font().pixelSize() == 13
    assert "#conversation QPushButton" in qapp.styleSheet()


def test_widgets_that_exist_grow_and_shrink_with_the_zoom_and_the_mode(theme: Theme, qtbot: QtBot) -> None:
    box = QWidget()
    qtbot.addWidget(box)
    column = QVBoxLayout(box)
    column.setContentsMargins(8, 4, 8, 0)
    label = TextLabel(theme, "Text", size=theme.tokens.size_small)
    button = IconButton(theme, "x", "Close")
    box.setMinimumWidth(300)
    column.addWidget(label)
    column.addWidget(button)
    box.show()
    theme.rescaled.connect(partial(rescale, box))

    def sizes() -> tuple[int, ...]:
        margins = column.contentsMargins()
        return label.font().pixelSize(), button.iconSize().width(), margins.left(), margins.top(), box.minimumWidth()

    before = sizes()
    assert before == (12, 16, 8, 4, 300)
    theme.set_zoom(80)
    assert sizes() == (10, 13, 6, 3, 240)
    theme.set_zoom(200)
    theme.set_mode("dark")  # a new style sheet
    assert sizes() == (24, 32, 16, 8, 600)
    theme.set_zoom(100)
    theme.set_mode("light")
    assert sizes() == before


def test_a_switch_styles_each_widget_once_however_deep_it_is(theme: Theme, qapp: QApplication, qtbot: QtBot) -> None:
    outer = QWidget()
    qtbot.addWidget(outer)
    inner = outer
    for _ in range(12):
        box = QWidget(inner)
        inner = box
    label = TextLabel(theme, "Deep", tone="muted")
    label.setParent(inner)
    outer.show()
    style_changes = _StyleChanges(label)
    theme.set_mode("dark")
    assert style_changes.count == 1
    assert label.palette().color(QPalette.ColorRole.WindowText) == QColor(DARK.muted)


class _StyleChanges(QObject):
    def __init__(self, watched: QWidget) -> None:
        super().__init__(watched)
        self.count = 0
        watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        self.count += event.type() == QEvent.Type.StyleChange
        return False
