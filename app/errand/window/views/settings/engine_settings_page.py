"""The settings that the engine declares: search, a control per type, validation."""

import asyncio
import math
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from errand.protocol.base import JsonValue
from errand.protocol.settings import SETTINGS_GET, SETTINGS_SET, Setting, SettingsGetParams, SettingsSetParams
from errand.translation import tr
from errand.window.theme.style import push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls, SettingsPageView
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.combo_box import ComboBox
from errand.window.widgets.labels import TextLabel
from errand.window.widgets.search_field import SearchField

_FIELD_WIDTH = 260
# Set on the page of the providers, in forms.
_ELSEWHERE = ("own_models",)


class InvalidValue(ValueError):
    """The text is not a valid value of the setting; the message says what is expected."""


def format_value(value: JsonValue) -> str:
    """Numbers without a needless `.0`."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return tr("on") if value else tr("off")
    return f"{value:g}" if isinstance(value, float) else str(value)


def parse_value(setting: Setting, text: str) -> JsonValue:
    """An empty field means the default of a number, and the empty string of a string."""
    stripped = text.strip()
    if setting.kind not in ("integer", "number"):
        return stripped
    return _number(setting, stripped) if stripped else setting.default


def _number(setting: Setting, text: str) -> float:
    try:
        value = int(text) if setting.kind == "integer" else float(text.replace(",", "."))
    except ValueError as error:
        wanted = (
            tr("Enter a whole number, such as {example}.")
            if setting.kind == "integer"
            else tr("Enter a number, such as {example}.")
        )
        raise InvalidValue(wanted.format(example=format_value(setting.default))) from error
    if not math.isfinite(value):
        raise InvalidValue(tr("Enter a number."))
    if setting.minimum is not None and value < setting.minimum:
        raise InvalidValue(tr("Must be at least {minimum}.").format(minimum=format_value(setting.minimum)))
    return value


class SettingView(QWidget):
    """`changed` gives the value entered by the user; the current value is the last one passed to `show_setting`."""

    changed = Signal(object)

    def __init__(self, theme: Theme, setting: Setting) -> None:
        super().__init__()
        self._setting = setting
        self._control = self._made_control(theme)
        self._control.setAccessibleName(tr(setting.title))
        self._control.setAccessibleDescription(tr(setting.help).replace("`", ""))
        self._reset = IconButton(theme, "undo-2", tr("Reset “{name}” to its default").format(name=tr(setting.title)))
        policy = self._reset.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self._reset.setSizePolicy(policy)
        self._problem = TextLabel(theme, tone="failed", wrap=True)
        self._problem.hide()
        self._lay_out(theme)
        self._reset.clicked.connect(self._on_reset)
        self.show_setting(setting)

    @property
    def name(self) -> str:
        return self._setting.name

    def matches(self, text: str) -> bool:
        """True if all words of a search are in its title, help or name."""
        setting = self._setting
        haystack = f"{tr(setting.title)} {tr(setting.help)} {setting.name}".casefold()
        return all(word in haystack for word in text.casefold().split())

    def show_setting(self, setting: Setting) -> None:
        self._setting = setting
        match self._control:
            case QLineEdit():
                self._control.setText(format_value(setting.value))
                self._control.setPlaceholderText(format_value(setting.default))
            case QCheckBox():
                self._control.setChecked(setting.value is True)
            case ComboBox():
                self._control.setCurrentText(format_value(setting.value))
        self._reset.setVisible(setting.value != setting.default)
        set_tool_tip(
            self._reset, tr("Reset to default ({value})").format(value=format_value(setting.default) or tr("empty"))
        )
        self._set_problem_text("")

    def take_focus(self) -> None:
        self._control.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_problem(self, text: str) -> None:
        """Show next to the field why the value was rejected; the text in the field stays."""
        self._set_problem_text(text)

    def _made_control(self, theme: Theme) -> QLineEdit | QCheckBox | ComboBox:
        if self._setting.kind == "boolean":
            check = QCheckBox(tr("On"))
            check.clicked.connect(self._on_checked)
            return check
        if self._setting.choices:
            box = ComboBox(self._setting.choices)
            box.setFixedWidth(theme.pixels(_FIELD_WIDTH))
            box.textActivated.connect(self._change)
            return box
        line = QLineEdit()
        line.setFixedWidth(theme.pixels(_FIELD_WIDTH))
        line.editingFinished.connect(partial(self._on_edited, line))
        return line

    def _lay_out(self, theme: Theme) -> None:
        tokens = theme.tokens
        words = QVBoxLayout()
        words.setSpacing(2)
        words.addWidget(TextLabel(theme, tr(self._setting.title), bold=True))
        words.addWidget(TextLabel(theme, tr(self._setting.help).replace("`", ""), tone="muted", wrap=True))
        words.addWidget(self._problem)
        words.addStretch()
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(tokens.space_close)
        row.addLayout(words, 1)
        row.addSpacing(tokens.space_wide)
        for control in (self._control, self._reset):
            row.addWidget(control, 0, Qt.AlignmentFlag.AlignTop)  # beside the label, however high the row is
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)

    def _set_problem_text(self, problem: str) -> None:
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))
        set_style(self._control, "state", "wrong" if problem else "")

    def _change(self, value: JsonValue) -> None:
        if value != self._setting.value:
            self.changed.emit(value)
        else:
            self._set_problem_text("")

    def _on_edited(self, line: QLineEdit) -> None:
        try:
            value = parse_value(self._setting, line.text())
        except InvalidValue as error:
            self._set_problem_text(str(error))
        else:
            self._change(value)

    def _on_checked(self, checked: bool) -> None:
        self._change(checked)

    def _on_reset(self) -> None:
        self._change(self._setting.default)


class EngineSettingsPageView(SettingsPageView):
    """Shows only values confirmed by the engine; sends a value when its field loses focus or on Enter."""

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme, tr("General"), tr("Applies to new tasks."))
        self._calls = calls
        self._wanted = ""
        self._fields: dict[str, SettingView] = {}
        self._lock = asyncio.Lock()  # the engine may process two concurrent changes in either order
        self._settings: tuple[Setting, ...] = ()
        self._searched = ""
        self._advanced = push_button(tr("Advanced"), "quiet")
        self._advanced.setCheckable(True)
        self._search = SearchField(theme, tr("Search settings"))
        self._empty = TextLabel(theme, tr("No results"), tone="muted")
        self._empty.hide()
        self.top.addWidget(self._search)
        self.rows.addWidget(self._empty)
        self.rows.addWidget(self._advanced, 0, Qt.AlignmentFlag.AlignLeft)
        self._search.searched.connect(self._on_searched)
        self._advanced.toggled.connect(self._show_fields)
        theme.changed.connect(self._show_chevron)
        self._show_chevron()

    @property
    def is_loaded(self) -> bool:
        """True once it shows what the engine has told."""
        return bool(self._fields)

    def load(self) -> None:
        self._calls.spawn(self._load(), self.show_failure)

    def reset(self) -> None:
        self._search.clear()
        self._advanced.setChecked(False)

    def go_to(self, name: str) -> None:
        """Scroll to a setting and focus it, now or once it is loaded."""
        self._search.clear()
        known = next((setting for setting in self._settings if setting.name == name), None)
        self._wanted = name if known is None else ""
        if known is not None:
            if known.advanced:
                self._advanced.setChecked(True)
            field = self._fields[name]
            self.bring_into_view(field)
            field.take_focus()

    async def _load(self) -> None:
        self._show((await self._calls.call(SETTINGS_GET, SettingsGetParams())).settings)

    def _show(self, settings: tuple[Setting, ...]) -> None:
        self._settings = tuple(setting for setting in settings if setting.name not in _ELSEWHERE)
        for setting in self._settings:
            if setting.name in self._fields:
                self._fields[setting.name].show_setting(setting)
        self._show_fields()
        if self._wanted:
            self.go_to(self._wanted)

    def _show_fields(self) -> None:
        """The everyday ones and, on request, the others below; with a search those that match.

        Each is made when it is first shown.
        """
        text, is_open = self._searched, self._advanced.isChecked()
        found = False
        for setting in self._settings:
            if not setting.advanced or is_open or text:
                field = self._fields.get(setting.name) or self._made_field(setting)
                field.setVisible(field.matches(text))
                found = found or field.matches(text)
            elif setting.name in self._fields:
                self._fields[setting.name].hide()
        self._empty.setVisible(bool(text) and not found)
        self._advanced.setVisible(not text and bool(self._settings))
        self._show_chevron()

    def _show_chevron(self) -> None:
        icon = "chevron-down" if self._advanced.isChecked() else "chevron-right"
        self._advanced.setIcon(self.theme.icon(icon, "muted"))

    def _made_field(self, setting: Setting) -> SettingView:
        field = SettingView(self.theme, setting)
        field.changed.connect(partial(self._on_changed, setting.name))
        self._fields[setting.name] = field
        if setting.advanced:
            self.rows.addWidget(field)
        else:
            self.rows.insertWidget(self.rows.indexOf(self._advanced), field)
        return field

    async def _set(self, name: str, value: JsonValue) -> None:
        async with self._lock:
            result = await self._calls.call(SETTINGS_SET, SettingsSetParams(name=name, value=value))
        for setting in result.settings:
            if setting.name == name:  # the other fields may contain text being typed
                self._fields[name].show_setting(setting)

    def _on_changed(self, name: str, value: JsonValue) -> None:
        self._calls.spawn(self._set(name, value), self._fields[name].show_problem)

    def _on_searched(self, text: str) -> None:
        self._searched = text
        self._show_fields()
