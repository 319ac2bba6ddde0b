"""Forms: fields with their labels, one below the other, and a dialog around them."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QFormLayout, QLayout, QLineEdit, QWidget

from errand.text.translation import tr
from errand.window.theme.style import Tone, push_button
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, BoxItem, hbox, set_vbox
from errand.window.widgets.labels import TextLabel


def form(
    theme: Theme,
    *rows: tuple[str, QWidget | QLayout],
    spacing: int = 0,
    column_spacing: int = 0,
    label_tone: Tone = "text",
) -> QFormLayout:
    """Return rows with a label at the left and a field at the right; `spacing` is the one between rows."""
    layout = QFormLayout()
    layout.setContentsMargins(0, 0, 0, 0)
    layout.setHorizontalSpacing(column_spacing or theme.tokens.space_wide)
    layout.setVerticalSpacing(spacing or theme.tokens.space_close)
    for name, field in rows:
        label = TextLabel(theme, name, tone=label_tone)
        if isinstance(field, QWidget):
            layout.addRow(label, field)
        else:
            layout.addRow(label, field)
    return layout


def line_edit(name: str, placeholder: str = "", *, text: str = "", max_length: int | None = None) -> QLineEdit:
    """Return a field for one line. Screen readers say `name`."""
    field = QLineEdit(text)
    field.setAccessibleName(name)
    field.setPlaceholderText(placeholder)
    if max_length is not None:
        field.setMaxLength(max_length)
    return field


class FormDialog(QDialog):
    """A dialog with fields, and below them Cancel and `confirm`, whose click the subclass connects."""

    def __init__(self, theme: Theme, title: str, confirm: str, parent: QWidget) -> None:
        super().__init__(parent)
        self.theme = theme
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setMinimumWidth(theme.tokens.column // 2)
        self.confirm = push_button(confirm, "primary")

    def lay_out(self, *parts: BoxItem) -> None:
        """Place the parts of the dialog below each other, above its buttons."""
        tokens = self.theme.tokens
        cancel = push_button(tr("Cancel"))
        cancel.clicked.connect(self.reject)
        set_vbox(
            self,
            *parts,
            hbox(STRETCH, cancel, self.confirm),
            spacing=tokens.space_wide,
            margins=(tokens.space_far, tokens.space_wide, tokens.space_far, tokens.space_wide),
        )
