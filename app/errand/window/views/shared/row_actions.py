"""Carries out the actions of transcript rows: links, copying, answers, branch and context commands."""

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit

from PySide6.QtCore import QUrl
from PySide6.QtGui import QClipboard, QDesktopServices
from PySide6.QtWidgets import QWidget

from errand.protocol.asks import AskAnswerParams
from errand.text.translation import tr
from errand.window.rows.base import ChangeActions
from errand.window.stores.catalog import ModelStore
from errand.window.stores.conversation.store import ConversationStore
from errand.window.widgets.dialogs import ConfirmDialog

_WEB = ("http", "https", "mailto")
# Looking for a file of a Windows share signs in to its host.
_HOST_PREFIXES = ("//", "\\\\", "/\\", "\\/")
_LINE = re.compile(r"(:\d+){1,2}$")
# What desktops open in a viewer or an editor: text, pages, pictures, sound, film, PDF and office documents of formats
# without macros. Scripts are absent, since some desktops run them, and so are links to programs.
_VIEWABLE = frozenset(
    (
        *(".txt", ".text", ".log", ".md", ".markdown", ".rst", ".adoc", ".org", ".csv", ".tsv", ".diff", ".patch"),
        *(".json", ".jsonl", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".css", ".html", ".htm", ".srt", ".bib", ".tex"),
        *(".c", ".h", ".cc", ".cpp", ".hpp", ".rs", ".go", ".java", ".kt", ".cs", ".proto"),
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".svg", ".heic", ".avif", ".ico"),
        *(".mp3", ".m4a", ".ogg", ".oga", ".opus", ".flac", ".wav", ".mp4", ".m4v", ".mov", ".webm", ".mkv"),
        *(".pdf", ".epub", ".rtf", ".docx", ".xlsx", ".pptx"),
    )
)
# Source that Linux opens in an editor while it is not executable; Windows and macOS may run it.
_SOURCE = frozenset(
    (".py", ".pyi", ".rb", ".ts", ".tsx", ".jsx", ".vue", ".php", ".lua", ".sql", ".swift", ".scala", ".dart", ".hs")
)
_NUMBER_SUFFIX = re.compile(r"\.\d+$")

TargetKind = Literal["web", "inside", "outside", "refused"]


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """`inside`: a file in the workspace. `outside`: another. `path` is what to open, `reason` explains `refused`."""

    kind: TargetKind
    path: Path | None = None
    reason: str = ""


def edit_target(path: Path) -> Path:
    """Return what the desktop opens for a person who wants to edit this file: the file, or its folder."""
    real = Path(os.path.realpath(path))
    is_source = sys.platform == "linux" and real.suffix.lower() in _SOURCE and real.is_file()
    return real if is_source and not os.access(real, os.X_OK) else _path_to_open(real)


def link_target(url: str, workspace: str) -> LinkTarget:
    """Return what a link opens: a file of a kind that is only looked at, the folder of any other, or nothing."""
    try:
        return _target(url, workspace)
    except ValueError:  # invalid brackets in a URL; a NUL in a file name
        return LinkTarget("refused", reason=tr("This isn't a link or a file: {url}").format(url=url[:200]))


def _target(url: str, workspace: str) -> LinkTarget:
    parts = urlsplit(url) if _is_url(url) else None
    scheme = parts.scheme.lower() if parts is not None else ""
    if scheme in _WEB and not _attaches_files(scheme, url):
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
    if name[:2] in _HOST_PREFIXES:
        return LinkTarget(
            "refused", reason=tr("Files of other computers aren't opened: {name}").format(name=name[:200])
        )
    path = Path(os.path.expanduser(name))
    if not path.is_absolute() and not workspace:
        return LinkTarget("refused", reason=tr("Can't tell which folder {name} is in.").format(name=name))
    root = Path(os.path.realpath(workspace)) if workspace else None
    for candidate in (path, Path(_LINE.sub("", str(path)))):
        real = Path(os.path.realpath(root / candidate if root is not None else candidate))
        if real.exists():
            is_inside = root is not None and real.is_relative_to(root)
            return LinkTarget("inside" if is_inside else "outside", _path_to_open(real))
    return LinkTarget("refused", reason=tr("{name} doesn't exist in this folder.").format(name=name))


def _attaches_files(scheme: str, url: str) -> bool:
    """Return whether a link to write a mail names files of this machine to attach, as some programs do."""
    return scheme == "mailto" and "attach" in unquote(urlsplit(url).query).lower()


def _path_to_open(path: Path) -> Path:
    """Return a file that desktops only look at, or the folder of another."""
    is_viewable = path.suffix.lower() in _VIEWABLE and ":" not in path.name  # a stream on Windows
    is_executable = os.name != "nt" and os.access(path, os.X_OK)  # Windows tells by the name alone
    if path.is_file() and is_viewable and not is_executable:
        return path
    return _plain_folder(path if path.is_dir() else path.parent)


def _plain_folder(folder: Path) -> Path:
    """Return the nearest folder that is opened as one: macOS starts `a.app`, Windows takes `a.{id}` for a program."""
    while folder.suffix and not _NUMBER_SUFFIX.search(folder.name) and folder != folder.parent:
        folder = folder.parent
    return folder


class ConversationRowActions:
    """Links from a model lead to the web or to an existing file or folder, and never start a program.

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
        self.recall = store.recall
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
        return (conversation.workspace if conversation is not None else "") or (task.request.workspace if task else "")

    def _open(self, path: Path | None) -> None:
        if path is not None and not QDesktopServices.openUrl(QUrl.fromLocalFile(str(path))):
            self._store.failed.emit(tr("No program was found to open {path}").format(path=path))

    def _ask_to_open(self, path: Path | None) -> None:
        question = tr("Open {path}?").format(path=path)
        details = tr("It's outside this conversation's folder.")
        dialog = ConfirmDialog(self._parent, "", question, details, tr("Open"), is_danger=False)
        dialog.accepted.connect(lambda: self._open(path))
        dialog.open()
