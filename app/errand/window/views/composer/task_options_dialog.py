"""All options of the next task in one panel, each with its label and explanation."""

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QComboBox, QLineEdit, QWidget

from errand.client.texts.limits import number_of
from errand.client.texts.task_options import THINKING_LEVELS
from errand.protocol.agents import ThinkingLevel
from errand.protocol.tasks.groups import NetworkMode, TaskMode
from errand.text.translation import tr
from errand.window.stores.model_choice import model_name
from errand.window.stores.task_options import DEFAULT, TaskOptionDefaults, TaskOptions
from errand.window.theme.style import plain_tool_tip, push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.widgets.boxes import STRETCH, hbox, set_vbox, vbox
from errand.window.widgets.dialogs import FramelessDialog, move_on_screen
from errand.window.widgets.forms.form import form
from errand.window.widgets.labels import ElidedLabel, TextLabel

MODES: dict[TaskMode, tuple[str, str]] = {
    "auto": (tr("Auto"), tr("Ends with a reply that uses no tools, or when the agent says it's done.")),
    "task": (tr("Task"), tr("Continues until the agent says the job is complete.")),
    "chat": (tr("Chat"), tr("Ends with each reply. The agent can still use tools.")),
}
NETWORKS: dict[NetworkMode, tuple[str, str]] = {
    "asked": (tr("Network: ask"), tr("Commands can use the network when you allow it.")),
    "off": (tr("Network: off"), tr("Commands can't use the network.")),
    "on": (tr("Network: on"), tr("Commands can use the network, except private addresses.")),
}


class TaskOptionsDialog(FramelessDialog):
    """Emits `changed` with the new `TaskOptions` on each change."""

    changed = Signal(object)
    choose_model_requested = Signal()
    ask_models_requested = Signal()
    add_agent_requested = Signal()

    def __init__(self, theme: Theme, defaults: TaskOptionDefaults, options: TaskOptions, parent: QWidget) -> None:
        super().__init__(theme, Qt.WindowType.Popup, parent)
        self.setAccessibleName(tr("Options for the next task"))
        self.setWindowTitle(tr("Options for the next task"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._theme = theme
        self._defaults = defaults
        self._options = options
        self.personality = _box(
            tr("Personality"), self._personalities(), options.personality_id or defaults.personality_id
        )
        self.mode = _box(tr("Mode"), [(mode, name, about) for mode, (name, about) in MODES.items()], options.mode)
        self.network = _box(
            tr("Network"), [(network, name, about) for network, (name, about) in NETWORKS.items()], options.network
        )
        self.thinking = _box(tr("Thinking level"), self._levels(), options.thinking_level or "")
        self.model = push_button(defaults.model_of(options) or tr("Set up a model"))
        self.budget = QLineEdit(f"{options.budget_usd:g}" if options.budget_usd is not None else "")
        self._mode_about = TextLabel(theme, size=theme.tokens.size_small, tone="muted", wrap=True)
        self._network_about = TextLabel(theme, size=theme.tokens.size_small, tone="muted", wrap=True)
        self.several = push_button(tr("Ask several models…"))
        self.agent = push_button(tr("Add agent…"))
        self.agent.setVisible(bool(defaults.agent))  # a new conversation has no agent to add another one to
        self._lay_out()
        self._connect()
        self._show_meanings()

    @property
    def options(self) -> TaskOptions:
        return self._options

    def open_above(self, button: QWidget) -> None:
        """Open with the lower edge above the button, inside the window."""
        space, window = self._theme.tokens.space_close, button.window()
        self.setFixedWidth(min(self._theme.tokens.column * 5 // 9, window.width() - 2 * space))
        self.adjustSize()
        corner = button.mapTo(window, QPoint(0, -self.height() - space))
        corner.setX(min(corner.x(), window.width() - self.width() - space))
        move_on_screen(self, window.mapToGlobal(corner))
        self.show()
        self._fit()  # the fonts of its parts are known only now
        self.personality.setFocus()

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self.model.setAccessibleName(tr("Model: {model}").format(model=self.model.text()))
        self.budget.setAccessibleName(tr("Budget in dollars"))
        self.budget.setPlaceholderText(tr("No limit"))
        set_tool_tip(self.budget, tr("The task pauses and asks when it has cost this much"))
        folder = ElidedLabel(self._theme, self._options.workspace or tr("Scratch folder"))
        fields = form(
            self._theme,
            (tr("Personality"), self.personality),
            (tr("Model"), self.model),
            (tr("Thinking level"), self.thinking),
            (tr("Mode"), vbox(self.mode, self._mode_about, spacing=tokens.space_tight)),
            (tr("Network"), vbox(self.network, self._network_about, spacing=tokens.space_tight)),
            (tr("Budget ($)"), self.budget),
            (tr("Folder"), folder),
        )
        space = tokens.space_wide
        set_vbox(
            self,
            TextLabel(self._theme, tr("Next task"), bold=True),
            fields,
            hbox(self.several, self.agent, STRETCH, spacing=tokens.space_close),
            spacing=tokens.space_normal,
            margins=(space, space, space, space),
        )

    def _connect(self) -> None:
        self.personality.activated.connect(self._on_personality_chosen)
        self.mode.activated.connect(self._on_mode_chosen)
        self.network.activated.connect(self._on_network_chosen)
        self.thinking.activated.connect(self._on_thinking_chosen)
        self.model.clicked.connect(self._on_model_clicked)
        self.budget.textChanged.connect(self._on_budget_changed)
        self.several.clicked.connect(self._on_several_clicked)
        self.agent.clicked.connect(self._on_agent_clicked)

    def _personalities(self) -> list[tuple[str, str, str]]:
        personalities = [(each.id, each.name, each.system_prompt[:300]) for each in self._defaults.personalities]
        return personalities or [(DEFAULT, tr("Assistant"), "")]

    def _levels(self) -> list[tuple[str, str, str]]:
        return [("", tr("From personality"), ""), *((level, name, "") for level, name in THINKING_LEVELS.items())]

    def _change(self, options: TaskOptions) -> None:
        self._options = options
        self._show_meanings()
        self.changed.emit(options)

    def _show_meanings(self) -> None:
        self._mode_about.setText(MODES[self._options.mode][1])
        self._network_about.setText(NETWORKS[self._options.network][1])
        model = self._defaults.model_of(self._options)
        name = model_name(model) if model else tr("Set up a model")
        self.model.setText(
            self.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, self._theme.tokens.column // 4)
        )
        set_tool_tip(self.model, model)

    def _on_personality_chosen(self) -> None:
        """Use the model and thinking level of the personality."""
        chosen: object = self.personality.currentData()
        assert isinstance(chosen, str)
        self.thinking.setCurrentIndex(0)
        personality_id = None if chosen == self._defaults.personality_id else chosen
        self._change(
            replace(self._options, personality_id=personality_id, model=None, model_if_none=None, thinking_level=None)
        )

    def _on_mode_chosen(self, index: int) -> None:
        modes: Sequence[TaskMode] = tuple(MODES)
        self._change(replace(self._options, mode=modes[index]))

    def _on_network_chosen(self, index: int) -> None:
        networks: Sequence[NetworkMode] = tuple(NETWORKS)
        self._change(replace(self._options, network=networks[index]))

    def _on_thinking_chosen(self, index: int) -> None:
        levels: Sequence[ThinkingLevel | None] = (None, *THINKING_LEVELS)
        self._change(replace(self._options, thinking_level=levels[index]))

    def _fit(self) -> None:
        """Resize to the height of the content; the lower edge stays."""
        bottom = self.y() + self.height()
        layout = self.layout()
        assert layout is not None
        layout.activate()
        self.resize(self.width(), layout.totalHeightForWidth(self.width()))
        move_on_screen(self, QPoint(self.x(), bottom - self.height()))

    def _on_model_clicked(self) -> None:
        self.close()
        self.choose_model_requested.emit()

    def _on_several_clicked(self) -> None:
        self.close()
        self.ask_models_requested.emit()

    def _on_agent_clicked(self) -> None:
        self.close()
        self.add_agent_requested.emit()

    def _on_budget_changed(self, text: str) -> None:
        budget = _dollars(text)
        is_wrong = bool(text.strip()) and budget is None
        set_style(self.budget, "state", "wrong" if is_wrong else "")
        set_tool_tip(
            self.budget,
            tr("Enter an amount above 0, such as 0.50") if is_wrong else tr("The task pauses and asks at this cost"),
        )
        if not is_wrong:
            self._change(replace(self._options, budget_usd=budget))


def _box(name: str, rows: Sequence[tuple[str, str, str]], chosen: str) -> QComboBox:
    """Return a combo box of rows with a value, a name and an explanation."""
    box = QComboBox()
    box.setAccessibleName(name)
    box.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
    for index, (value, text, about) in enumerate(rows):
        box.addItem(text, value)
        box.setItemData(index, plain_tool_tip(about), Qt.ItemDataRole.ToolTipRole)
    box.setCurrentIndex(max(0, box.findData(chosen)))
    return box


def _dollars(text: str) -> float | None:
    amount = number_of(text)
    return amount if amount is not None and 0 < amount < 1_000_000 else None
