"""The settings that the engine declares: search, a control per type, validation."""

import asyncio
import math
import time
from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtWidgets import QCheckBox, QHBoxLayout, QLineEdit, QSizePolicy, QVBoxLayout, QWidget

from errand.client.texts.model_settings import MODEL_SETTINGS
from errand.protocol.base import JsonValue
from errand.protocol.settings import SETTINGS_GET, SETTINGS_SET, Setting, SettingsGetParams, SettingsSetParams
from errand.text.translation import tr
from errand.window.stores.catalog import ModelStore
from errand.window.theme.style import check_box, push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.model_field import ModelField
from errand.window.views.settings.model_list_field import ModelListField
from errand.window.views.settings.page import EngineCalls, SettingsPageView
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.forms.search_field import SearchField
from errand.window.widgets.labels import TextLabel

_FIELD_WIDTH = 260
_BUTTON_EDGE = 4  # padding and border of an icon button
_MADE_AT_ONCE = 8  # as many as can be seen
_SLICE_S = 0.008
# Set on the page of the providers, in forms.
_ELSEWHERE = ("own_models",)
# A setting that names several models.
_MODEL_LIST = "fallback_models"


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
    """Parse the text of a field; an empty one means the default of a number, and the empty string of a string."""
    stripped = text.strip()
    if setting.kind not in ("integer", "number"):
        return stripped
    return _number(setting, stripped) if stripped else setting.default


def _number(setting: Setting, text: str) -> float:
    try:
        value = int(text) if setting.kind == "integer" else float(text.replace(",", "."))
    except ValueError as error:
        expectation = (
            tr("Enter a whole number, such as {example}.")
            if setting.kind == "integer"
            else tr("Enter a number, such as {example}.")
        )
        raise InvalidValue(expectation.format(example=format_value(setting.default))) from error
    if not math.isfinite(value):
        raise InvalidValue(tr("Enter a number."))
    if setting.minimum is not None and value < setting.minimum:
        raise InvalidValue(tr("Must be at least {minimum}.").format(minimum=format_value(setting.minimum)))
    return value


def matches(setting: Setting, text: str) -> bool:
    """Return True if all words of a search are in its title, help or name."""
    haystack = f"{tr(setting.title)} {tr(setting.help)} {setting.name}".casefold()
    return all(word in haystack for word in text.casefold().split())


class SettingView(QWidget):
    """`changed` gives the value entered by the user; the current value is the last one passed to `show_setting`.

    `providers_requested` asks for the page where models are set up.
    """

    changed = Signal(object)
    providers_requested = Signal()

    def __init__(self, theme: Theme, setting: Setting, models: ModelStore) -> None:
        super().__init__()
        self._setting = setting
        self._models = models
        self._control = self._made_control(theme)
        if not isinstance(self._control, ModelField | ModelListField):  # they say their value too
            self._control.setAccessibleName(tr(setting.title))
        self._control.setAccessibleDescription(tr(setting.help).replace("`", ""))
        self._theme = theme
        self._row, self._words = QHBoxLayout(self), QVBoxLayout()
        self._reset: IconButton | None = None
        self._problem: TextLabel | None = None
        self._lay_out(theme)
        self.show_setting(setting)

    @property
    def name(self) -> str:
        return self._setting.name

    def show_setting(self, setting: Setting) -> None:
        self._setting = setting
        match self._control:
            case ModelField():
                self._control.show_model(format_value(setting.value))
            case ModelListField():
                self._control.show_models(format_value(setting.value))
            case QLineEdit():
                self._control.setText(format_value(setting.value))
                self._control.setPlaceholderText(format_value(setting.default))
            case QCheckBox():
                self._control.setChecked(setting.value is True)
            case ComboBox():
                self._control.setCurrentText(format_value(setting.value))
        self._show_reset()
        self._set_problem_text("")

    def take_focus(self) -> None:
        self._control.setFocus(Qt.FocusReason.OtherFocusReason)

    def show_problem(self, text: str) -> None:
        """Show next to the field why the value was rejected; the text in the field stays."""
        self._set_problem_text(text)

    def _made_control(self, theme: Theme) -> QLineEdit | QCheckBox | ComboBox | ModelField | ModelListField:
        if self._setting.name == _MODEL_LIST:
            several = ModelListField(theme, self._models, tr(self._setting.title))
            several.setFixedWidth(theme.pixels(_FIELD_WIDTH))
            several.chosen.connect(self._change)
            several.providers_requested.connect(self.providers_requested)
            return several
        if self._setting.name in MODEL_SETTINGS:
            unset, has_default = MODEL_SETTINGS[self._setting.name]
            model = ModelField(theme, self._models, tr(self._setting.title), unset, has_default=has_default)
            model.setFixedWidth(theme.pixels(_FIELD_WIDTH))
            model.chosen.connect(self._change)
            model.providers_requested.connect(self.providers_requested)
            return model
        if self._setting.kind == "boolean":
            check = check_box(tr("On"))
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
        tokens, texts, row = theme.tokens, self._words, self._row
        texts.setSpacing(2)
        texts.addWidget(TextLabel(theme, tr(self._setting.title), bold=True))
        texts.addWidget(TextLabel(theme, tr(self._setting.help).replace("`", ""), tone="muted", wrap=True))
        texts.addStretch()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(tokens.space_close)
        row.addLayout(texts, 1)
        row.addSpacing(tokens.space_wide)
        row.addWidget(self._control, 0, Qt.AlignmentFlag.AlignTop)  # beside the label, however high the row is
        row.addSpacing(tokens.space_close + self._reset_width)  # the place of the reset button
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)

    @property
    def _reset_width(self) -> int:
        return self._theme.tokens.icon_small + 2 * self._theme.pixels(_BUTTON_EDGE)

    def _show_reset(self) -> None:
        """The button is made when it is first needed, as is the label of a problem: most fields never have either."""
        setting = self._setting
        is_default = setting.value == setting.default
        if self._reset is None and not is_default:
            name = tr("Reset “{name}” to its default").format(name=tr(setting.title))
            self._reset = IconButton(self._theme, "undo-2", name)
            policy = self._reset.sizePolicy()
            policy.setRetainSizeWhenHidden(True)
            self._reset.setSizePolicy(policy)
            self._reset.setFixedWidth(self._reset_width)
            default = format_value(setting.default) or tr("empty")
            set_tool_tip(self._reset, tr("Reset to default ({value})").format(value=default))
            self._reset.clicked.connect(self._on_reset)
            self._row.takeAt(self._row.count() - 1)
            self._row.addWidget(self._reset, 0, Qt.AlignmentFlag.AlignTop)
        if self._reset is not None:
            self._reset.setVisible(not is_default)

    def _set_problem_text(self, problem: str) -> None:
        if self._problem is None and problem:
            self._problem = TextLabel(self._theme, tone="failed", wrap=True)
            self._words.insertWidget(self._words.count() - 1, self._problem)
        if self._problem is not None:
            self._problem.show_text(problem)
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
    """Shows only values confirmed by the engine; sends a value when its field loses focus or on Enter.

    `models_changed` says that another default model was set, `providers_requested` asks for the page of providers.
    """

    models_changed = Signal()
    providers_requested = Signal()

    def __init__(self, theme: Theme, calls: EngineCalls, models: ModelStore) -> None:
        super().__init__(theme, tr("General"), tr("Applies to new tasks."))
        self._calls = calls
        self._models = models
        self._wanted = ""
        self._fields: dict[str, SettingView] = {}
        self._lock = asyncio.Lock()  # the engine may process two concurrent changes in either order
        self._settings: tuple[Setting, ...] = ()
        self._searched = ""
        self._unmade: list[Setting] = []
        self._slices = QTimer(self, interval=0)
        self._slices.timeout.connect(self._make_more)
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
        declared = next((setting for setting in self._settings if setting.name == name), None)
        self._wanted = name if declared is None else ""
        if declared is not None:
            if declared.advanced:
                self._advanced.setChecked(True)
            if name not in self._fields:
                self._make_field(declared)
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

        Each is made when it is first shown: those that can be seen at once, the others when there is time.
        """
        text, is_open = self._searched, self._advanced.isChecked()
        matching = {
            setting.name: setting
            for setting in self._settings
            if (text or is_open or not setting.advanced) and matches(setting, text)
        }
        for name, field in self._fields.items():
            field.setVisible(name in matching)
        unmade = [setting for name, setting in matching.items() if name not in self._fields]
        self._unmade = unmade[_MADE_AT_ONCE:]
        for setting in unmade[:_MADE_AT_ONCE]:
            self._make_field(setting)
        if self._unmade:
            self._slices.start()
        self._empty.setVisible(bool(text) and not matching)
        self._advanced.setVisible(not text and bool(self._settings))
        self._show_chevron()

    def _make_more(self) -> None:
        started = time.perf_counter()
        while self._unmade and time.perf_counter() - started < _SLICE_S:
            setting = self._unmade.pop(0)
            if setting.name not in self._fields:
                self._make_field(setting)
        if not self._unmade:
            self._slices.stop()

    def _show_chevron(self) -> None:
        icon = "chevron-down" if self._advanced.isChecked() else "chevron-right"
        self._advanced.setIcon(self.theme.icon(icon, "muted"))

    def _make_field(self, setting: Setting) -> None:
        """Insert the field in the engine's order: everyday settings above the button, others below it."""
        above = self._settings[: self._settings.index(setting)]
        fields_above = sum(other.name in self._fields and other.advanced == setting.advanced for other in above)
        first = self.rows.indexOf(self._advanced if setting.advanced else self._empty) + 1
        field = self._fields[setting.name] = SettingView(self.theme, setting, self._models)
        field.changed.connect(partial(self._on_changed, setting.name))
        field.providers_requested.connect(self.providers_requested)
        self.rows.insertWidget(first + fields_above, field)

    async def _set(self, name: str, value: JsonValue) -> None:
        async with self._lock:
            result = await self._calls.call(SETTINGS_SET, SettingsSetParams(name=name, value=value))
        for setting in result.settings:
            if setting.name == name:  # the other fields may contain text being typed
                self._fields[name].show_setting(setting)
        if name in MODEL_SETTINGS:
            self.models_changed.emit()

    def _on_changed(self, name: str, value: JsonValue) -> None:
        self._calls.spawn(self._set(name, value), self._fields[name].show_problem)

    def _on_searched(self, text: str) -> None:
        self._searched = text
        self._show_fields()
