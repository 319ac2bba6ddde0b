"""What an entry of the inbox shows of its ask: all that a person must see to settle it, and the ways to settle it."""

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.client.call_words import exactly
from app.client.characters import exact, exact_line, plain
from app.protocol.asks import Approval, Ask, Risk
from app.window.theme.look import Tone, push_button, set_tip
from app.window.theme.theme import Theme
from app.window.widgets.choice_button import ChoiceButton
from app.window.widgets.code_excerpt import CodeExcerpt
from app.window.widgets.text_label import TextLabel

_RISKS: dict[Risk, tuple[str, Tone]] = {
    "low": ("Low risk", "muted"),
    "medium": ("Medium risk", "waiting"),
    "high": ("High risk, look closely", "failed"),
}
_MOST_LINES = 12


class AskDetail(QWidget):
    """`answered` with a text, `decided` with what was allowed or not; `open_asked` where it is too long for here."""

    answered = Signal(str)
    decided = Signal(bool)
    open_asked = Signal()

    def __init__(self, ask: Ask, count: int, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._boxes: list[CodeExcerpt] = []
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, theme.tokens.space_tight, theme.tokens.space_tight, theme.tokens.space_tight)
        self._column.setSpacing(theme.tokens.space_tight)
        if ask.approval is not None:
            self._show_approval(ask.approval)
            every = f" all {count}" if count > 1 else ""
            self._add_buttons(f"Allow{every} once", f"Deny{every}")
        else:
            self._column.addWidget(TextLabel(theme, plain(ask.text), wrap=True))
            if ask.kind == "limit":
                self._add_buttons("Go on", "Stop here")
            elif ask.unknown is not None:
                self._add_box("What was under way", exactly(ask.unknown))
                self._add_choices(ask.choices)
            else:
                self._add_choices(ask.choices)
                self._add_field(bool(ask.choices))

    @property
    def can_decide(self) -> bool:
        """True while all that would run can be seen: nobody allows what they did not see."""
        return self._fits and self.isVisible() and self.visibleRegion().boundingRect() == self.rect()

    @property
    def _fits(self) -> bool:
        return all(box.fits for box in self._boxes)

    def _show_approval(self, approval: Approval) -> None:
        words, tone = _RISKS[approval.risk]
        self._add_label(words, tone)
        self._add_box("What will run", exact(approval.text if approval.command is None else approval.command))
        reads = tuple(path for path in approval.reads if path != approval.working_dir)
        for name, text in (
            ("In", exact_line(approval.working_dir or "")),
            ("Reads", "\n".join(exact_line(path) for path in reads)),
            ("Writes", "\n".join(exact_line(path) for path in approval.writes)),
        ):
            if text:
                self._add_label(f"{name} {text}")
        if approval.preview:
            self._add_box("What will change", exact(approval.preview), diff=True)
        self._add_label(f"Why: {exact_line(approval.rule)}")

    def _add_label(self, text: str, tone: Tone = "muted") -> None:
        label = TextLabel(self._theme, text, size=self._theme.tokens.size_small, tone=tone, wrap=True)
        self._column.addWidget(label)

    def _add_box(self, name: str, text: str, *, diff: bool = False) -> None:
        box = CodeExcerpt(self._theme, name, most_lines=_MOST_LINES, diff=diff)
        box.set_text(text)
        box.box.setFocusPolicy(Qt.FocusPolicy.ClickFocus)  # Tab goes to the ways to answer
        self._boxes.append(box)
        self._column.addWidget(box)

    def _add_buttons(self, yes: str, no: str) -> None:
        allow, deny = push_button(yes, "primary"), push_button(no)
        set_tip(allow, f"{yes} (A)")
        set_tip(deny, f"{no} (D)")
        row = QHBoxLayout()
        row.setSpacing(self._theme.tokens.space_tight)
        row.addWidget(allow)
        row.addWidget(deny)
        row.addStretch()
        self._column.addLayout(row)
        allow.clicked.connect(partial(self._on_decided, True))
        deny.clicked.connect(partial(self._on_decided, False))

    def _add_choices(self, choices: tuple[str, ...]) -> None:
        for choice in choices:
            button = ChoiceButton(self._theme, plain(choice))
            button.clicked.connect(partial(self._on_chosen, choice))
            self._column.addWidget(button)

    def _add_field(self, has_choices: bool) -> None:
        self._field = QLineEdit()
        name = "Or answer in your own words" if has_choices else "Your answer"
        self._field.setPlaceholderText(name)
        self._field.setAccessibleName(name)
        self._field.setMaxLength(100_000)
        self._field.returnPressed.connect(self._on_entered)
        self._column.addWidget(self._field)

    def _on_decided(self, allow: bool) -> None:
        """A text that is cut off here is decided where it stands whole."""
        if self._fits:
            self.decided.emit(allow)
        else:
            self.open_asked.emit()

    def _on_chosen(self, choice: str) -> None:
        self.answered.emit(choice)

    def _on_entered(self) -> None:
        if text := self._field.text().strip():
            self.answered.emit(text)
