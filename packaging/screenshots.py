"""Draws pictures of the window in its main states: the real window offscreen, on a real engine, playing the tour.

`python packaging/screenshots.py [LANGUAGE]`: English without one. Those shown in documents go to docs/images, all
others and the doubled ones to build/images, for inspection; those of another language have it in their names.
"""

# ruff: noqa: E402 - the platform and the language are chosen before anything is imported that reads them
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"
sys.path.insert(0, str(Path(__file__).parents[1]))

from errand.text.translation import chosen, tr, use_language

use_language(sys.argv[1] if len(sys.argv) > 1 else "en")  # before anything is imported that has texts

from PySide6.QtCore import QSize, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget

from errand.client.conversation.rows import TaskEndRow
from errand.protocol.asks import Ask, AskAnswerParams, AskKind
from errand.window.desktop.quick_task import QuickTaskDialog
from errand.window.desktop.tray import TrayMenu
from errand.window.main import translate_qt
from errand.window.rows.disclosure import DisclosureButton
from errand.window.stores.conversation.agents import NewAgent
from errand.window.stores.window_state import ThemeMode
from errand.window.views.agents.dialogs import AddAgentDialog, TurnOrderDialog
from errand.window.views.branches.comparison import ComparisonDialog
from errand.window.views.composer.task_options_dialog import TaskOptionsDialog
from errand.window.views.conversation.ask_models_dialog import AskModelsDialog
from errand.window.views.settings.dialog import PageName, SettingsDialog
from errand.window.views.shared.picker import PickerDialog
from errand.window.views.shell.shortcuts_dialog import ShortcutsDialog
from errand.window.views.usage.dialog import UsageDialog
from tests.support.command_line import Errand
from tests.support.open_window import OpenWindow, open_window
from tests.support.window import press

_ROOT = Path(__file__).parents[1]
_SHOWN = frozenset({"first-run", "approval", "question", "finished", "review", "branches", "agents", "compare"})
"""What README and guide show."""
_SHOWN_IN_OTHERS = frozenset({"approval"})
"""What the guide shows in other languages."""

_PAGES: tuple[PageName, ...] = (
    "general",
    "providers",
    "local_models",
    "personalities",
    "permissions",
    "tools",
    "skills",
    "appearance",
    "shortcuts",
    "data",
    "about",
)
_THEMES: tuple[ThemeMode, ...] = ("light", "dark")
_SIZES = (QSize(1280, 720), QSize(1440, 900), QSize(1920, 1200))
_USUAL, _NARROW, _LARGE = QSize(1180, 780), QSize(700, 600), 26


@dataclass(frozen=True, slots=True)
class _Album:
    """Takes each picture in both themes: of the window, or of a dialog alone."""

    person: OpenWindow

    async def take(self, name: str, part: QWidget | None = None) -> None:
        for theme in _THEMES:
            self.person.theme.set_mode(theme)
            await self.rest()
            picture = (part or self.person.window).grab().toImage()
            picture.save(str(_file(f"window-{name}-{theme}", name)), quality=0)  # 0 makes the smallest file
        self.person.theme.set_mode(_THEMES[0])

    async def rest(self) -> None:
        """Let what was set going be laid out."""
        for _ in range(12):
            self.person.application.processEvents()
            await asyncio.sleep(0.005)


def _file(name: str, key: str) -> Path:
    is_double, is_english = os.environ.get("QT_SCALE_FACTOR") == "2", chosen() == "en"
    is_shown = key in (_SHOWN if is_english else _SHOWN_IN_OTHERS) and not is_double
    folder = _ROOT / "docs" / "images" if is_shown else _ROOT / "build" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    language = "" if is_english else f"-{chosen()}"
    return folder / f"{name}{language}{'@2x' if is_double else ''}.png"


async def draw(application: QApplication) -> None:
    """All pictures; the engine and its data are gone afterwards."""
    translate_qt(application)
    with tempfile.TemporaryDirectory(prefix="errand-") as home:
        errand = Errand(Path(home), _ROOT)
        os.environ.update(errand.environment | {"QT_QPA_PLATFORM": "offscreen"})
        async with _engine_of(errand), open_window(application, errand.home) as person:
            await _play(_Album(person))


@contextlib.asynccontextmanager
async def _engine_of(errand: Errand) -> AsyncGenerator[None]:
    """The window starts it; it would outlive the window."""
    try:
        yield
    finally:
        await errand.close()


async def _play(album: _Album) -> None:
    person = album.person
    person.theme.set_motion(False)
    person.window.resize(_USUAL)
    await person.until(lambda: person.stores.session.state == "ready")
    await album.rest()
    await album.take("first-run")
    await person.press(tr("Play the tour"))
    await person.until(lambda: len(person.stores.asks.waiting()) == 2 and len(person.stores.tasks.running()) == 2)
    await _take_waiting(album)
    await _take_finished(album)
    await _take_branches(album)
    await _take_company(album)
    await _take_new(album)
    await _take_sidebar(album)
    await _take_dialogs(album)
    await _take_sizes(album)


async def _take_waiting(album: _Album) -> None:
    person, window = album.person, album.person.window
    await _open(person, _waiting(person, "approval").conversation_id)
    await album.take("approval")
    window.sidebar.inbox.rows[0].setFocus(Qt.FocusReason.TabFocusReason)
    await album.take("inbox")
    window.sidebar.inbox.rows[0].collapse()
    for count, text in enumerate(("Then count what is left", "Say how much room it took"), start=1):
        person.front.store.commands.follow_up(text, ())
        await person.until(lambda count=count: len(person.front.input_panel.queue.rows) == count)
    person.front.input_panel.queue.rows[1].setFocus(Qt.FocusReason.TabFocusReason)
    await album.take("queue")
    await _open(person, _waiting(person, "question").conversation_id)
    await album.take("question")


async def _take_finished(album: _Album) -> None:
    person, window = album.person, album.person.window
    await _open(person, window.tabs.open_ids[0])
    await person.until(lambda: any(isinstance(row, TaskEndRow) for row in person.rows))
    await album.rest()
    _edited(person)[0].click()
    await album.take("finished")
    await _take_review(album)
    person.front.search.open()
    QTest.keyClicks(window.focusWidget(), "total")
    await album.take("find")
    press(person.front, tr("Close search"))


async def _take_review(album: _Album) -> None:
    """Beside the conversation in the sizes of usual screens, and alone with both sides."""
    person, window = album.person, album.person.window
    window.resize(_SIZES[0])
    window.commands.trigger("review")
    panel = person.front.review.panel
    await person.until(lambda: panel.file.diff.hunk is not None)
    for size in _SIZES:
        window.resize(size)
        await album.take("review" if size == _SIZES[1] else f"review-{size.width()}")
    window.resize(_SIZES[0])
    panel.set_side_by_side(True)
    panel.set_maximized(True)
    await album.take("review-side-by-side")
    panel.set_maximized(False)
    panel.set_side_by_side(False)
    person.front.review.close()
    window.resize(_USUAL)


async def _take_branches(album: _Album) -> None:
    """The note in one tone, and beside it in another one."""
    person = album.person
    await _open(person, _waiting(person, "question").conversation_id)
    await _answer(person, "formal")
    end = next(row for row in person.rows if isinstance(row, TaskEndRow))
    assert end.retry_id is not None
    person.front.store.branches.retry(end.retry_id)
    await person.until(lambda: any(ask.kind == "question" for ask in person.stores.asks.waiting()))
    await _answer(person, "friendly")
    album.person.window.commands.trigger("tree")
    await album.rest()
    person.front.transcript.to_start()
    await album.take("branches")
    album.person.window.commands.trigger("tree")


async def _take_company(album: _Album) -> None:
    """Two more agents join, and the two tones stand side by side."""
    person = album.person
    agents = person.front.store.agents
    for new in (NewAgent("coder", color="teal"), NewAgent("researcher", "Reader", color="violet")):
        agent_count = len(agents.all)
        agents.add(person.front.store.conversation_id or "", new)
        await person.until(lambda agent_count=agent_count: len(agents.all) > agent_count)
    await album.take("agents")
    for name, open_, kind in (
        ("add-agent", partial(person.window.commands.trigger, "add_agent"), AddAgentDialog),
        ("turns", person.front.input_panel.agents.set_turns, TurnOrderDialog),
        ("ask-models", partial(person.window.commands.trigger, "ask_models"), AskModelsDialog),
    ):
        open_()
        await album.take(name, _top(kind))
        _top(kind).close()
    person.front.tree.open()
    panel = person.front.tree.panel
    await person.until(lambda: any(line.count for line in panel.lines))
    other = next(line for line in panel.lines if line.count and not line.is_in_front)
    entries = panel.menu_of(other).actions()
    next(entry for entry in entries if entry.text() == tr("Compare with current branch")).trigger()
    dialog = _top(ComparisonDialog)
    assert isinstance(dialog, ComparisonDialog)
    await person.until(lambda: all(view.side.count() for view in dialog.views))
    await album.take("compare", dialog)
    dialog.close()
    person.front.tree.close()


async def _answer(person: OpenWindow, text: str) -> None:
    person.stores.asks.answer(AskAnswerParams(ask_id=_waiting(person, "question").id, text=text))
    await person.until(lambda: (task := person.front.store.task) is not None and task.outcome.ended_at is not None)
    await person.until(lambda: any(isinstance(row, TaskEndRow) for row in person.rows))


async def _take_new(album: _Album) -> None:
    person, window = album.person, album.person.window
    window.commands.trigger("new_task")
    note, picture = _ROOT / "README.md", _ROOT / "resources" / "app_icon" / "errand-256.png"
    person.front.composer.attachments.add([str(note), str(picture)])
    person.front.composer.set_text("What is this about?")
    await album.take("attachments")
    person.front.input_panel.task_options.more_button.click()
    await album.rest()
    await album.take("choices", _top(TaskOptionsDialog))
    _top(TaskOptionsDialog).close()


async def _take_sidebar(album: _Album) -> None:
    person, window = album.person, album.person.window
    QTest.keyClicks(window.sidebar.search, "build")
    await person.until(window.sidebar.results.isVisible)
    await album.take("search")
    window.sidebar.search.clear()
    person.stores.conversations.archive(window.tabs.open_ids[1])
    await album.rest()
    await album.take("archived")
    press(window.sidebar, tr("Archived"))
    await album.rest()
    await album.take("archive")


async def _take_dialogs(album: _Album) -> None:
    person, window = album.person, album.person.window
    for page in _PAGES:
        window.dialogs.settings.open_page(page)
        await album.rest()
        await album.take(f"settings-{page}", _top(SettingsDialog))
    _top(SettingsDialog).close()
    window.commands.trigger("usage")
    await album.rest()
    await album.take("usage", _top(UsageDialog))
    _top(UsageDialog).close()
    window.commands.trigger("shortcuts")
    await album.take("shortcut-sheet", _top(ShortcutsDialog))
    _top(ShortcutsDialog).close()
    window.commands.trigger("palette")
    await album.take("palette", _top(PickerDialog))
    _top(PickerDialog).close()
    menu = TrayMenu(person.stores)
    menu.popup(window.pos())
    await album.take("tray", menu)
    menu.close()
    quick = QuickTaskDialog(person.theme)
    quick.show_with("Count the lines of all Python files", "in shop · the default model")
    quick.open_on(window.screen())
    await album.take("quick", quick)
    quick.close()


async def _take_sizes(album: _Album) -> None:
    person, window = album.person, album.person.window
    await _open(person, _waiting(person, "approval").conversation_id)
    window.commands.trigger("own_window")
    await album.take("own-window", window.conversations.windows[0])
    window.commands.trigger("own_window")
    window.resize(_NARROW)
    await album.take("narrow")
    window.resize(_USUAL)
    person.theme.set_transcript_font("", _LARGE)
    await album.take("large-text")


async def _open(person: OpenWindow, conversation_id: str) -> None:
    person.window.tabs.open(conversation_id)
    await person.until(lambda: person.front.store.is_loaded and person.front.store.count() > 0)


def _waiting(person: OpenWindow, kind: AskKind) -> Ask:
    return next(ask for ask in person.stores.asks.waiting() if ask.kind == kind)


def _edited(person: OpenWindow) -> list[DisclosureButton]:
    """The lines of calls that changed a file."""
    lines = person.front.findChildren(DisclosureButton)
    return [line for line in lines if line.accessibleName().startswith((tr("changed"), tr("edited"), tr("wrote")))]


def _top(kind: type[QWidget]) -> QWidget:
    return next(top for top in QApplication.topLevelWidgets() if isinstance(top, kind) and top.isVisible())


if __name__ == "__main__":
    if "QT_SCALE_FACTOR" in os.environ:
        asyncio.run(draw(QApplication(["errand"])))
    else:
        for scale in ("1", "2"):
            environment = os.environ | {"QT_SCALE_FACTOR": scale}
            subprocess.run([sys.executable, __file__, *sys.argv[1:]], check=True, env=environment)
