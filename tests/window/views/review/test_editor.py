"""Opening a file in the person's editor."""

from pathlib import Path

import pytest
from PySide6.QtCore import QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication

from errand.window.views.review.editor import editor_command, open_in_editor
from tests.support.window import until


class Desktop(QObject):
    """Opens files instead of the desktop."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    @Slot(QUrl)
    def open(self, url: QUrl) -> None:
        self.opened.append(url.toLocalFile())


@pytest.mark.parametrize(
    ("environment", "command"),
    [
        ({"VISUAL": "code --wait"}, ("code", "--goto", "/w/a b.py:7")),
        ({"VISUAL": "vim", "EDITOR": "zed"}, ("zed", "/w/a b.py:7")),
        ({"EDITOR": "'/opt/my editors/subl' -w"}, ("/opt/my editors/subl", "/w/a b.py:7")),
        ({"EDITOR": "kate"}, ("kate", "--line", "7", "/w/a b.py")),
        ({"EDITOR": "gvim"}, ("gvim", "+7", "/w/a b.py")),
        ({"EDITOR": "emacs -nw"}, None),
        ({"VISUAL": "nano"}, None),
        ({"VISUAL": "code 'unfinished"}, None),
        ({}, None),
    ],
)
def test_the_graphical_editor_of_the_environment_is_told_the_line(
    environment: dict[str, str], command: tuple[str, ...] | None
) -> None:
    assert editor_command(environment, "/w/a b.py", 7) == command


async def test_the_editor_is_started(qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, arguments_file = tmp_path / "code", tmp_path / "told"
    program.write_text(f'#!/bin/sh\necho "$@" > {arguments_file}.tmp && mv {arguments_file}.tmp {arguments_file}\n')
    program.chmod(0o755)
    (tmp_path / "a.py").write_text("a\n")
    monkeypatch.setenv("VISUAL", str(program))
    assert open_in_editor(str(tmp_path / "a.py"), 3, str(tmp_path)) == ""
    await until(arguments_file.exists)
    assert arguments_file.read_text() == f"--goto {tmp_path}/a.py:3\n"


def test_without_one_the_desktop_opens_the_file_but_no_program(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", "vi")
    desktop = Desktop()
    QDesktopServices.setUrlHandler("file", desktop, "open")  # pyright: ignore[reportArgumentType] -- PySide6 takes a str, its stubs say bytes
    try:
        for name in ("a.py", "start.sh"):
            (tmp_path / name).write_text("a\n")
            assert open_in_editor(str(tmp_path / name), 1, str(tmp_path)) == ""
        assert desktop.opened == [str(tmp_path / "a.py"), str(tmp_path)]
    finally:
        QDesktopServices.unsetUrlHandler("file")


def test_what_is_not_possible_is_said_in_words(
    qapp: QApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert open_in_editor(str(tmp_path / "gone"), 1, str(tmp_path)) == "gone does not exist any more."
    (tmp_path / "a").write_text("a\n")
    monkeypatch.setenv("VISUAL", "/nowhere/code")
    problem = open_in_editor(str(tmp_path / "a"), 1, str(tmp_path))
    assert problem == "/nowhere/code could not be started. VISUAL or EDITOR names it as your editor."
