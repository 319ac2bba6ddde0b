"""Results of the full-text search over all conversations: titles first, then messages."""

import re
from dataclasses import dataclass
from datetime import datetime

from PySide6.QtCore import QModelIndex, Qt, Signal
from PySide6.QtGui import QKeyEvent, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import QListView, QStackedLayout, QWidget

from errand.protocol.conversations import Conversation, ConversationSearchResult, SearchHit
from errand.text.translation import grouped, tr
from errand.window.theme.theme import Theme
from errand.window.views.shared.item_delegate import DETAIL, HEADING, HINT, HIT_END, HIT_START, ItemDelegate
from errand.window.views.sidebar.conversation_model import short_time
from errand.window.widgets.labels import TextLabel

# The signs of Markdown, with what stays of them. A snippet is cut anywhere, so that no parser could read it.
_SIGNS = (
    (re.compile(r"^[ \t]*(?:`{3,}|~{3,})[\w+-]*[ \t]*$", re.MULTILINE), ""),
    (re.compile(r"^[ \t]*(?:#{1,6} |> ?|[-*+] (?:\[[ xX]\] )?)+", re.MULTILINE), ""),
    (re.compile(r"^[ \t|:-]+$", re.MULTILINE), ""),
    (re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)"), r"\1"),
    (re.compile(r"(?:\*\*|~~|`+)"), ""),
    (re.compile(r"(?<![\w*])\*(?=[^\s*])|(?<=[^\s*])\*(?![\w*])"), ""),
    (re.compile(r"(?<!\w)_([^_\s][^_\n]*)_(?!\w)"), r"\1"),
    (re.compile(r"[ \t]*\|[ \t]*"), " "),
)

OPERATORS = tr(
    'Narrow your search with from:user, from:agent or an agent\'s name, in:"words of a title", '
    "tool:shell, after:2026-11 and before:2026-11-20."
)

# The newest ones, so that the messages stay visible; more search words give fewer titles.
_MAX_TITLES = 12


@dataclass(frozen=True, slots=True)
class _Result:
    """`node_id` is "" for a title. `around` gives the position of a message and the messages before and after it."""

    conversation_id: str
    node_id: str
    title: str
    detail: str
    hint: str
    heading: str
    archived: bool
    around: str = ""


def plain_snippet(snippet: str) -> str:
    """Return a snippet in one line without the signs of Markdown; the marks around the hits stay."""
    for sign, left in _SIGNS:
        snippet = sign.sub(left, snippet)
    return " ".join(snippet.split())


class SearchResultsView(QWidget):
    """`opened` gives the conversation and the node of the chosen hit, "" for a title.

    `back_requested` is emitted when Up or Esc returns the focus to the search field.
    """

    opened = Signal(str, str)
    back_requested = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._results: tuple[_Result, ...] = ()
        self._model = QStandardItemModel(self)
        self._list = _ResultList()
        self._list.setAccessibleName(tr("Search results"))
        self._list.setModel(self._model)
        self._list.setItemDelegate(ItemDelegate(theme, self._list))
        self._list.setMouseTracking(True)
        self._list.clicked.connect(self._on_activated)
        self._list.activated.connect(self._on_activated)
        self._list.back_requested.connect(self.back_requested)
        self._nothing = TextLabel(theme, tone="muted", wrap=True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._nothing.setMargin(theme.tokens.space_close)
        self._stack = QStackedLayout(self)
        self._stack.addWidget(self._list)
        self._stack.addWidget(self._nothing)
        self.setFocusProxy(self._list)

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(self._model.item(row).text() for row in range(self._model.rowCount()))

    def show_results(self, text: str, found: ConversationSearchResult) -> None:
        now = datetime.now().astimezone()
        titles = [
            _title_result(conversation, now, rank) for rank, conversation in enumerate(found.titles[:_MAX_TITLES])
        ]
        hits = [_message_result(hit, now, rank) for rank, hit in enumerate(found.hits)]
        self._results = (*titles, *hits)
        self._model.clear()
        for result in self._results:
            self._model.appendRow(_item(result))
        nothing = tr("No results for “{text}”\n\n{operators}").format(text=text, operators=OPERATORS)
        self._nothing.setText(found.advice or nothing)
        self._stack.setCurrentWidget(self._list if self._results else self._nothing)
        if self._results:
            self._list.setCurrentIndex(self._model.index(0, 0))

    def open_selected(self) -> None:
        """Open the selected hit."""
        self._on_activated(self._list.currentIndex())

    def _on_activated(self, index: QModelIndex) -> None:
        if index.isValid():
            result = self._results[index.row()]
            self.opened.emit(result.conversation_id, result.node_id)


class _ResultList(QListView):
    """`back_requested` is emitted on Esc, and on Up at the first item."""

    back_requested = Signal()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_up = event.key() == Qt.Key.Key_Up and self.currentIndex().row() <= 0
        if is_up or event.key() == Qt.Key.Key_Escape:
            self.back_requested.emit()
            return
        super().keyPressEvent(event)


def _title_result(found: Conversation, now: datetime, place: int) -> _Result:
    return _Result(
        found.id, "", found.title, "", short_time(found.updated_at, now), "" if place else tr("Titles"), found.archived
    )


def _message_result(hit: SearchHit, now: datetime, place: int) -> _Result:
    snippet = plain_snippet(hit.snippet)
    hint = short_time(hit.created_at, now)
    heading = "" if place else tr("Messages")
    where = tr("Message {number} of {total}").format(number=grouped(hit.place), total=grouped(hit.of))
    before = tr("Before: {text}").format(text=hit.before) if hit.before else ""
    after = tr("After: {text}").format(text=hit.after) if hit.after else ""
    lines = (where, before, after)
    from html import escape  # not needed at startup

    # Qt renders tool tips that look like HTML as rich text: user text must be escaped.
    around = "<br>".join(escape(line) for line in lines if line)
    archived = hit.conversation_archived
    return _Result(hit.conversation_id, hit.node_id, hit.conversation_title, snippet, hint, heading, archived, around)


def _item(result: _Result) -> QStandardItem:
    item = QStandardItem(result.title)
    item.setEditable(False)
    item.setData(result.detail, DETAIL)
    item.setData(tr("Archived · {time}").format(time=result.hint) if result.archived else result.hint, HINT)
    item.setData(result.heading, HEADING)
    item.setToolTip(result.around)
    spoken = result.detail.replace(HIT_START, "").replace(HIT_END, "")
    accessible = (result.title, spoken, tr("Archived · {time}").format(time=result.hint) if result.archived else "")
    item.setData(": ".join(part for part in accessible if part), Qt.ItemDataRole.AccessibleTextRole)
    return item
