"""A kind of row (`RowKind`), its view (`RowView`), the actions available to rows, and the context menu."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Protocol, TypeVar

from PySide6.QtCore import QPoint, Qt, Signal, SignalInstance
from PySide6.QtGui import QContextMenuEvent, QImage
from PySide6.QtWidgets import QLayout, QMenu, QSizePolicy, QWidget

from errand.client.conversation.rows import Row
from errand.protocol.asks import AskAnswerParams
from errand.protocol.conversations import Node
from errand.protocol.memory import ShareChoice
from errand.text.translation import tr
from errand.window.rows.markup.web_pictures import PictureActions, address_of_link
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.theme.tokens import DesignTokens

R = TypeVar("R", bound=Row)

MenuHook = Callable[[QMenu], None]

# A character is about half as wide as its font size, and a line one and a half times as high.
_CHARACTER = 0.52
_LINE = 1.5


class BranchActions(Protocol):
    """Intents; results arrive as changed rows."""

    @property
    def lock_changed(self) -> SignalInstance:
        """Emitted when the result of `locked` changes."""
        ...

    @property
    def locked(self) -> str:
        """Why branching is disabled, as a sentence; empty if it is enabled."""
        ...

    @property
    def drafts(self) -> dict[str, str]:
        """Unsent texts of rows by the id of their ask or message."""
        ...

    def switch(self, node_id: str) -> None: ...

    def compare(self, node_ids: tuple[str, ...]) -> None:
        """Show the branches through these siblings side by side."""
        ...

    def fork(self, node_id: str) -> None: ...

    def retry(self, node_id: str, model: str | None = None) -> None: ...

    def edit(self, node_id: str) -> None: ...

    def end_edit(self) -> None: ...

    def resend(self, node: Node, text: str) -> None: ...


class ContextActions(Protocol):
    """Intents; results arrive as changed rows or through `kept_changed`."""

    @property
    def kept_changed(self) -> SignalInstance:
        """Emitted when the result of `is_kept` changes for a message."""
        ...

    def is_kept(self, node_id: str) -> bool: ...

    def keep(self, node_id: str) -> None: ...

    def release(self, node_id: str) -> None: ...

    def change_summary(self, node_id: str, text: str) -> None: ...


class ChangeActions(Protocol):
    """The files that tasks changed."""

    @property
    def changed(self) -> SignalInstance:
        """Emitted when the result of `count` changes."""
        ...

    def count(self, task_id: str) -> int:
        """Return the number of files that a task has changed."""
        ...

    def review(self, task_id: str, name: str = "") -> None:
        """Show what a task changed; with `name`, in that file."""
        ...


class RecallActions(Protocol):
    """Intents on what was recalled. `changed` is emitted when something was decided."""

    @property
    def changed(self) -> SignalInstance: ...

    def decision(self, folder: str, other: str, /) -> ShareChoice | None:
        """Return what the person decided about two folders, if that is known and was not to wait."""
        ...

    def share(self, folder: str, other: str, choice: ShareChoice, /) -> None: ...

    def is_given(self, node_id: str, /) -> bool: ...

    def give(self, node_id: str, /, *, again: bool) -> None: ...


class RowActions(Protocol):
    """Intents of the rows; results arrive as changed rows."""

    @property
    def branches(self) -> BranchActions: ...

    @property
    def context(self) -> ContextActions: ...

    @property
    def recall(self) -> RecallActions: ...

    @property
    def changes(self) -> ChangeActions: ...

    @property
    def pictures(self) -> PictureActions: ...

    def models(self) -> tuple[str, ...]:
        """Return the models that can be used now."""
        ...

    def open_link(self, url: str) -> None: ...

    def copy(self, text: str, /) -> None: ...

    def copy_picture(self, picture: QImage, /) -> None: ...

    def answer(self, params: AskAnswerParams, /) -> None: ...

    def load_older(self) -> None: ...

    def open_agent(self, agent_id: str, /) -> None:
        """Show the branch of an agent."""
        ...

    def forget(self, node_id: str, /) -> None:
        """Ask whether the text of a node is to be forgotten for good."""
        ...

    def open_source(self, conversation_id: str, node_id: str, /) -> None:
        """Show a node of any conversation, from which something was recalled."""
        ...

    def stop_task(self, task_id: str, /) -> None: ...

    def set_up_models(self) -> None:
        """Show where models and keys are set up."""
        ...


@dataclass(frozen=True, slots=True)
class CopySource:
    """The text that can be copied at a place; empty if there is none."""

    link: str = ""
    message: str = ""


def show_menu(parent: QWidget, position: QPoint, copyable: CopySource, actions: RowActions, opening: MenuHook) -> None:
    """`opening` may add entries before the menu is shown."""
    entries = (
        (tr("Copy link"), copyable.link),
        (tr("Copy message as Markdown"), copyable.message),
    )
    menu = QMenu(parent)
    for title, text in entries:
        if text:
            menu.addAction(title).triggered.connect(lambda _=False, text=text: actions.copy(text))
    opening(menu)
    if not menu.isEmpty():
        menu.popup(position)
        menu.aboutToHide.connect(menu.deleteLater)
    else:
        menu.deleteLater()


class RowView(QWidget, Generic[R]):
    """Shows one row after another: `set_row` must reset all state of the previous row.

    `resized` is emitted when the height changed by itself (a card was opened), `part_opened` with the part that a
    person opened, which the transcript scrolls into view. The transcript stores the open state: it
    listens to `opened(is_open)` and calls `set_open` before `set_row`. `menu_opening` gives the QMenu that is
    about to be shown, so that listeners can add entries.
    """

    resized = Signal()
    part_opened = Signal(QWidget)
    opened = Signal(bool)
    menu_opening = Signal(object)

    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.theme = theme
        self.row_actions = actions
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)

    def set_row(self, row: R) -> None:
        raise NotImplementedError

    def markdown(self) -> str:
        """Return the whole message that the row belongs to, for copying; empty if it has no text."""
        return ""

    def fill_menu(self, menu: QMenu) -> None:
        """Add entries besides the copy entries."""

    def set_open(self, is_open: bool) -> None:
        """Expand or collapse; for rows that can be expanded."""

    def close_part(self) -> bool:
        """Close an open part of a card that waits for a person; False if there is none."""
        return False

    def show_hit_count(self, count: int) -> None:
        """The number of search hits in the collapsed part; 0 for none. For rows that can be expanded."""

    @property
    def is_pending(self) -> bool:
        """True while formulas are not drawn yet."""
        return bool(self._pending())

    def fill_in(self) -> bool:
        """Draw the next formula, which may change the height; False if that is not possible yet."""
        return self._pending()[0].fill_in()

    def _pending(self) -> list[TextView]:
        return [view for view in self.findChildren(TextView) if view.is_pending and view.isVisibleTo(self)]

    def take_focus(self) -> None:
        """Focus the control for the answer; for rows that wait for a person."""

    def choose(self, number: int) -> bool:
        """Press the button of a digit; False if there is none, or it may not be pressed yet.

        For rows that wait for a person.
        """
        return False

    def height_for(self, width: int) -> int:
        """Return the height in pixels at `width`, from the layout."""
        layout = self.layout()
        assert layout is not None
        self.resize(width, self.height())
        _refresh(self)
        layout.activate()
        if layout.hasHeightForWidth():
            return layout.totalHeightForWidth(width)
        return layout.totalSizeHint().height()

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        under = self.childAt(event.pos())
        view = under.parentWidget() if under is not None else None
        link = view.anchorAt(under.mapFrom(self, event.pos())) if under and isinstance(view, TextView) else ""
        copyable = CopySource(address_of_link(link), self.markdown())
        show_menu(self, event.globalPos(), copyable, self.row_actions, self._on_menu_opening)

    def _on_menu_opening(self, menu: QMenu) -> None:
        self.fill_menu(menu)
        self.menu_opening.emit(menu)


def _refresh(widget: QWidget) -> None:
    """Update nested layouts now; Qt would propagate the change by one level per event loop iteration."""
    for child in widget.children():
        if isinstance(child, QWidget) and not child.isHidden() and (layout := child.layout()) is not None:
            _refresh(child)
            _invalidate(layout)
            child.updateGeometry()


def _invalidate(layout: QLayout) -> None:
    """Also the layouts within it: they keep their heights when a widget in them is hidden."""
    for inner in layout.children():
        if isinstance(inner, QLayout):
            _invalidate(inner)
    layout.invalidate()


class Spacing(StrEnum):
    """The role of a row towards the rows above and below it."""

    MESSAGE = "message"
    EDIT = "edit"
    ATTACHMENT = "attachment"
    SPEAKER = "speaker"
    STEP = "step"
    REPLY_START = "reply start"
    TEXT = "text"
    CUT_START = "start of a text that the next row continues"
    CUT_TEXT = "text that the next row continues"
    ACTIVITY = "call or thinking"
    CARD = "card"
    SWITCH_ABOVE = "switch above a reply"
    SWITCH_BELOW = "switch below a message"
    BRANCH_END = "branch end"


def spacing_above(above: Spacing | None, row: Spacing, tokens: DesignTokens) -> int:
    """Pixels above a row: much if the speaker changes, little within one reply."""
    match above, row:
        case None, _:
            return 0
        case (Spacing.MESSAGE | Spacing.ATTACHMENT, Spacing.ATTACHMENT):
            return tokens.space_close
        case (Spacing.MESSAGE | Spacing.EDIT, Spacing.SWITCH_ABOVE | Spacing.SWITCH_BELOW):
            return tokens.space_tight
        case (Spacing.SWITCH_ABOVE | Spacing.SPEAKER | Spacing.STEP, _) | (Spacing.ACTIVITY, Spacing.ACTIVITY):
            return tokens.space_tight
        case (Spacing.MESSAGE | Spacing.EDIT | Spacing.SWITCH_BELOW, _):
            return tokens.space_far
        case (_, Spacing.MESSAGE | Spacing.EDIT | Spacing.CARD | Spacing.BRANCH_END | Spacing.SPEAKER):
            return tokens.space_far
        case (Spacing.CUT_START | Spacing.CUT_TEXT, Spacing.TEXT | Spacing.CUT_TEXT):
            return 0
        case (_, Spacing.REPLY_START | Spacing.CUT_START | Spacing.STEP):
            return tokens.space_wide
        case _:
            return tokens.space_normal


def text_estimate(text: str, width: int, tokens: DesignTokens) -> int:
    """Return the estimated height in pixels of a text of that width."""
    columns = max(1, int(width / (tokens.size_reading * _CHARACTER)))
    lines = len(text) // columns + text.count("\n") + 1
    return int(lines * tokens.size_reading * _LINE)


def line_estimate(row: Row, width: int, tokens: DesignTokens) -> int:
    """Return the estimated height of a row with a single line."""
    return tokens.space_far + tokens.space_normal


def card_estimate(row: Row, width: int, tokens: DesignTokens) -> int:
    """Return the estimated height of a card with a few lines."""
    return 6 * tokens.space_far


def _no_markdown(row: Row, is_open: bool) -> str:
    return ""


def _no_text(row: Row) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class RowKind(Generic[R]):
    """The functions of one kind of row.

    `estimate(row, width, tokens)` is an approximate height in pixels, used for the scroll bar. `markdown(row, is_open)`
    is the whole row for copying, for a collapsed card only its line. `text(row)` is the text searched by find in page:
    the row's texts in the order of its view.
    """

    row: type[R]
    view: type[RowView[R]]
    spacing: Callable[[R], Spacing]
    estimate: Callable[[R, int, DesignTokens], int]
    markdown: Callable[[R, bool], str] = _no_markdown
    text: Callable[[R], str] = _no_text
