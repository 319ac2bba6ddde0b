"""Pictures in the transcript: decoded when visible, enlarged, zoomed, copied and saved."""

import base64
import zlib
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, QPointF, QSize, Qt
from PySide6.QtGui import QColor, QImage, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import ImageRow
from errand.protocol.blocks import ImageBlock
from errand.window.theme.theme import Theme
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.picture_viewer import PictureViewer, suggested_name
from errand.window.widgets.pictures import PictureButton, picture_size, read_picture
from tests.support.row_actions import KeptActions
from tests.support.rows import node
from tests.window.rows.conftest import MakeRowView, part


def stored(folder: Path, width: int, height: int, name: str = "Figure 1") -> ImageBlock:
    path, picture = folder / "figure.png", QImage(width, height, QImage.Format.Format_RGB32)
    picture.fill(QColor("teal"))
    assert picture.save(str(path))
    return ImageBlock(media_type="image/png", path=str(path), name=name)


def row(image: ImageBlock) -> ImageRow:
    return ImageRow("image", node("image", role="tool_result"), image)


@pytest.fixture
def over(qtbot: QtBot) -> QWidget:
    window = QWidget()
    qtbot.addWidget(window)
    window.show()
    return window


def viewer(image: ImageBlock, theme: Theme, over: QWidget, qtbot: QtBot, actions: KeptActions) -> PictureViewer:
    dialog = PictureViewer(image, theme, actions.copy_picture, over)
    dialog.open()
    qtbot.waitUntil(lambda: dialog.message.text() != "Opening…")
    return dialog


def test_a_picture_takes_its_final_place_before_it_is_decoded(show: MakeRowView, tmp_path: Path, qtbot: QtBot) -> None:
    row_view = show(row(stored(tmp_path, 1200, 600)))
    button = part(row_view, PictureButton, "Enlarge picture Figure 1")
    height = row_view.height_for(700)
    assert height == 240
    qtbot.waitUntil(lambda: not button.picture.isNull())
    assert row_view.height_for(700) == height
    assert button.picture.size() == QSize(480, 240)


def test_a_claimed_size_of_billions_of_pixels_is_never_decoded(
    show: MakeRowView, tmp_path: Path, qtbot: QtBot, theme: Theme, over: QWidget, actions: KeptActions
) -> None:
    image = stored(tmp_path, 4, 4, "")
    data = bytearray(Path(image.path).read_bytes())
    data[16:24] = (60_000).to_bytes(4, "big") * 2
    data[29:33] = zlib.crc32(data[12:29]).to_bytes(4, "big")
    Path(image.path).write_bytes(data)
    row_view = show(row(image))
    assert row_view.height_for(700) <= 240
    qtbot.waitUntil(lambda: not row_view.findChildren(PictureButton)[0].isVisible())
    dialog = viewer(image, theme, over, qtbot, actions)
    assert dialog.message.text() == "Can't show Picture: it's missing, damaged or too large."


def test_the_size_of_a_stored_picture_and_of_one_in_the_node_is_read_from_its_beginning(tmp_path: Path) -> None:
    image = stored(tmp_path, 640, 480)
    data = base64.b64encode(Path(image.path).read_bytes()).decode()
    assert picture_size(image) == picture_size(ImageBlock(media_type="image/png", data=data)) == QSize(640, 480)
    assert not picture_size(ImageBlock(media_type="image/png", path=str(tmp_path / "gone.png"))).isValid()


def test_the_viewer_fits_and_zooms_by_keys_and_wheel(
    theme: Theme, tmp_path: Path, over: QWidget, qtbot: QtBot, actions: KeptActions
) -> None:
    dialog = viewer(stored(tmp_path, 4000, 2000), theme, over, qtbot, actions)
    fitted = dialog.area.zoom
    assert fitted < 0.5
    QTest.keyClick(dialog, Qt.Key.Key_1)
    assert dialog.zoom_button.text() == "100 %"
    QTest.keyClick(dialog, Qt.Key.Key_Plus)
    assert dialog.area.zoom == 1.25
    wheel = QWheelEvent(
        QPointF(20, 20),
        QPointF(20, 20),
        QPoint(),
        QPoint(0, -240),
        Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase,
        False,
    )
    QApplication.sendEvent(dialog.area.viewport(), wheel)
    assert dialog.area.zoom == pytest.approx(0.8)
    QTest.keyClick(dialog, Qt.Key.Key_0)
    assert dialog.area.zoom == pytest.approx(fitted)
    dialog.resize(600, 400)
    assert dialog.area.zoom < fitted
    for _ in range(100):
        QTest.keyClick(dialog, Qt.Key.Key_Plus)
    assert dialog.area.zoom == 16


def test_the_viewer_copies_and_saves_the_picture(
    theme: Theme, tmp_path: Path, over: QWidget, qtbot: QtBot, actions: KeptActions
) -> None:
    image = stored(tmp_path, 40, 30)
    dialog = viewer(image, theme, over, qtbot, actions)
    assert dialog.message.text() == f"Figure 1 · 40 × 30 · {Path(image.path).stat().st_size} bytes"
    (copy,) = (button for button in dialog.findChildren(IconButton) if button.accessibleName() == "Copy picture")
    copy.click()
    assert actions.copied_pictures == [QSize(40, 30)]
    target = tmp_path / "copy.png"
    dialog.save(str(target))
    assert target.read_bytes() == Path(image.path).read_bytes()
    assert dialog.message.text() == f"Saved as {target}."
    dialog.save(str(tmp_path / "missing" / "copy.png"))
    assert dialog.message.text() == "Couldn't save: No such file or directory."


def test_every_control_of_the_viewer_has_a_name_and_escape_closes(
    theme: Theme, tmp_path: Path, over: QWidget, qtbot: QtBot, actions: KeptActions
) -> None:
    dialog = viewer(stored(tmp_path, 40, 30), theme, over, qtbot, actions)
    assert all(button.accessibleName() for button in dialog.findChildren(IconButton))
    assert dialog.area.accessibleName() == "Picture Figure 1"
    QTest.keyClick(dialog.area, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("Figure 1", "Figure-1.png"),
        ("../../etc/passwd", "etc-passwd.png"),
        ("shot.png", "shot.png"),
        ("", "picture.png"),
        ("...", "picture.png"),
    ],
)
def test_the_suggested_file_name_is_safe(name: str, suggested: str) -> None:
    assert suggested_name(ImageBlock(media_type="image/png", data="", name=name)) == suggested


@pytest.mark.parametrize("form", ["PNG", "JPG", "WEBP"])
def test_the_size_of_each_format_is_read_from_its_beginning(tmp_path: Path, form: str) -> None:
    path, picture = tmp_path / "figure", QImage(301, 203, QImage.Format.Format_ARGB32)
    picture.fill(QColor("teal"))
    assert picture.save(str(path), form)  # pyright: ignore[reportArgumentType, reportCallIssue] -- PySide6's stubs want bytes for the format and take no str
    image = ImageBlock(media_type="image/anything", path=str(path))
    assert picture_size(image) == QSize(301, 203)
    assert read_picture(image, QSize(1000, 1000)).size() == QSize(301, 203)


def test_a_gif_is_read(tmp_path: Path) -> None:
    path = tmp_path / "dot.gif"
    path.write_bytes(base64.b64decode("R0lGODlhAQABAIAAAAAAAP///ywAAAAAAQABAAACAUwAOw=="))
    image = ImageBlock(media_type="image/gif", path=str(path))
    assert picture_size(image) == read_picture(image, QSize(9, 9)).size() == QSize(1, 1)


@pytest.mark.parametrize("form", ["BMP", "PPM", "XBM", "XPM", "ICO", "SVG"])
def test_no_other_format_is_read_whatever_it_calls_itself(tmp_path: Path, form: str) -> None:
    path, picture = tmp_path / "figure.png", QImage(4, 4, QImage.Format.Format_RGB32)
    if form == "SVG":
        path.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="4" height="4"/>')
    else:
        picture.fill(QColor("teal"))
        assert picture.save(str(path), form)  # pyright: ignore[reportArgumentType, reportCallIssue] -- PySide6's stubs want bytes for the format and take no str
    image = ImageBlock(media_type="image/png", path=str(path))
    assert not picture_size(image).isValid()
    assert read_picture(image, QSize(9, 9)).isNull()


@pytest.mark.parametrize("head", [b"\x89PNG\r\n\x1a\n", b"RIFF\0\0\0\0WEBP", b"RIFF\0\0\0\0WEBPVP8X", b"GIF89a"])
def test_a_picture_that_is_cut_in_its_header_has_no_size(tmp_path: Path, head: bytes) -> None:
    path = tmp_path / "figure.png"
    path.write_bytes(head)
    image = ImageBlock(media_type="image/png", path=str(path))
    assert picture_size(image).isEmpty()
    assert read_picture(image, QSize(9, 9)).isNull()
