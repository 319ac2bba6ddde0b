"""Pictures that were pasted: written as files of their owner alone, since messages carry attachments by their paths."""

import os
from datetime import datetime
from pathlib import Path

from PySide6.QtCore import QBuffer, QIODevice
from PySide6.QtGui import QImage


class PastedPictures:
    """In `folder`, which is made when it is needed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, image: QImage) -> str:
        """The path of its PNG. OSError when it cannot be written."""
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        image.save(buffer, "PNG")  # pyright: ignore[reportArgumentType, reportCallIssue] -- PySide6's stubs want bytes for the format and take no str
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        name = datetime.now().astimezone().strftime("pasted %Y-%m-%d %H.%M.%S.%f")
        path = self._folder / f"{name}.png"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(buffer.data().data())
        return str(path)

    def drop(self, path: str) -> None:
        """Delete one that is not sent after all; a file that was not pasted is left alone."""
        if Path(path).parent == self._folder:
            Path(path).unlink(missing_ok=True)
