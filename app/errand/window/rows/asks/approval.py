"""The approval card: what will run, why approval is needed, the risk, and the possible answers."""

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFormLayout, QLineEdit, QPushButton, QWidget

from errand.client.patch import patch_of_diff
from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.client.texts.effects import effect_of
from errand.protocol.asks import Approval, Ask, AskAnswerParams, Risk
from errand.text.translation import tr, trn
from errand.window.rows.asks.ask_card import AskCard, show_digit
from errand.window.rows.asks.choices import ALLOW_ONCE, ALWAYS_ALLOW, DENY, DENY_WITH_REASON
from errand.window.rows.asks.effect_view import EffectView
from errand.window.rows.asks.offers import ChosenOffer, OffersView
from errand.window.rows.base import RowActions
from errand.window.theme.style import Tone, push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import fill, set_hbox, set_vbox
from errand.window.widgets.buttons import ShortcutToolTip
from errand.window.widgets.code_excerpt import CodeExcerptView
from errand.window.widgets.containers import FlowLayout
from errand.window.widgets.diff.head import DiffHeadView
from errand.window.widgets.diff.lines import diff_name
from errand.window.widgets.input.field_keys import ControlEnter
from errand.window.widgets.labels import TextLabel

_NAME = tr("Tell the agent why (it continues after reading this)")

_RISKS: dict[Risk, tuple[str, Tone]] = {
    "low": (tr("Low risk"), "muted"),
    "medium": (tr("Medium risk"), "waiting"),
    "high": (tr("High risk: check carefully"), "failed"),
}
_PREVIEW_LINES = 16
_EXPLAINED_LINES = 12


class DenyReasonView(QWidget):
    """`denied` gives the reason."""

    denied = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.field = QLineEdit()
        self.field.setPlaceholderText(_NAME)
        self.field.setAccessibleName(_NAME)
        ControlEnter(self.field)
        button = push_button(DENY, "danger")
        tokens = theme.tokens
        set_hbox(self, fill(self.field), button, spacing=tokens.space_close, margins=(0, tokens.space_tight, 0, 0))
        self.field.returnPressed.connect(self._on_denied)
        button.clicked.connect(self._on_denied)

    def _on_denied(self) -> None:
        self.denied.emit(self.field.text().strip())


class EqualAsksView(QWidget):
    """Hidden if there are no identical asks. `settled(allow)` applies to the card's own ask and to `ask_ids`."""

    settled = Signal(bool)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.ask_ids: tuple[str, ...] = ()
        self._label = TextLabel(theme, tone="muted", wrap=True)
        self._allow = push_button("")
        self._deny = push_button("")
        space = theme.tokens.space_close
        buttons = FlowLayout(space, self._allow, self._deny)
        set_vbox(self, self._label, buttons, spacing=space, margins=(0, theme.tokens.space_tight, 0, 0))
        self._allow.clicked.connect(self._on_allowed)
        self._deny.clicked.connect(self._on_denied)
        self.hide()

    def show_others(self, others: tuple[Ask, ...]) -> None:
        self.ask_ids = tuple(other.id for other in others)
        count = len(others)
        self.setVisible(count > 0)
        self._label.setText(
            trn(
                "{n} identical request is waiting (same command, folder and files).",
                "{n} identical requests are waiting (same command, folder and files).",
                count,
            )
        )
        for button, label in (
            (self._allow, trn("Allow {n} once", "Allow all {n} once", count + 1)),
            (self._deny, trn("Deny {n}", "Deny all {n}", count + 1)),
        ):
            button.setText(label)
            button.setAccessibleName(label)

    def _on_allowed(self) -> None:
        self.settled.emit(True)

    def _on_denied(self) -> None:
        self.settled.emit(False)


class ApprovalCard(AskCard):
    """Ctrl+Enter anywhere in the card allows once, but in a field with text it is that field's Enter."""

    def __init__(self, theme: Theme, actions: RowActions) -> None:
        super().__init__(theme, actions, "shield-alert", tr("Approval needed"), tr("Approval"))
        self._risk = TextLabel(theme, size=theme.tokens.size_small, bold=True)
        self.heading.addWidget(self._risk)
        self._effect = EffectView(theme)
        self._facts_view = QWidget()
        self._facts = QFormLayout(self._facts_view)
        self._facts.setContentsMargins(0, 0, 0, 0)
        self._facts.setHorizontalSpacing(theme.tokens.space_normal)
        self._facts.setVerticalSpacing(theme.tokens.space_tight)
        self._facts.setLabelAlignment(Qt.AlignmentFlag.AlignLeft)
        self._diff = ""
        self._diff_head = DiffHeadView(theme, lambda: actions.copy(patch_of_diff(self._diff)))
        self._preview = CodeExcerptView(theme, tr("What will change"), most_lines=_PREVIEW_LINES, diff=True)
        self.details.addWidget(self._effect)
        self.details.addWidget(self._facts_view)
        self.details.addWidget(self._diff_head)
        self.details.addWidget(self._preview)
        self._add_controls()
        for part in (self._effect, self._preview, self._explained, self._offers):
            part.resized.connect(self.resized)

    def set_ask(self, ask: Ask) -> None:
        approval = ask.approval
        assert approval is not None
        if ask.id != self.ask_id:
            self._show(approval)
        super().set_ask(ask)
        waiting = ask.status == "waiting"
        self._risk.setVisible(waiting)
        self._facts_view.setVisible(waiting)
        has_preview = waiting and bool(approval.preview) and not effect_of(approval).details
        self._diff_head.setVisible(has_preview and bool(diff_name(approval.preview)))
        self._preview.setVisible(has_preview)

    def set_others(self, others: tuple[Ask, ...]) -> None:
        self._equal_asks.show_others(others)

    @property
    def choices(self) -> list[QPushButton]:
        buttons = (self._allow, self._always, self._deny, self._deny_with_reason)
        return [button for button in buttons if not button.isHidden()]

    def take_focus(self) -> None:
        self._allow.setFocus(Qt.FocusReason.ShortcutFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc in the card closes its own open part before what is above the transcript."""
        if event.key() == Qt.Key.Key_Escape and self.close_part():
            return
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and event.modifiers() & Qt.KeyboardModifier.ControlModifier and self.controls.isVisible():
            if not event.isAutoRepeat():
                self._on_allowed_once()
            return
        super().keyPressEvent(event)

    def close_part(self) -> bool:
        """Close the open part; the focus goes from it to its button."""
        opened = self._open_part_button()
        if opened is None:
            return False
        focused = QApplication.focusWidget()
        had_focus = focused is not None and self.isAncestorOf(focused)
        opened.click()
        if had_focus:
            opened.setFocus()
        return True

    def _open_part_button(self) -> QPushButton | None:
        """Return the button of the open part."""
        return next((button for button, part in self._parts.items() if part.isVisible()), None)

    def _add_controls(self) -> None:
        self._allow = push_button(ALLOW_ONCE, "primary")
        ShortcutToolTip(self._allow, ALLOW_ONCE, "allow_once")
        self._always = push_button(ALWAYS_ALLOW)
        self._deny = push_button(DENY)
        self._deny_with_reason = push_button(DENY_WITH_REASON, "quiet")
        self._why = push_button(tr("Why am I asked?"), "quiet")
        self._equal_asks = EqualAsksView(self.theme)
        self._offers = OffersView(self.theme)
        self._deny_row = DenyReasonView(self.theme)
        self._explained = CodeExcerptView(self.theme, tr("Why am I asked?"), most_lines=_EXPLAINED_LINES)
        self._parts: dict[QPushButton, QWidget] = {
            self._always: self._offers,
            self._deny_with_reason: self._deny_row,
            self._why: self._explained,
        }
        buttons = (self._allow, self._always, self._deny, self._deny_with_reason, self._why)
        row = FlowLayout(self.theme.tokens.space_close, *buttons)
        self.controls_column.addSpacing(self.theme.tokens.space_tight)
        self.controls_column.addLayout(row)
        self.controls_column.addWidget(self._equal_asks)
        for button, part in self._parts.items():
            self.controls_column.addWidget(part)
            button.clicked.connect(partial(self._on_part_clicked, button))
        self._allow.clicked.connect(self._on_allowed_once)
        self._deny.clicked.connect(self._on_denied)
        self._equal_asks.settled.connect(self._on_settled_together)
        self._offers.chosen.connect(self._on_offer_chosen)
        self._deny_row.denied.connect(self._on_denied_with_reason)

    def _show(self, approval: Approval) -> None:
        risk, tone = _RISKS[approval.risk]
        self._risk.setText(risk)
        self._risk.set_tone(tone)
        self._effect.show_effect(effect_of(approval))
        self._diff = approval.preview
        self._diff_head.show_diff(approval.preview)
        self._preview.set_text(approval.preview)
        self._show_facts(approval)
        self._always.setVisible(bool(approval.offers))
        for number, button in enumerate(self.choices, 1):
            show_digit(button, number)
        self._offers.set_offers(approval.offers)
        self._why.setVisible(bool(approval.explained))
        self._explained.set_text(escape_hidden(approval.explained))
        self._deny_row.field.clear()
        for part in self._parts.values():
            part.hide()

    def _show_facts(self, approval: Approval) -> None:
        while self._facts.rowCount():
            self._facts.removeRow(0)
        reads = tuple(path for path in approval.reads if path != approval.working_dir)
        for name, text, mono in (
            (tr("Action"), effect_of(approval).does, False),
            (tr("Folder"), escape_hidden_line(approval.working_dir or ""), True),
            (tr("Reads"), "\n".join(escape_hidden_line(path) for path in reads), True),
            (tr("Writes"), "\n".join(escape_hidden_line(path) for path in approval.writes), True),
            (tr("Reason"), escape_hidden_line(approval.rule), False),
            (tr("Sandbox"), escape_hidden_line(approval.sandbox), False),
        ):
            if text:
                value = TextLabel(self.theme, text, mono=mono, wrap=True)
                self._facts.addRow(TextLabel(self.theme, name, tone="muted"), value)

    def _settle(self, allow: bool, text: str = "") -> None:
        self.answer(AskAnswerParams(ask_id=self.ask_id, text=text, allow=allow))

    def _on_allowed_once(self) -> None:
        self._settle(True)

    def _on_denied(self) -> None:
        self._settle(False)

    def _on_offer_chosen(self, chosen: ChosenOffer) -> None:
        self.answer(
            AskAnswerParams(
                ask_id=self.ask_id,
                allow=True,
                remember=chosen.scope,
                offer=chosen.offer,
                expires_s=chosen.expires_s,
            )
        )

    def _on_denied_with_reason(self, reason: str) -> None:
        self._settle(False, reason)

    def _on_settled_together(self, allow: bool) -> None:
        """Settles exactly the asks counted on the buttons, not later ones."""
        for ask_id in (self.ask_id, *self._equal_asks.ask_ids):
            self.answer(AskAnswerParams(ask_id=ask_id, allow=allow))

    def _on_part_clicked(self, button: QPushButton) -> None:
        """Open one part and close the others, or close it."""
        opens = not self._parts[button].isVisible()
        for other, part in self._parts.items():
            part.setVisible(opens and other is button)
        if opens and button is self._always:
            self._offers.take_focus()
        elif opens and button is self._deny_with_reason:
            self._deny_row.field.setFocus()
        self.resized.emit()
        if opens:
            self.part_opened.emit(self._parts[button])
