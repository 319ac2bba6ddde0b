"""What was pasted and goes as a file: pictures and long texts, of their owner alone; messages carry them by paths."""

import os
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice
from PySide6.QtGui import QImage


class PastedFiles:
    """In `folder`, which is made when it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, image: QImage) -> str:
        """The path of its PNG. OSError when it cannot be written."""
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        image.save(buffer, "PNG")  # pyright: ignore[reportArgumentType, reportCallIssue] -- PySide6's stubs want bytes for the format and take no str
        return self._write(bytes(buffer.data().data()), "png")

    def keep_text(self, text: str) -> str:
        """The path of a text file. OSError when it cannot be written."""
        return self._write(text.encode("utf-8", "replace"), "txt")

    def drop(self, path: str) -> None:
        """Delete one that is not sent after all; a file that was not pasted is left alone."""
        if Path(path).parent == self._folder:
            Path(path).unlink(missing_ok=True)

    def _write(self, data: bytes, ending: str) -> str:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = datetime.now().astimezone().strftime("pasted %Y-%m-%d %H.%M.%S.%f")
        path = self._folder / f"{name}.{ending}"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
        return str(path)
