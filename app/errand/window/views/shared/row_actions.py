"""Carries out the actions of transcript rows: links, copying, answers, branch and context commands."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QClipboard, QDesktopServices
from PySide6.QtWidgets import QMessageBox, QWidget

from errand.protocol.asks import AskAnswerParams
from errand.translation import tr
from errand.window.rows.base import ChangeActions
from errand.window.stores.catalog import ModelStore
from errand.window.stores.conversation.store import ConversationStore
from errand.window.widgets.dialogs import QuestionDialog

_WEB = ("http", "https", "mailto")
_LINE = re.compile(r"(:\d+){1,2}$")
# Opening one of these starts it on at least one desktop.
_PROGRAMS = frozenset(
    (
        *(".app", ".appimage", ".bat", ".cmd", ".com", ".command", ".desktop", ".exe", ".jar", ".jnlp", ".js", ".jse"),
        *(".lnk", ".msi", ".msp", ".pif", ".ps1", ".reg", ".scf", ".scr", ".sh", ".url", ".vb", ".vbe", ".vbs"),
        *(".workflow", ".wsf", ".wsh"),
    )
)

TargetKind = Literal["web", "inside", "outside", "refused"]


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """`inside`: a file in the workspace. `outside`: another. `path` is what to open, `reason` explains `refused`."""

    kind: TargetKind
    path: Path | None = None
    reason: str = ""


def link_target(url: str, workspace: str) -> LinkTarget:
    """For a program, or a file that may be one, the target is its folder: a click never starts it."""
    try:
        return _target(url, workspace)
    except ValueError:  # invalid brackets in a URL; a NUL in a file name
        return LinkTarget("refused", reason=tr("This isn't a link or a file: {url}").format(url=url[:200]))


def _target(url: str, workspace: str) -> LinkTarget:
    parts = urlsplit(url) if _is_url(url) else None
    scheme = parts.scheme.lower() if parts is not None else ""
    if scheme in _WEB:
        return LinkTarget("web")
    if parts is not None and (scheme != "file" or parts.netloc not in ("", "localhost")):
        return LinkTarget(
            "refused",
            reason=tr("Links that start with {scheme}: aren't opened. The link was: {url}").format(
                scheme=scheme, url=url[:200]
            ),
        )
    if not url or url.startswith("#"):
        return LinkTarget("refused", reason=tr("This link doesn't lead anywhere."))
    return _file(unquote(parts.path) if parts is not None else unquote(url.partition("#")[0]), workspace)


def _is_url(url: str) -> bool:
    """A single letter and a colon are a Windows drive, and `basket.py:24` is a position in a file."""
    return re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+:(?!\d+(:\d+)?$)", url) is not None


def _file(name: str, workspace: str) -> LinkTarget:
    path = Path(os.path.expanduser(name))
    if not path.is_absolute() and not workspace:
        return LinkTarget("refused", reason=tr("Can't tell which folder {name} is in.").format(name=name))
    root = Path(os.path.realpath(workspace)) if workspace else None
    for candidate in (path, Path(_LINE.sub("", str(path)))):
        real = Path(os.path.realpath(root / candidate if root is not None else candidate))
        if real.exists():
            is_inside = root is not None and real.is_relative_to(root)
            return LinkTarget("inside" if is_inside else "outside", _is_safe_to_open(real))
    return LinkTarget("refused", reason=tr("{name} doesn't exist in this folder.").format(name=name))


def _is_safe_to_open(path: Path) -> Path:
    """The folder of a file that opening would execute. A macOS bundle is a folder that is executed, too."""
    if path.suffix.lower() in _PROGRAMS:
        return path.parent
    return path.parent if path.is_file() and os.access(path, os.X_OK) else path


class ConversationRowActions:
    """Links from a model lead to the web or to an existing file, and never start a program.

    A file outside the workspace is opened only after a confirmation; `parent` is the parent widget of that dialog, and
    has the composer as its focus proxy.
    """

    def __init__(
        self,
        store: ConversationStore,
        models: ModelStore,
        clipboard: QClipboard,
        parent: QWidget,
        changes: ChangeActions,
    ) -> None:
        self.changes = changes
        self.branches = store.branches
        self.context = store.context
        self.copy = clipboard.setText
        self.copy_picture = clipboard.setImage
        self.load_older = store.load_older
        self.open_agent = store.agents.show_agent
        self.open_source = store.source_requested.emit
        self.forget = store.forget_requested.emit
        self.stop_task = store.commands.stop_task
        self.set_up_models = store.providers_requested.emit
        self.pictures = store.pictures
        self._models = models
        self._store = store
        self._parent = parent

    def models(self) -> tuple[str, ...]:
        return self._models.ready

    def answer(self, params: AskAnswerParams, /) -> None:
        """Send an answer; the next text is typed into the composer."""
        self._store.asks.answer(params)
        self._parent.setFocus()

    def open_link(self, url: str) -> None:
        target = link_target(url, self._workspace)
        match target.kind:
            case "web":
                if not QDesktopServices.openUrl(QUrl(url)):
                    self._store.failed.emit(tr("No browser was found to open {address}").format(address=url))
            case "inside":
                self._open(target.path)
            case "outside":
                self._ask_to_open(target.path)
            case "refused":
                self._store.failed.emit(target.reason)

    @property
    def _workspace(self) -> str:
        task, conversation = self._store.task, self._store.conversation
        return (conversation.workspace if conversation is not None else "") or (task.workspace if task else "")

    def _open(self, path: Path | None) -> None:
        if path is not None and not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
            self._store.failed.emit(tr("No program was found to open {path}").format(path=path))

    def _ask_to_open(self, path: Path | None) -> None:
        question = QuestionDialog(self._parent)
        question.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        question.setTextFormat(Qt.TextFormat.PlainText)
        question.setText(tr("Open {path}?").format(path=path))
        question.setInformativeText(tr("It's outside this conversation's folder."))
        opening = question.addButton(tr("Open"), QMessageBox.ButtonRole.AcceptRole)
        question.set_default(question.addButton(QMessageBox.StandardButton.Cancel))
        opening.clicked.connect(lambda: self._open(path))
        question.open()
