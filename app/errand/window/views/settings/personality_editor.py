"""The form of one personality: name, colour, prompt, model, tools, thinking, temperature."""

from functools import partial
from itertools import pairwise
from typing import get_args

import msgspec
from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtWidgets import QCheckBox, QPlainTextEdit, QWidget

from errand.client.texts.limits import number_of
from errand.client.texts.task_options import THINKING_LEVELS
from errand.protocol.agents import READING, Color, Personality, ThinkingLevel
from errand.text.translation import decimal, tr
from errand.window.stores.catalog import ModelStore
from errand.window.theme.style import check_box, push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.settings.model_field import ModelField
from errand.window.widgets.agent_dot import COLOR_NAMES, paint_agent_dot
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_vbox
from errand.window.widgets.buttons import IconButton
from errand.window.widgets.containers import FlowLayout, clear_layout
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.forms.form import form, line_edit
from errand.window.widgets.labels import TextLabel

_COLORS: tuple[Color, ...] = get_args(Color)

_OWN = tr("Model default")
_TENTHS = 21
_HELP = tr("Low is precise, high is creative. Thinking models use their own.")

_LEVELS: tuple[ThinkingLevel, ...] = get_args(ThinkingLevel)
_PROMPT_HEIGHT = 180
_PROMPT_HINT = tr("Describe the agent and how it works. Leave empty for the default prompt.")


class ColorComboBox(ComboBox):
    def __init__(self, theme: Theme) -> None:
        super().__init__(tuple(COLOR_NAMES[color] for color in _COLORS))
        self._theme = theme
        self.setAccessibleName(tr("Colour"))
        side = theme.tokens.icon_small
        self.setIconSize(QSize(side, side))
        theme.changed.connect(self._paint)
        self._paint()

    @property
    def color(self) -> Color:
        return _COLORS[self.currentIndex()]

    def choose(self, color: Color) -> None:
        self.setCurrentIndex(_COLORS.index(color))

    def _paint(self) -> None:
        for index, color in enumerate(_COLORS):
            if color:
                self.setItemIcon(index, self._icon(color))

    def _icon(self, color: Color) -> QIcon:
        side, ratio = self._theme.tokens.icon_small, self.devicePixelRatioF()
        picture = QPixmap(round(side * ratio), round(side * ratio))
        picture.setDevicePixelRatio(ratio)
        picture.fill(Qt.GlobalColor.transparent)
        painter = QPainter(picture)
        paint_agent_dot(painter, QRectF(0, 0, side, side), color, self._theme)
        painter.end()
        return QIcon(picture)


class TemperatureComboBox(ComboBox):
    def __init__(self) -> None:
        super().__init__((_OWN, *(_degree(tenth / 10) for tenth in range(_TENTHS))))
        self.setAccessibleName(tr("Temperature"))
        set_tool_tip(self, _HELP)

    @property
    def temperature(self) -> float | None:
        return number_of(self.currentText()) if self.currentIndex() else None

    def choose(self, temperature: float | None) -> None:
        """Add an item for a temperature between the tenths, which can come from a file."""
        text = _OWN if temperature is None else _degree(temperature)
        if self.findText(text) < 0:
            self.addItem(text)
        self.setCurrentText(text)


def _degree(temperature: float) -> str:
    return decimal(f"{temperature:g}")


def _tool_label(name: str) -> str:
    return tr("{name} (reads only)").format(name=name.removesuffix(READING)) if name.endswith(READING) else name


class PersonalityEditorView(QWidget):
    """`save_requested` and `exported` give the personality in the fields; `back_requested` leads to the list,
    `providers_requested` to the page where models are set up.
    """

    save_requested = Signal(object)
    back_requested = Signal()
    deleted = Signal()
    exported = Signal(object)
    providers_requested = Signal()

    def __init__(self, theme: Theme, models: ModelStore) -> None:
        super().__init__()
        self._theme = theme
        self._base = Personality(id="", name="", system_prompt="")
        self._shipped: Personality | None = None
        self._is_new = False
        self._name = line_edit(tr("Name"), max_length=100)
        self._prompt = QPlainTextEdit()
        self._chosen_model = ""
        self._model = ModelField(theme, models, tr("Model"), tr("Default model"), has_default=True)
        self._default_model = IconButton(theme, "x", tr("Use the default model"))
        self._thinking = ComboBox(tuple(THINKING_LEVELS[level] for level in _LEVELS))
        self._color = ColorComboBox(theme)
        self._temperature = TemperatureComboBox()
        self._tools: dict[str, QCheckBox] = {}
        self._tool_row = FlowLayout(theme.tokens.space_close)
        self.problem = TextLabel(theme, tone="failed", wrap=True)
        self._save = push_button(tr("Save"), "primary")
        self._back = push_button(tr("Back"))
        self._restore = push_button(tr("Restore original"))
        self._export = push_button(tr("Export…"))
        self._delete = push_button(tr("Delete…"))
        self._question = TextLabel(theme, wrap=True)
        self._yes = push_button("", "danger")
        self._no = push_button("")
        self._pending_question = ""
        self._name_fields()
        self._lay_out()
        self._connect()

    def edit(
        self, personality: Personality, shipped: Personality | None, tools: tuple[str, ...], *, is_new: bool = False
    ) -> None:
        """Start editing this one; `shipped` is its original if it ships with Errand."""
        self._base, self._shipped, self._is_new = personality, shipped, is_new
        self._show_tools(tools)
        self._fill(personality)
        self._delete.setVisible(shipped is None and not is_new)
        self._export.setVisible(not is_new)
        self._ask_to_confirm("")
        self.problem.show_text("")
        self._name.setFocus(Qt.FocusReason.OtherFocusReason)
        self._name.selectAll()

    def _name_fields(self) -> None:
        tokens = self._theme.tokens
        self._prompt.setAccessibleName(tr("System prompt"))
        self._prompt.setPlaceholderText(_PROMPT_HINT)
        self._prompt.setTabChangesFocus(True)
        set_style(self._prompt, "look", "field")
        self._prompt.setMinimumHeight(_PROMPT_HEIGHT)
        self._prompt.setFont(self._theme.font(tokens.size_base, mono=True))
        self._thinking.setAccessibleName(tr("Thinking level"))

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        space = tokens.space_close
        fields = form(
            self._theme,
            (tr("Name"), self._name),
            (tr("Colour"), self._color),
            (tr("Prompt"), self._prompt),
            (tr("Model"), hbox(fill(self._model), self._default_model, spacing=0)),
            (tr("Tools"), self._tool_row),
            (tr("Thinking level"), self._thinking),
            (tr("Temperature"), self._temperature),
            spacing=tokens.space_normal,
        )
        left, right = (self._save, self._back), (self._restore, self._export, self._delete)
        set_vbox(
            self,
            fields,
            self.problem,
            hbox(*left, STRETCH, *right, spacing=space),
            hbox(fill(self._question), self._yes, self._no, spacing=space),
            spacing=tokens.space_normal,
        )

    def _connect(self) -> None:
        self._name.textChanged.connect(self._on_changed)
        self._prompt.textChanged.connect(self._on_changed)
        self._model.chosen.connect(self._show_model)
        self._model.providers_requested.connect(self.providers_requested)
        self._default_model.clicked.connect(lambda: self._show_model(""))
        self._thinking.currentIndexChanged.connect(self._on_changed)
        self._color.currentIndexChanged.connect(self._on_changed)
        self._temperature.currentIndexChanged.connect(self._on_changed)
        self._save.clicked.connect(self._on_saved)
        self._back.clicked.connect(self._on_back)
        self._restore.clicked.connect(self._on_restored)
        self._export.clicked.connect(self._on_exported)
        self._delete.clicked.connect(self._on_delete_clicked)
        self._yes.clicked.connect(self._on_yes)
        self._no.clicked.connect(self._on_no)

    def _fill(self, personality: Personality) -> None:
        self._name.setText(personality.name)
        self._prompt.setPlainText(personality.system_prompt)
        self._show_model(personality.model)
        self._thinking.setCurrentIndex(_LEVELS.index(personality.thinking_level))
        self._color.choose(personality.color)
        self._temperature.choose(personality.temperature)
        for name, box in self._tools.items():
            has_all = not personality.tools and not name.endswith(READING)
            box.setChecked(has_all or name in personality.tools)
        self._on_changed()

    def _show_model(self, model: str) -> None:
        self._chosen_model = model
        self._model.show_model(model)
        self._default_model.setVisible(bool(model))
        self._on_changed()

    def _show_tools(self, tools: tuple[str, ...]) -> None:
        clear_layout(self._tool_row)
        self._tools = {}
        for name in tools:
            label = _tool_label(name)
            box = self._tools[name] = check_box(label)
            box.setAccessibleName(tr("Tool: {name}").format(name=label))
            box.toggled.connect(partial(self._on_tool_toggled, name))
            self._tool_row.addWidget(box)
        stops = (self._model, self._default_model, *self._tools.values(), self._thinking)
        for before, after in pairwise(stops):
            QWidget.setTabOrder(before, after)

    def _entered(self) -> Personality:
        """Return the personality in the fields.

        Selecting all tools is stored as an empty list, to include future tools. Those of servers stay, without a box.
        """
        chosen = tuple(name for name, box in self._tools.items() if box.isChecked())
        every = {name for name in self._tools if not name.endswith(READING)}
        without_box = tuple(name for name in self._base.tools if name not in self._tools)
        return msgspec.structs.replace(
            self._base,
            name=self._name.text().strip(),
            system_prompt=self._prompt.toPlainText(),
            model=self._chosen_model,
            tools=() if every <= {*chosen} else (*chosen, *without_box),
            thinking_level=_LEVELS[self._thinking.currentIndex()],
            color=self._color.color,
            temperature=self._temperature.temperature,
        )

    def _ask_to_confirm(self, what: str, question: str = "", yes: str = "", no: str = "") -> None:
        self._pending_question = what
        self._question.setText(question)
        self._yes.setText(yes)
        self._yes.setAccessibleName(yes)
        self._no.setText(no)
        self._no.setAccessibleName(no)
        for widget in (self._question, self._yes, self._no):
            widget.setVisible(bool(what))
        if what:
            self._no.setFocus()

    def _on_changed(self) -> None:
        now = self._entered()
        without_tools = bool(self._tools) and not any(box.isChecked() for box in self._tools.values())
        self._save.setEnabled(bool(now.name) and not without_tools and (self._is_new or now != self._base))
        self._restore.setVisible(self._shipped is not None and now != self._shipped)
        self.problem.show_text(tr("Choose at least one tool.") if without_tools else "")

    def _on_tool_toggled(self, name: str, is_on: bool) -> None:
        """Uncheck the other form of a tool: one that only reads, or the whole tool."""
        other = name.removesuffix(READING) if name.endswith(READING) else f"{name}{READING}"
        if is_on and other in self._tools:
            self._tools[other].setChecked(False)
        self._on_changed()

    def _on_saved(self) -> None:
        self.save_requested.emit(self._entered())

    def _on_back(self) -> None:
        if self._entered() == self._base:
            self.back_requested.emit()
        else:
            self._ask_to_confirm("leave", tr("Discard unsaved changes?"), tr("Discard changes"), tr("Keep editing"))

    def _on_restored(self) -> None:
        if self._shipped is not None:
            self._fill(self._shipped)

    def _on_exported(self) -> None:
        self.exported.emit(self._entered())

    def _on_delete_clicked(self) -> None:
        question = tr("Delete “{name}”? Agents using it continue as Assistant.").format(name=self._base.name)
        self._ask_to_confirm("delete", question, tr("Delete"), tr("Cancel"))

    def _on_yes(self) -> None:
        asked = self._pending_question
        self._ask_to_confirm("")
        if asked == "delete":
            self.deleted.emit()
        else:
            self.back_requested.emit()

    def _on_no(self) -> None:
        self._ask_to_confirm("")
        self._name.setFocus()
