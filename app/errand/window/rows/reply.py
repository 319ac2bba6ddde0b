"""An agent's reply, part by part: text, tables, code cards; and the headings above it: its author, its step."""

from PySide6.QtWidgets import QMenu, QWidget

from errand.client.conversation.markdown_pieces import is_cut
from errand.client.conversation.rows import ReplyRow, SpeakerRow, StepRow
from errand.client.safe_text import plain
from errand.client.texts.messages import message_markdown
from errand.text.translation import tr
from errand.window.rows.base import (
    RowActions,
    RowKind,
    RowView,
    Spacing,
    line_estimate,
    text_estimate,
)
from errand.window.rows.markdown import without_markup
from errand.window.rows.markdown_view import MarkdownView
from errand.window.rows.message_actions import KeepMarkView, add_message_entries
from errand.window.theme.style import set_style
from errand.window.theme.theme import Theme
from errand.window.widgets.agent_dot import AgentDotView
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_hbox, set_vbox
from errand.window.widgets.labels import ElidedLabel, TextLabel


class ReplyView(RowView[ReplyRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._row: ReplyRow | None = None
        self._is_open = False
        self._piece = MarkdownView(theme, actions, self)
        self._piece.opened.connect(self._on_opened)
        self._piece.resized.connect(self.resized)
        self._mark = KeepMarkView(theme, actions.context, self)
        space = theme.tokens.space_tight
        set_vbox(self, hbox(self._mark, STRETCH, spacing=space), self._piece, spacing=space)

    def set_open(self, is_open: bool) -> None:
        """Open or close details; for code, wrap or scroll long lines."""
        self._is_open = is_open

    def set_row(self, row: ReplyRow) -> None:
        self._row = row
        self._mark.show_at(row.node.id if row.step else "")
        self._piece.show_piece(row.markdown, is_streaming=row.streaming, is_open=self._is_open)

    def show_hit_count(self, count: int) -> None:
        self._piece.show_hit_count(count)

    def markdown(self) -> str:
        return message_markdown(self._row.node) if self._row else ""

    def fill_menu(self, menu: QMenu) -> None:
        if self._row is not None:
            add_message_entries(menu, self._row.node, self.row_actions)

    def _on_opened(self, is_open: bool) -> None:
        self._is_open = is_open
        self.opened.emit(is_open)


class SpeakerView(RowView[SpeakerRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._dot = AgentDotView(theme)
        self._name = ElidedLabel(theme, bold=True)
        self._model = ElidedLabel(theme, size=theme.tokens.size_small, tone="muted")
        set_hbox(self, self._dot, self._name, fill(self._model), spacing=theme.tokens.space_close)

    def set_row(self, row: SpeakerRow) -> None:
        speaker = row.speaker
        self._dot.set_color(speaker.color)
        self._name.set_text(speaker.name)
        set_style(self._name, "person", speaker.color)
        self._model.set_text(speaker.model)
        self.setAccessibleName(tr("{name} says:").format(name=speaker.name))


class StepView(RowView[StepRow]):
    def __init__(self, theme: Theme, actions: RowActions, parent: QWidget | None = None) -> None:
        super().__init__(theme, actions, parent)
        self._label = TextLabel(theme, size=theme.tokens.size_small, tone="muted")
        set_hbox(self, self._label)

    def set_row(self, row: StepRow) -> None:
        self._label.setText(_step_text(row))


def _step_text(row: StepRow) -> str:
    return tr("Step {number}").format(number=row.number)


def _spacing(row: ReplyRow) -> Spacing:
    if is_cut(row.markdown):
        return Spacing.CUT_START if row.step else Spacing.CUT_TEXT
    return Spacing.REPLY_START if row.step else Spacing.TEXT


REPLY = RowKind(
    ReplyRow,
    ReplyView,
    spacing=_spacing,
    estimate=lambda row, width, tokens: tokens.space_normal + text_estimate(row.markdown, width, tokens),
    markdown=lambda row, is_open: row.markdown.strip("\n"),
    text=lambda row: without_markup(row.markdown),
)

SPEAKER = RowKind(
    SpeakerRow,
    SpeakerView,
    spacing=lambda row: Spacing.SPEAKER,
    estimate=line_estimate,
    markdown=lambda row, is_open: f"**{plain(row.speaker.name)}**",
)

STEP = RowKind(
    StepRow,
    StepView,
    spacing=lambda row: Spacing.STEP,
    estimate=line_estimate,
    markdown=lambda row, is_open: _step_text(row),
)
