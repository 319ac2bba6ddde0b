"""The options of the next task under the composer: workspace, model, approval mode, and a button for the rest."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from PySide6.QtCore import QPoint, QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QMenu, QPushButton, QWidget

from errand.client.number_format import dollars
from errand.client.safe_text import escape_hidden_line
from errand.client.texts.task_options import THINKING_LEVELS
from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.task import Task
from errand.text.translation import tr, uncapitalised
from errand.window.stores.model_choice import model_name
from errand.window.stores.task_options import TaskOptionDefaults, TaskOptions
from errand.window.stores.welcome import short_path
from errand.window.theme.style import push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.composer.approval_mode import ApprovalModeView
from errand.window.views.composer.memory_switch import MemorySwitchView
from errand.window.views.composer.task_options_dialog import MODES, NETWORKS

_SCRATCH = tr("Scratch folder")
_MAX_NAME = 28


class TaskOptionsView(QWidget):
    """`options` are the chosen ones; emits `changed` when the user changes them, but not for the approval mode.

    In an existing conversation the workspace is fixed, the approval mode is that of the conversation, and the other
    options follow the newest task until they are changed.
    """

    changed = Signal()
    folder_changed = Signal()
    providers_requested = Signal()
    models_requested = Signal()
    _defaults_changed = Signal(object)
    ask_models_requested = Signal()
    add_agent_requested = Signal()
    model_chosen = Signal(str)
    favourite_changed = Signal(str, bool)

    def __init__(self, theme: Theme, approval_mode: ApprovalModeView, memory_switch: MemorySwitchView) -> None:
        super().__init__()
        self._theme = theme
        self._approval_mode = approval_mode
        self._memory_switch = memory_switch
        self._defaults = TaskOptionDefaults()
        self._followed: Task | None = None
        self._folders: tuple[str, ...] = ()
        self.options = TaskOptions()
        self._untouched = self.options
        self.folder_button = push_button(_SCRATCH, "quiet")
        self.model_button = push_button(tr("Set up a model"), "quiet")
        self.more_button = push_button(tr("More"), "quiet")
        self._words: dict[QPushButton, str] = {}
        row = QHBoxLayout(self)
        row.setSizeConstraint(QHBoxLayout.SizeConstraint.SetNoConstraint)  # it folds when space is short
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for part in (self.folder_button, self.model_button, approval_mode, memory_switch, self.more_button):
            row.addWidget(part)
        row.addStretch(1)
        self.folder_button.clicked.connect(self._on_folder_clicked)
        self.model_button.clicked.connect(self.pick_model)
        self.more_button.clicked.connect(self._on_more_clicked)
        memory_switch.changed.connect(self._collapse_buttons)
        theme.changed.connect(self._show)
        self._show()

    @property
    def has_begun(self) -> bool:
        return self._followed is not None

    @property
    def has_choices(self) -> bool:
        """True if something was chosen for the next task."""
        return self.options != self._untouched

    @property
    def model(self) -> str:
        """The model of the next task; empty if none is set up."""
        return self._defaults.model_of(self.options)

    def set_options(self, options: TaskOptions) -> None:
        """Set the options without a signal."""
        self.options = options
        self._show()

    def set_approve(self, mode: ApproveMode) -> None:
        """Show this approval mode, without a signal."""
        if mode != self.options.approve:
            self._untouched = replace(self._untouched, approve=mode)
            self.set_options(replace(self.options, approve=mode))

    def set_defaults(self, defaults: TaskOptionDefaults) -> None:
        """Set the available choices."""
        if defaults != self._defaults:
            self._defaults = defaults
            self._defaults_changed.emit(defaults)
            if self._followed is not None and self.options == self._untouched:
                self._copy_options_of(self._followed)
            self._show()

    def drop_choices(self) -> None:
        """Forget what was chosen for the next task, without a signal."""
        self.set_options(self._untouched)

    def show_task(self, task: Task) -> None:
        """Take over the options of a task. Does nothing for a task that was followed already.

        Once a task is followed, tasks of agents other than the selected one are ignored, and while something is chosen
        older tasks too, those of another branch.
        """
        followed = self._followed
        if followed is not None and (followed.id == task.id or not self._is_own(task)):
            return
        if followed is not None and task.started_at < followed.started_at and self.has_choices:
            return
        self._followed = task
        self._copy_options_of(task)
        self._show()

    def _is_own(self, task: Task) -> bool:
        return self._defaults.agent is None or self._defaults.agent.id == task.agent_id

    def _copy_options_of(self, task: Task) -> None:
        """Take over what was chosen for a task, without the defaults of its agent."""
        is_usual = task.request.model == self._defaults.model_of(TaskOptions()) and task.request.api_base is None
        model, is_own = None if is_usual else task.request.model, self._is_own(task)
        personality = self._defaults.personality(TaskOptions())
        own_level = personality.thinking_level if personality is not None else "off"  # "off": the setting decides
        thinks_as_usual = own_level == task.request.thinking_level != "off"
        self.options = self._untouched = TaskOptions(
            model=model if is_own else None,
            model_if_none=None if is_own else model,
            api_base=task.request.api_base,
            workspace=task.request.workspace,
            mode=task.options.mode,
            approve=self.options.approve,
            network=task.request.network,
            thinking_level=task.request.thinking_level if is_own and not thinks_as_usual else None,
            budget_usd=task.budget.budget_usd,
        )

    def pick_model(self) -> None:
        """Open the model picker. Model servers come and go, so the models are asked for again."""
        self.models_requested.emit()
        if not self._defaults.models:
            self.providers_requested.emit()
            return
        from errand.window.views.shared.model_picker import ModelPicker  # not needed at startup

        picker = ModelPicker(self._theme, self._defaults, self.model, self)
        picker.chosen.connect(self._on_model_chosen)
        self._defaults_changed.connect(picker.show_models)
        picker.favourite_changed.connect(self.favourite_changed)
        picker.providers_requested.connect(self.providers_requested)
        picker.open_beside(self.model_button)

    def minimumSizeHint(self) -> QSize:
        """Return the width of the buttons without text."""
        side = self.folder_button.sizeHint().height()
        return QSize((3 + len(self._approval_mode.words) + len(self._memory_switch.words)) * side, side)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._collapse_buttons()

    def _show(self) -> None:
        self._show_folder()
        self._show_model()
        self._approval_mode.show_mode(self.options.approve, has_sandbox=self._defaults.has_sandbox)
        self._show_more()
        self._collapse_buttons()

    def _show_folder(self) -> None:
        workspace = self.options.workspace or ""
        self.folder_changed.emit()
        folder = Path(workspace).name if workspace else _SCRATCH
        if self._followed is not None and folder == self._followed.conversation_id:
            folder = tr("Own folder")  # made by the engine, and named by an id that says nothing
        self._words[self.folder_button] = _short(folder)
        self.folder_button.setEnabled(not self.has_begun)
        self.folder_button.setAccessibleName(tr("Working folder: {folder}").format(folder=folder))
        set_tool_tip(self.folder_button, workspace or tr("Errand creates a new folder for this conversation"))
        self.folder_button.setIcon(self._theme.icon("folder", "muted"))

    def _show_model(self) -> None:
        model = self._defaults.model_of(self.options)
        self._words[self.model_button] = _short(model_name(model)) if model else tr("Set up a model")
        self.model_button.setAccessibleName(tr("Model: {model}").format(model=model) if model else tr("Set up a model"))
        set_tool_tip(self.model_button, tr("Model: {model}").format(model=model) if model else tr("No model set up"))
        self.model_button.setIcon(self._theme.icon("brain", "muted"))

    def _show_more(self) -> None:
        """Name the options that differ from the defaults."""
        unusual = self._changed_options_text()
        self._words[self.more_button] = ", ".join(unusual) or tr("More")
        text = ", ".join(unusual) or tr("defaults")
        self.more_button.setAccessibleName(tr("More options: {options}").format(options=text))
        set_tool_tip(self.more_button, tr("Personality, mode, thinking and budget"))
        self.more_button.setIcon(self._theme.icon("sliders-horizontal", "muted"))

    def _changed_options_text(self) -> list[str]:
        options, personality = self.options, self._defaults.personality(self.options)
        parts = [
            personality.name if personality is not None and personality.id != "assistant" else "",
            MODES[options.mode][0] if options.mode != "auto" else "",
            tr("Thinking: {level}").format(level=uncapitalised(THINKING_LEVELS[options.thinking_level]))
            if options.thinking_level not in (None, "off")
            else "",
            NETWORKS[options.network][0] if options.network != "asked" else "",
            tr("Up to {amount}").format(amount=dollars(options.budget_usd)) if options.budget_usd is not None else "",
        ]
        return [part for part in parts if part]

    def _collapse_buttons(self) -> None:
        """Hide texts that do not fit, the least important first; the icons stay."""
        labels = (
            {button: self._words[button] for button in (self.more_button, self.folder_button)}
            | self._memory_switch.words
            | {self.model_button: self._words[self.model_button]}
            | self._approval_mode.words
        )
        for button, text in labels.items():
            button.setText(text)
        for button in labels:
            if sum(each.sizeHint().width() for each in labels if not each.isHidden()) <= self.width():
                break
            button.setText("")

    def _on_folder_clicked(self) -> None:
        menu = QMenu(self)
        menu.addAction(self._theme.icon("folder"), _SCRATCH, partial(self.set_folder, None))
        for folder in self._folders:
            name = escape_hidden_line(short_path(folder)).replace("&", "&&")
            menu.addAction(self._theme.icon("history"), name, partial(self.set_folder, folder))
        menu.addAction(self._theme.icon("search"), tr("Choose folder…"), self.choose_folder)
        menu.aboutToHide.connect(menu.deleteLater)
        menu.popup(self.folder_button.mapToGlobal(QPoint(0, -menu.sizeHint().height())))

    def choose_folder(self) -> None:
        """Ask for a folder to work in."""
        dialog = QFileDialog(self, tr("Working folder"), self.options.workspace or str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self.set_folder)
        dialog.open()
        dialog.finished.connect(dialog.deleteLater)

    def set_folder(self, folder: str | None) -> None:
        """Use this folder as the workspace; None for a new one."""
        self._change(replace(self.options, workspace=folder))

    def set_folders(self, folders: tuple[str, ...]) -> None:
        """The folders that are offered."""
        self._folders = folders

    def _on_model_chosen(self, model: str) -> None:
        is_usual = model == self._defaults.model_of(TaskOptions(personality_id=self.options.personality_id))
        self._change(replace(self.options, model=None if is_usual else model, model_if_none=None, api_base=None))
        self.model_chosen.emit(model)

    def _on_more_clicked(self) -> None:
        from errand.window.views.composer.task_options_dialog import TaskOptionsDialog  # not needed at startup

        dialog = TaskOptionsDialog(self._theme, self._defaults, self.options, self)
        dialog.changed.connect(self._change)
        dialog.choose_model_requested.connect(self.pick_model)
        dialog.ask_models_requested.connect(self.ask_models_requested)
        dialog.add_agent_requested.connect(self.add_agent_requested)
        dialog.open_above(self.more_button)

    def _change(self, options: TaskOptions) -> None:
        self.set_options(options)
        self.changed.emit()


def _short(name: str) -> str:
    """Return the beginning of a long name: a button with the full text would widen the window.

    The tool tip has it in full.
    """
    return name if len(name) <= _MAX_NAME else f"{name[: _MAX_NAME - 1]}…"
