"""The notices about the tasks of a conversation: interrupted, without a model, or played by the tour."""

from PySide6.QtCore import QObject, Signal

from errand.text.translation import tr
from errand.window.stores.catalog import ModelStore, is_scripted
from errand.window.stores.conversation.store import ConversationStore
from errand.window.views.composer.input_panel import InputPanelView
from errand.window.views.composer.notices import NoticeKind
from errand.window.widgets.notice_line import Notice

_NO_MODEL = tr("No model is set up yet. Your message is kept here until then.")
_INTERRUPTED = tr("The engine stopped during this task. Finished steps are kept and do not run again.")
_TOURED = tr("This task was part of the tour.")
_SET_UP, _START_IN_FOLDER = tr("Set up your own model"), tr("Start in a folder…")
_FOR_REAL = tr("Run it with your model")


class TaskNotices(QObject):
    """Emits what their buttons ask for.

    `resume_requested` gives a task, `setup_requested` asks for the form of a model provider, `local_model_requested`
    for the models that run on this machine, `real_tour_requested` for the tour with the person's model,
    `folder_task_requested` for a new task in a folder.
    """

    resume_requested = Signal(str)
    setup_requested = Signal()
    local_model_requested = Signal()
    real_tour_requested = Signal()
    folder_task_requested = Signal()

    def __init__(self, store: ConversationStore, models: ModelStore, input_panel: InputPanelView) -> None:
        super().__init__(input_panel)
        self._store = store
        self._models = models
        self._notices = input_panel.notices
        self._composer = input_panel.composer
        self._knows_next_steps = False
        store.taskUpdate.connect(self._show_task)
        store.loaded.connect(self._show_task)
        models.changed.connect(self._on_models_changed)
        input_panel.model_missing.connect(self._on_model_missing)
        input_panel.sent.connect(self._on_sent)
        self._notices.action_chosen.connect(self._on_action_chosen)
        self._notices.dismissed.connect(self._on_dismissed)
        self._show_task()

    def forget_missing_model(self) -> None:
        """Say no more that a model is missing: something else was begun."""
        self._notices.put("no_model", None)

    def _show_task(self) -> None:
        task = self._store.task
        is_interrupted = task is not None and task.activity.status == "interrupted"
        self._notices.put("interrupted", Notice(_INTERRUPTED, "waiting", (tr("Resume"),)) if is_interrupted else None)
        self._show_next_steps()

    def _show_next_steps(self) -> None:
        """Below a task of the tour that has ended: what to do with Errand now. Dismissed once, it stays away."""
        task = self._store.task
        if (
            task is None
            or task.outcome.ended_at is None
            or not is_scripted(task.request.model)
            or self._knows_next_steps
        ):
            self._notices.put("tour", None)
        else:
            actions = (_SET_UP if self._models.is_empty else _FOR_REAL, _START_IN_FOLDER)
            self._notices.put("tour", Notice(_TOURED, "info", actions, is_dismissible=True))

    def _on_models_changed(self) -> None:
        self._show_task()
        if not self._models.is_empty:
            self.forget_missing_model()

    def _on_model_missing(self) -> None:
        self._notices.put("no_model", Notice(_NO_MODEL, "waiting", (tr("Set up a model"), tr("Run one here"))))

    def _on_sent(self) -> None:
        self.forget_missing_model()
        self._notices.clear_message()

    def _on_action_chosen(self, kind: NoticeKind, number: int) -> None:
        match kind:
            case "interrupted":
                if self._store.task is not None:
                    self.resume_requested.emit(self._store.task.id)
                    self._composer.setFocus()
            case "no_model" if number == 1:
                self.local_model_requested.emit()
            case "no_model":
                self.setup_requested.emit()
            case "tour" if number == 0 and self._models.is_empty:
                self.setup_requested.emit()
            case "tour" if number == 0:
                self._on_dismissed(kind)  # a second click would start three more tasks
                self._show_next_steps()
                self.real_tour_requested.emit()
            case "tour":
                self.folder_task_requested.emit()
            case "connection" | "health" | "message" | "memory":
                pass  # handled where they are made, or without buttons

    def _on_dismissed(self, kind: NoticeKind) -> None:
        self._knows_next_steps = self._knows_next_steps or kind == "tour"
