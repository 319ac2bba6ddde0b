"""What an approval may allow from now on: the offers of the engine, for how long, and where."""

from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QButtonGroup,
    QFormLayout,
    QPushButton,
    QRadioButton,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QVBoxLayout,
    QWidget,
)

from errand.client.safe_text import escape_hidden_line
from errand.client.texts.rules import REMEMBERED, offer_text
from errand.protocol.asks import GrantOffer, GrantScope
from errand.text.translation import tr
from errand.window.theme.style import focus_by_keys, push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.containers import FlowLayout
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.labels import TextLabel

_SCOPES: tuple[GrantScope, ...] = ("conversation", "workspace", "user")
_HOUR_S = 3600.0
_MIN_TITLE_WIDTH_EM = 6  # of a title, in times of its height
_PERIODS: dict[str, float | None] = {
    tr("Until revoked"): None,
    tr("For 1 hour"): _HOUR_S,
    tr("For 1 day"): 24 * _HOUR_S,
    tr("For 1 week"): 7 * 24 * _HOUR_S,
}


@dataclass(frozen=True, slots=True)
class ChosenOffer:
    """`offer` is the index in the approval's offers, `expires_s` null until it is revoked."""

    offer: int
    scope: GrantScope
    expires_s: float | None


class OfferButton(QRadioButton):
    """Shortens its text in the middle if space is short, so that a long path does not widen the card."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        focus_by_keys(self)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        height = super().minimumSizeHint().height()
        return QSize(_MIN_TITLE_WIDTH_EM * height, height)

    def initStyleOption(self, option: QStyleOptionButton) -> None:
        super().initStyleOption(option)
        space = self.style().subElementRect(QStyle.SubElement.SE_RadioButtonContents, option, self).width()
        option.text = self.fontMetrics().elidedText(  # pyright: ignore[reportAttributeAccessIssue] -- PySide6's stubs omit the fields of QStyleOption
            self.text(), Qt.TextElideMode.ElideMiddle, space, Qt.TextFlag.TextShowMnemonic
        )


class OffersView(QWidget):
    """`chosen` gives a `ChosenOffer`; `resized` is emitted when another offer is shown."""

    chosen = Signal(object)
    resized = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._offers: tuple[GrantOffer, ...] = ()
        self._group = QButtonGroup(self)
        self._kinds = QVBoxLayout()
        self._kinds.setSpacing(theme.tokens.space_tight)
        self._covers = TextLabel(theme, wrap=True)
        self._example, self._against = TextLabel(theme, mono=True, wrap=True), TextLabel(theme, mono=True, wrap=True)
        self._examples = QFormLayout()
        self._examples.setHorizontalSpacing(theme.tokens.space_normal)
        self._examples.setVerticalSpacing(theme.tokens.space_tight)
        self._examples.addRow(TextLabel(theme, tr("Allows"), tone="muted"), self._example)
        self._examples.addRow(TextLabel(theme, tr("Still asks"), tone="muted"), self._against)
        self._period = ComboBox(tuple(_PERIODS))
        self._period.setAccessibleName(tr("Duration"))
        self._buttons: dict[GrantScope, QPushButton] = {
            scope: push_button(f"{REMEMBERED[scope][:1].upper()}{REMEMBERED[scope][1:]}") for scope in _SCOPES
        }
        column = QVBoxLayout(self)
        column.setContentsMargins(0, theme.tokens.space_tight, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        column.addWidget(TextLabel(theme, tr("What should always be allowed?"), bold=True, wrap=True))
        column.addLayout(self._kinds)
        column.addWidget(self._covers)
        column.addLayout(self._examples)
        column.addLayout(FlowLayout(theme.tokens.space_close, self._period, *self._buttons.values()))
        column.addWidget(
            TextLabel(theme, tr("You can revoke this in Settings → Permissions."), tone="muted", wrap=True)
        )
        self._group.idClicked.connect(self._show_offer)
        for scope, button in self._buttons.items():
            button.clicked.connect(partial(self._on_scope_clicked, scope))

    def set_offers(self, offers: tuple[GrantOffer, ...]) -> None:
        """Show these offers, the first one chosen."""
        self._offers = offers
        for button in self._group.buttons():
            self._group.removeButton(button)
            self._kinds.removeWidget(button)
            button.hide()
            button.deleteLater()
        for index, offer in enumerate(offers):
            button = OfferButton(_title(offer))
            button.setAccessibleName(f"{offer_text(offer)}. {escape_hidden_line(offer.covers)}")
            self._group.addButton(button, index)
            self._kinds.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        self._period.setCurrentIndex(0)
        if offers:
            self._group.button(0).setChecked(True)
            self._show_offer(0)

    def take_focus(self) -> None:
        for button in self._group.buttons():
            if button.isChecked():
                button.setFocus()

    def _show_offer(self, index: int) -> None:
        offer = self._offers[index]
        self._covers.setText(escape_hidden_line(offer.covers))
        for row, (label, text) in enumerate(((self._example, offer.example), (self._against, offer.not_covered))):
            label.setText(escape_hidden_line(text))
            self._examples.setRowVisible(row, bool(text))
        for scope, button in self._buttons.items():
            button.setVisible(scope in offer.scopes)
        self.resized.emit()

    def _on_scope_clicked(self, scope: GrantScope) -> None:
        self.chosen.emit(ChosenOffer(self._group.checkedId(), scope, _PERIODS[self._period.currentText()]))


def _title(offer: GrantOffer) -> str:
    """Without the ampersands that Qt would take for shortcuts."""
    return offer_text(offer).replace("&", "&&")
