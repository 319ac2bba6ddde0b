"""One entry of the inbox: status, title, detail; its ask can be answered inline."""

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QPushButton, QVBoxLayout, QWidget

from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.client.texts.asks import asked_text, choice_text, subject_text
from errand.client.texts.effects import effect_of
from errand.protocol.asks import Approval, Ask, Risk
from errand.text.translation import tr, trn, uncapitalised
from errand.window.rows.asks.limit_field import LimitField
from errand.window.theme.style import Tone, push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import hbox, stretch, vbox
from errand.window.widgets.buttons import ChoiceButton, IconButton
from errand.window.widgets.code_excerpt import CodeExcerptView
from errand.window.widgets.input.field_keys import ControlEnter
from errand.window.widgets.input.reaction_time import ReactionTime
from errand.window.widgets.labels import ElidedLabel, TextLabel
from errand.window.widgets.pulse import PulseTimer
from errand.window.widgets.status_dot import STATE_LABELS, DotState, StatusDotView

_RISKS: dict[Risk, tuple[str, Tone]] = {
    "low": (tr("Low risk"), "muted"),
    "medium": (tr("Medium risk"), "waiting"),
    "high": (tr("High risk: check carefully"), "failed"),
}
_MAX_LINES = 12

_ENTER_KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Enter)
_OPEN_KEYS = (*_ENTER_KEYS, Qt.Key.Key_Space)


class AskDetailView(QWidget):
    """Keys and clicks decide nothing before a person had time to see the ask.

    `answered` gives a text, `decided` whether it was allowed; `open_requested` if it is too long to show here.

    `continued` gives the answer (`AskAnswerParams`) that goes on at a limit, with the amount in its field.
    """

    answered = Signal(str)
    continued = Signal(object)
    decided = Signal(bool)
    open_requested = Signal()

    def __init__(self, ask: Ask, count: int, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._reaction_time = ReactionTime(self)
        self._boxes: list[CodeExcerptView] = []
        self._more: LimitField | None = None
        self._yes: QPushButton | None = None
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, theme.tokens.space_tight, theme.tokens.space_tight, theme.tokens.space_tight)
        self._column.setSpacing(theme.tokens.space_tight)
        if ask.approval is not None:
            self._show_approval(ask.approval)
            if count > 1:
                self._add_buttons(
                    trn("Allow {n} once", "Allow all {n} once", count), trn("Deny {n}", "Deny all {n}", count)
                )
            else:
                self._add_buttons(tr("Allow once"), tr("Deny"))
        else:
            self._column.addWidget(TextLabel(theme, asked_text(ask), wrap=True))
            if ask.kind == "limit":
                self._add_limit(ask)
            elif ask.unknown is not None:
                self._add_box(tr("What was running"), subject_text(ask.unknown))
                self._add_choices(ask)
            else:
                self._add_choices(ask)
                self._add_field(bool(ask.choices))

    @property
    def can_decide(self) -> bool:
        """True while everything that would run is visible: nobody should allow what they have not seen."""
        is_all_visible = self.isVisible() and self.visibleRegion().boundingRect() == self.rect()
        return self.fits and is_all_visible and not self.is_new

    @property
    def is_new(self) -> bool:
        """True until a person had time to see the ask."""
        return not self._reaction_time.is_over

    @property
    def fits(self) -> bool:
        return all(box.fits for box in self._boxes)

    def _show_approval(self, approval: Approval) -> None:
        risk_text, tone = _RISKS[approval.risk]
        self._add_label(risk_text, tone)
        self._add_box(
            tr("What will run"), escape_hidden(approval.text if approval.command is None else approval.command)
        )
        if remark := effect_of(approval).remark:
            self._add_label(remark, "waiting")
        reads = tuple(path for path in approval.reads if path != approval.working_dir)
        for template, text in (
            (tr("In {folder}"), escape_hidden_line(approval.working_dir or "")),
            (tr("Reads {folder}"), "\n".join(escape_hidden_line(path) for path in reads)),
            (tr("Writes {folder}"), "\n".join(escape_hidden_line(path) for path in approval.writes)),
        ):
            if text:
                self._add_label(template.format(folder=text))
        if approval.preview:
            self._add_box(tr("What will change"), approval.preview, diff=True)
        self._add_label(tr("Why: {reason}").format(reason=escape_hidden_line(approval.rule)))

    def _add_label(self, text: str, tone: Tone = "muted") -> None:
        label = TextLabel(self._theme, text, size=self._theme.tokens.size_small, tone=tone, wrap=True)
        self._column.addWidget(label)

    def _add_box(self, name: str, text: str, *, diff: bool = False) -> None:
        box = CodeExcerptView(self._theme, name, most_lines=_MAX_LINES, diff=diff)
        box.set_text(text)
        box.box.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # Tab goes to the answer buttons
        self._boxes.append(box)
        self._column.addWidget(box)

    def _add_buttons(self, yes: str, no: str) -> None:
        allow, deny = push_button(yes, "primary"), push_button(no)
        set_tool_tip(allow, f"{yes} (A)")
        set_tool_tip(deny, f"{no} (D)")
        self._column.addLayout(hbox(allow, deny, stretch(0), spacing=self._theme.tokens.space_tight))
        self._yes = allow
        allow.clicked.connect(partial(self._on_decided, True))
        deny.clicked.connect(partial(self._on_decided, False))

    def _add_limit(self, ask: Ask) -> None:
        more = LimitField(self._theme)
        self._column.addWidget(more, 0, Qt.AlignmentFlag.AlignLeft)
        self._add_buttons(tr("Continue"), tr("Stop"))
        self._more = more
        more.changed.connect(self._on_more_changed)
        more.submitted.connect(partial(self._on_decided, True))
        more.set_ask(ask)

    def _add_choices(self, ask: Ask) -> None:
        for choice in ask.choices:
            button = ChoiceButton(self._theme, choice_text(ask, choice))
            button.clicked.connect(partial(self._on_chosen, choice))
            self._column.addWidget(button)

    def _add_field(self, has_choices: bool) -> None:
        self._field = QLineEdit()
        name = tr("Or type your own answer") if has_choices else tr("Your answer")
        self._field.setPlaceholderText(name)
        self._field.setAccessibleName(name)
        self._field.setMaxLength(100_000)
        ControlEnter(self._field)
        self._field.returnPressed.connect(self._on_entered)
        self._column.addWidget(self._field)

    def _on_decided(self, allow: bool) -> None:
        """A text that is truncated here is decided where it is shown in full."""
        if not self.fits:
            self.open_requested.emit()
        elif not self.is_new:
            self.decide(allow)

    def decide(self, allow: bool) -> None:
        """Settle the ask; at a limit with the amount in the field, if that is a number."""
        if not allow or self._more is None:
            self.decided.emit(allow)
        elif (answer := self._more.answer) is not None:
            self.continued.emit(answer)

    def _on_more_changed(self) -> None:
        if self._more is not None and self._yes is not None:
            self._yes.setEnabled(self._more.answer is not None)

    def _on_chosen(self, choice: str) -> None:
        if not self.is_new:
            self.answered.emit(choice)

    def _on_entered(self) -> None:
        text = self._field.text().strip()
        if text and not self.is_new:
            self.answered.emit(text)


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """`asks` are identical and settled together; `button` is the icon and the name of the button that ends the task."""

    key: str
    conversation_id: str
    state: DotState
    title: str
    detail: str
    task_id: str = ""
    asks: tuple[Ask, ...] = ()
    button: tuple[str, str] | None = None
    enabled: bool = True


class InboxRowView(QFrame):
    """`opened` on a click or Enter, `button_clicked` on its button or Delete. With an ask it expands on focus.

    `decided`, `continued` and `answered` settle the ask; `step_requested` requests the next entry (1) or the previous
    one (-1).
    """

    opened = Signal()
    button_clicked = Signal()
    decided = Signal(bool)
    continued = Signal(object)
    answered = Signal(str)
    expanded = Signal()
    step_requested = Signal(int)

    def __init__(self, entry: InboxEntry, theme: Theme, pulse: PulseTimer) -> None:
        super().__init__()
        self.entry = entry
        self._theme = theme
        self._detail_view: AskDetailView | None = None
        tokens = theme.tokens
        self.setObjectName("row")
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self._dot = StatusDotView(theme, pulse)
        self._title = ElidedLabel(theme)
        self._detail = ElidedLabel(theme, size=tokens.size_small, tone="muted")
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(tokens.space_close, tokens.space_tight, tokens.space_tight, tokens.space_tight)
        self._column.setSpacing(0)
        self._column.addLayout(self._head(pulse))
        self.show_entry(entry)

    @property
    def text(self) -> str:
        return f"{self._title.full_text}: {self._detail.full_text}"

    @property
    def detail(self) -> AskDetailView | None:
        """The detail of its ask, while expanded."""
        return self._detail_view

    def show_entry(self, entry: InboxEntry) -> None:
        asks_changed = [ask.id for ask in entry.asks] != [ask.id for ask in self.entry.asks]
        self.entry = entry
        self._dot.set_state(entry.state)
        self._title.set_text(entry.title)
        self._detail.set_text(entry.detail)
        self.setAccessibleName(f"{entry.title}, {uncapitalised(STATE_LABELS[entry.state])}, {entry.detail}")
        if self._button is not None and entry.button is not None:
            self._button.setEnabled(entry.enabled)
            self._button.setAccessibleName(f"{entry.button[1]} {entry.title}")
        if asks_changed and self._detail_view is not None:
            self.collapse()
            self.expand()

    def expand(self) -> None:
        """Show the whole ask, with the answer buttons."""
        if not self.entry.asks or self._detail_view is not None:
            return
        detail = self._detail_view = AskDetailView(self.entry.asks[0], len(self.entry.asks), self._theme)
        detail.decided.connect(self.decided)
        detail.continued.connect(self.continued)
        detail.answered.connect(self.answered)
        detail.open_requested.connect(self.opened)
        self._column.addWidget(detail)
        detail.show()  # the layout would only show it in the next iteration of the event loop
        self._detail.hide()
        self._set_chevron("chevron-down", tr("Close"))
        self.expanded.emit()

    def collapse(self) -> None:
        if self._detail_view is not None:
            self._detail_view.hide()
            self._detail_view.deleteLater()
            self._detail_view = None
            self._detail.show()
            self._set_chevron("chevron-right", tr("Show details"))

    def event(self, event: QEvent) -> bool:
        """Ctrl+Enter is also a shortcut of the window: here it applies to this ask."""
        if (
            event.type() == QEvent.Type.ShortcutOverride
            and isinstance(event, QKeyEvent)
            and self._decision(event) is True
        ):
            event.accept()
            return True
        return super().event(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.expand()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        decision = self._decision(event)
        if decision is not None and event.isAutoRepeat():
            return
        if decision is not None:
            self._decide(decision)
        elif event.key() in _OPEN_KEYS:
            self.opened.emit()
        elif event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Up):
            self.step_requested.emit(1 if event.key() == Qt.Key.Key_Down else -1)
        elif event.key() == Qt.Key.Key_Delete and self.entry.button is not None and self.entry.enabled:
            self.button_clicked.emit()
        else:
            super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.opened.emit()

    def _head(self, pulse: PulseTimer) -> QHBoxLayout:
        texts = vbox(self._title, self._detail, spacing=0)
        head = QHBoxLayout()
        head.setSpacing(self._theme.tokens.space_close)
        head.addWidget(self._dot, 0, Qt.AlignmentFlag.AlignVCenter)
        head.addLayout(texts, 1)
        self._button: IconButton | None = None
        self._chevron: IconButton | None = None
        if self.entry.button is not None:
            self._button = IconButton(self._theme, *self.entry.button)
            self._button.clicked.connect(self.button_clicked)
            head.addWidget(self._button)
        if self.entry.asks:
            self._chevron = IconButton(self._theme, "chevron-right", tr("Show details"))
            self._chevron.clicked.connect(self._on_chevron_clicked)
            head.addWidget(self._chevron)
        return head

    def _decision(self, event: QKeyEvent) -> bool | None:
        """Return the decision that a key gives on an approval or a limit; None for other keys."""
        if not self.entry.asks or self.entry.asks[0].kind in ("question", "unknown"):
            return None
        modifiers = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
        if modifiers == Qt.KeyboardModifier.ControlModifier and event.key() in _ENTER_KEYS:
            return True
        plain = modifiers == Qt.KeyboardModifier.NoModifier
        return {Qt.Key.Key_A: True, Qt.Key.Key_D: False}.get(Qt.Key(event.key())) if plain else None

    def _decide(self, allow: bool) -> None:
        """An ask that is collapsed is expanded first; one that is too long to show here is opened."""
        if self._detail_view is not None and self._detail_view.can_decide:
            self._detail_view.decide(allow)
        elif self._detail_view is None:
            self.expand()
        elif not self._detail_view.fits or not self._detail_view.is_new:
            self.opened.emit()

    def _set_chevron(self, icon: str, name: str) -> None:
        if self._chevron is not None:
            self._chevron.set_icon_and_name(icon, name)

    def _on_chevron_clicked(self) -> None:
        if self._detail_view is None:
            self.expand()
        else:
            self.collapse()
            self.expanded.emit()
