"""Attachments: dropped, pasted, refused with a reason, and seen by the model."""

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from PySide6.QtCore import QBuffer, QIODevice, QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QColor, QDragEnterEvent, QDropEvent, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel

from errand.client.conversation.rows import FileRow, ImageRow
from errand.window.stores.catalog import ModelStore
from errand.window.stores.window_state import WindowStateStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.attachments import AttachmentView
from errand.window.views.composer.drop_payload import DropHintView, PastedFiles
from errand.window.views.composer.input_panel import InputPanelView
from tests.support.model_server import Reply
from tests.support.window import ViewFixture, until, view_fixture

_ALT = Qt.KeyboardModifier.AltModifier


@pytest.fixture
async def fixture(qapp: QApplication, theme: Theme, tmp_path: Path) -> AsyncGenerator[ViewFixture]:
    async with view_fixture(qapp, theme, tmp_path, [Reply(text=f"Reply {number}.") for number in range(8)]) as fixture:
        yield fixture


def picture() -> QImage:
    image = QImage(40, 30, QImage.Format.Format_RGB32)
    image.fill(Qt.GlobalColor.red)
    return image


def files(*paths: Path) -> QMimeData:
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    return mime


def drop(fixture: ViewFixture, mime: QMimeData) -> None:
    """Drop as Qt does: first a drag event, then the drop."""
    action, button, keys = Qt.DropAction.CopyAction, Qt.MouseButton.LeftButton, Qt.KeyboardModifier.NoModifier
    QApplication.sendEvent(fixture.view, QDragEnterEvent(QPoint(50, 50), action, mime, button, keys))
    hint = fixture.view.findChild(DropHintView)
    assert hint is not None and hint.isVisible()
    QApplication.sendEvent(fixture.view, QDropEvent(QPointF(50, 50), action, mime, button, keys))
    assert not hint.isVisible()


def chips(fixture: ViewFixture) -> list[str]:
    return [Path(path).name for path in fixture.view.composer.attachments.paths]


async def test_a_dropped_image_and_a_dropped_file_are_sent_with_the_message(
    fixture: ViewFixture, tmp_path: Path
) -> None:
    shot, notes = tmp_path / "shot.png", tmp_path / "notes.txt"
    picture().save(str(shot))
    notes.write_text("a line")
    drop(fixture, files(shot, notes))
    assert chips(fixture) == ["shot.png", "notes.txt"]
    QTest.keyClicks(fixture.view.composer.field, "What is this?")
    QTest.keyClick(fixture.view.composer.field, Qt.Key.Key_Return, _ALT)
    assert chips(fixture) == []
    await fixture.until_waiting(1)
    await fixture.finish()
    sent = str(fixture.server.requests[-1].body["messages"])
    assert "What is this?" in sent and str(notes) in sent and "data:image/png;base64," in sent
    rows = [fixture.view.store.row(index) for index in range(fixture.view.store.count())]
    assert [row.image.name for row in rows if isinstance(row, ImageRow)] == ["shot.png"]
    assert [row.file.name for row in rows if isinstance(row, FileRow)] == ["notes.txt"]


async def test_a_pasted_image_is_a_private_file_and_deleted_with_its_chip(fixture: ViewFixture) -> None:
    mime = QMimeData()
    mime.setImageData(picture())
    fixture.view.composer.field.insertFromMimeData(mime)
    (path,) = map(Path, fixture.view.composer.attachments.paths)
    assert (path.stat().st_mode & 0o777, path.suffix) == (0o600, ".png")
    assert QImage(str(path)).size() == picture().size()
    chip = fixture.view.findChild(AttachmentView)
    assert chip is not None
    QTest.mouseClick(chip.button, Qt.MouseButton.LeftButton)
    assert (chips(fixture), path.exists(), fixture.view.composer.attachments.isVisible()) == ([], False, False)


async def test_text_is_pasted_as_text(fixture: ViewFixture) -> None:
    mime = QMimeData()
    mime.setText("some words")
    fixture.view.composer.field.insertFromMimeData(mime)
    assert (fixture.view.composer.text, chips(fixture)) == ("some words", [])


async def test_a_pasted_text_that_is_too_long_is_attached_as_a_file(fixture: ViewFixture) -> None:
    mime = QMimeData()
    mime.setText("x" * 60_000)
    fixture.view.composer.field.insertFromMimeData(mime)
    (path,) = map(Path, fixture.view.composer.attachments.paths)
    assert (fixture.view.composer.text, path.suffix, path.stat().st_size) == ("", ".txt", 60_000)
    (chip,) = fixture.view.composer.attachments.findChildren(AttachmentView)
    QTest.mouseClick(chip.button, Qt.MouseButton.LeftButton)
    assert (chips(fixture), path.exists()) == ([], False)


async def test_a_refused_message_keeps_its_text_and_files(fixture: ViewFixture, tmp_path: Path) -> None:
    why: list[str] = []
    fixture.view.store.failed.connect(why.append)
    notes = tmp_path / "notes.txt"
    notes.write_text("a line")
    fixture.view.composer.attachments.add([str(notes), str(tmp_path / "not there")])
    assert len(why) == 1 and "missing" in why[0]
    notes.unlink()
    QTest.keyClicks(fixture.view.composer.field, "Read it")
    QTest.keyClick(fixture.view.composer.field, Qt.Key.Key_Return)
    await until(lambda: len(why) == 2)
    assert "not there any more" in why[1]
    assert (fixture.view.composer.text, chips(fixture)) == ("Read it", ["notes.txt"])


async def test_a_pipe_is_refused_without_blocking(fixture: ViewFixture, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    refused: list[str] = []
    fixture.view.composer.attachments.refused.connect(refused.append)
    drop(fixture, files(tmp_path / "pipe.png"))
    assert refused == ["Couldn't attach pipe.png: it is a named pipe, not a file."]
    fixture.view.composer.attachments.restore([str(tmp_path / "pipe.png")])  # as in a draft whose file was deleted
    assert chips(fixture) == ["pipe.png"]


async def test_at_most_twenty_files_go_with_a_message(fixture: ViewFixture, tmp_path: Path) -> None:
    why: list[str] = []
    fixture.view.store.failed.connect(why.append)
    paths = [tmp_path / f"{number}.txt" for number in range(21)]
    for path in paths:
        path.write_text("x")
    drop(fixture, files(*paths))
    assert (len(chips(fixture)), len(why)) == (20, 1)


async def test_a_dropped_folder_is_the_workspace_of_a_new_conversation_and_text_in_a_started_one(
    fixture: ViewFixture, theme: Theme, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    drop(fixture, files(folder))
    assert fixture.view.composer.text == str(folder)
    stores = fixture.engine.stores
    new = stores.open(None)
    models = ModelStore(stores.session, WindowStateStore(tmp_path / "window.json"))
    input_panel = InputPanelView(new, stores, models, theme, PastedFiles(tmp_path))
    input_panel.attach_content(files(folder))
    assert (new.commands.options.workspace, input_panel.composer.text) == (str(folder), "")
    stores.close(new)
    input_panel.deleteLater()


async def test_a_message_over_the_limit_is_reported_and_kept(fixture: ViewFixture) -> None:
    why: list[str] = []
    fixture.view.store.failed.connect(why.append)
    fixture.view.composer.set_text("words " * 200_000)
    QTest.keyClick(fixture.view.composer.field, Qt.Key.Key_Return)
    await until(lambda: bool(why))
    assert len(why) == 1 and "too long" in why[0]
    assert len(fixture.view.composer.text) >= 1_199_999


def endless_svg() -> bytes:
    """A picture of 2 KB that takes Qt's reader longer than anybody waits: each part uses the one before ten times."""
    parts = ['<g id="p0"><rect width="1" height="1"/></g>']
    for number in range(1, 10):
        uses = f'<use xlink:href="#p{number - 1}"/>' * 10
        parts.append(f'<g id="p{number}">{uses}</g>')
    head = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="9" height="9">'
    return f'{head}<defs>{"".join(parts)}</defs><use xlink:href="#p9"/></svg>'.encode()


@pytest.mark.parametrize("name", ["art.svg", "art.png", "art"])
async def test_a_picture_of_another_format_is_attached_as_a_file_and_never_decoded(
    fixture: ViewFixture, tmp_path: Path, name: str
) -> None:
    (tmp_path / name).write_bytes(endless_svg())
    drop(fixture, files(tmp_path / name))
    assert chips(fixture) == [name]
    (chip,) = fixture.view.findChildren(AttachmentView)
    before = chip.findChildren(QLabel)[0].pixmap().cacheKey()
    picture().save(str(tmp_path / "red.png"))
    drop(fixture, files(tmp_path / "red.png"))
    (_, red) = fixture.view.findChildren(AttachmentView)
    await until(lambda: label_colour(red) == QColor("red"))
    assert chip.findChildren(QLabel)[0].pixmap().cacheKey() == before


@pytest.mark.parametrize("kind", ["image/svg+xml", "image/png", "image/bmp"])
async def test_a_pasted_picture_of_another_format_is_not_decoded(fixture: ViewFixture, kind: str) -> None:
    mime = QMimeData()
    mime.setData(kind, endless_svg())
    fixture.view.composer.field.insertFromMimeData(mime)
    assert chips(fixture) == []


@pytest.mark.parametrize(("form", "ending"), [("PNG", ".png"), ("JPG", ".jpeg"), ("WEBP", ".webp")])
async def test_a_picture_pasted_from_another_program_is_attached_as_it_is(
    fixture: ViewFixture, form: str, ending: str
) -> None:
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    picture().save(buffer, form)  # pyright: ignore[reportArgumentType, reportCallIssue] -- PySide6's stubs want bytes for the format and take no str
    data = bytes(buffer.data().data())
    mime = QMimeData()
    mime.setData("image/jpeg" if form == "JPG" else f"image/{form.lower()}", data)
    fixture.view.composer.field.insertFromMimeData(mime)
    (path,) = map(Path, fixture.view.composer.attachments.paths)
    assert (path.suffix, path.read_bytes()) == (ending, data)
    (chip,) = fixture.view.findChildren(AttachmentView)
    await until(lambda: label_colour(chip) == QColor("red"))


def label_colour(chip: AttachmentView) -> QColor:
    """The colour in the middle of the picture of a chip."""
    image = chip.findChildren(QLabel)[0].pixmap().toImage()
    colour = image.pixelColor(image.rect().center())
    return QColor("red") if (colour.red() > 240 and colour.green() < 15 and colour.blue() < 15) else colour
