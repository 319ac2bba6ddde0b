"""One declared setting: its title, what it does, a control for its kind, and what is wrong with a value."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.protocol.json import JsonValue
from app.protocol.settings import Setting
from app.window.theme.look import set_look, set_tip
from app.window.theme.theme import Theme
from app.window.views.settings.choice_box import ChoiceBox
from app.window.views.settings.setting_text import NotAValue, text_of, value_of
from app.window.widgets.icon_button import IconButton
from app.window.widgets.text_label import TextLabel

_FIELD_WIDTH = 260


class SettingField(QWidget):
    """`changed` comes with the value a person gave; what is in force is what `show_setting` was told last."""

    changed = Signal(object)

    def __init__(self, theme: Theme, setting: Setting) -> None:
        super().__init__()
        self._setting = setting
        self._line = QLineEdit()
        self._line.setFixedWidth(_FIELD_WIDTH)
        self._check = QCheckBox("On")
        self._box = ChoiceBox(setting.choices)
        self._box.setFixedWidth(_FIELD_WIDTH)
        own: QWidget = self._box if setting.choices else self._check if setting.kind == "boolean" else self._line
        for control in (self._line, self._check, self._box):
            control.setAccessibleName(setting.title)
            control.setAccessibleDescription(setting.help.replace("`", ""))
            if control is not own:
                control.hide()
        self._own = own
        self._reset = IconButton(theme, "undo-2", f"Back to the default of {setting.title}")
        policy = self._reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(policy)
        self._problem = TextLabel(theme, tone="failed", wrap=True)
        self._problem.hide()
        self._lay_out(theme)
        self._line.editingFinished.connect(self._on_edited)
        self._check.clicked.connect(self._on_checked)
        self._box.textActivated.connect(self._change)
        self._reset.clicked.connect(self._on_reset)
        self.show_setting(setting)

    @property
    def name(self) -> str:
        return self._setting.name

    def matches(self, text: str) -> bool:
        """True if all words of a search are in its title, help or name."""
        setting = self._setting
        haystack = f"{setting.title} {setting.help} {setting.name}".casefold()
        return all(word in haystack for word in text.casefold().split())

    def show_setting(self, setting: Setting) -> None:
        self._setting = setting
        self._line.setText(text_of(setting.value))
        self._line.setPlaceholderText(text_of(setting.default))
        self._check.setChecked(setting.value is True)
        self._box.setCurrentText(text_of(setting.value))
        self._reset.setVisible(setting.value != setting.default)
        set_tip(self._reset, f"Back to the default ({text_of(setting.default) or 'empty'})")
        self._tell("")

    def take_focus(self) -> None:
        self._own.setFocus(Qt.FocusReason.OtherFocusReason)

    def tell_problem(self, text: str) -> None:
        """Say beside the field why the value was refused; what was typed stays."""
        self._tell(text)

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(TextLabel(theme, self._setting.title, bold=True))
        words.addWidget(TextLabel(theme, self._setting.help.replace("`", ""), tone="muted", wrap=True))
        words.addWidget(self._problem)
        words.addStretch()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(tokens.space_close)
        row.addLayout(words, 1)
        row.addSpacing(tokens.space_wide)
        row.addWidget(self._line)
        row.addWidget(self._check)
        row.addWidget(self._box)
        row.addWidget(self._reset)

    def _tell(self, problem: str) -> None:
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        set_look(self._line, "state", "wrong" if problem else "")

    def _change(self, value: JsonValue) -> None:
        if value != self._setting.value:
            self.changed.emit(value)
        else:
            self._tell("")

    def _on_edited(self) -> None:
        try:
            value = value_of(self._setting, self._line.text())
        except NotAValue as error:
            self._tell(str(error))
        else:
            self._change(value)

    def _on_checked(self, checked: bool) -> None:
        self._change(checked)

    def _on_reset(self) -> None:
        self._change(self._setting.default)
