"""One column of a comparison: the model, what it does, its transcript, and the buttons that stop or choose it."""

from PySide6.QtCore import QObject, Signal, SignalInstance
from PySide6.QtWidgets import QMenu, QWidget

from errand.client.conversation.branch import ComparedBranch
from errand.client.conversation.branch_rows import StreamingKind
from errand.client.conversation.task_states import is_working
from errand.client.number_format import duration, elapsed, money, running_time
from errand.protocol.asks import AskAnswerParams
from errand.protocol.conversations import Node
from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage
from errand.text.translation import tr
from errand.window.stores.conversation.comparison import ComparedBranchStore, ComparisonStore
from errand.window.stores.model_choice import model_name
from errand.window.stores.tasks import task_activity
from errand.window.theme.style import Tone, push_button, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.transcript.view import TranscriptView
from errand.window.views.shared.row_actions import ConversationRowActions
from errand.window.widgets.boxes import STRETCH, fill, hbox, set_vbox
from errand.window.widgets.buttons import IconButton, native_keys
from errand.window.widgets.input.reaction_time import ReactionTime
from errand.window.widgets.labels import ElidedLabel, TextLabel
from errand.window.widgets.pulse import PulseTimer
from errand.window.widgets.status_dot import DotState, StatusDotView, dot_state

MIN_WIDTH_PX = 300

_READ_ONLY = tr("Continue with one of these first. Then you can change it in the conversation.")
_CONTINUE = tr("Continue with this one")
_STILL_WRITING = tr("Wait until it is done, or stop it")
_NOTHING_YET = tr("There is no reply yet")
_ENDS_HERE = tr("This branch ends here. The others go on.")
_WRITING: dict[StreamingKind, str] = {"none": tr("Working"), "thinking": tr("Thinking"), "reply": tr("Answering")}
_TONES: dict[DotState, Tone] = {
    "waiting": "waiting",
    "held": "waiting",
    "paused": "waiting",
    "done": "done",
    "unfinished": "waiting",
    "failed": "failed",
}


class ReadOnlyBranchActions(QObject):
    """Branch actions of a read-only view: each one only emits `refused` with the reason."""

    refused = Signal(str)
    _lock_changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.drafts: dict[str, str] = {}

    @property
    def lock_changed(self) -> SignalInstance:
        return self._lock_changed

    @property
    def locked(self) -> str:
        return _READ_ONLY

    def switch(self, node_id: str) -> None:
        self.refused.emit(_READ_ONLY)

    def compare(self, node_ids: tuple[str, ...]) -> None:
        self.refused.emit(_READ_ONLY)

    def fork(self, node_id: str) -> None:
        self.refused.emit(_READ_ONLY)

    def retry(self, node_id: str, model: str | None = None) -> None:
        self.refused.emit(_READ_ONLY)

    def edit(self, node_id: str) -> None:
        self.refused.emit(_READ_ONLY)

    def end_edit(self) -> None:
        """Nothing to do: no message can be edited here."""

    def resend(self, node: Node, text: str) -> None:
        self.refused.emit(_READ_ONLY)


class NoChangeActions(QObject):
    """A comparison does not review files: its panel is beside the conversation."""

    _changed = Signal()

    @property
    def changed(self) -> SignalInstance:
        return self._changed

    def count(self, task_id: str) -> int:
        return 0

    def review(self, task_id: str, name: str = "") -> None:
        """Nothing to do."""


class ComparisonActions:
    """Row actions of a compared branch; `conversation` handles those that do not concern branches."""

    def __init__(self, comparison: ComparisonStore, conversation: ConversationRowActions) -> None:
        self.branches = ReadOnlyBranchActions()
        self.context = conversation.context
        self.recall = conversation.recall
        self.changes = conversation.changes
        self.open_link = conversation.open_link
        self.copy = conversation.copy
        self.copy_picture = conversation.copy_picture
        self.open_source = conversation.open_source
        self.forget = conversation.forget
        self.set_up_models = conversation.set_up_models
        self.pictures = conversation.pictures
        self.stop_task = conversation.stop_task
        self._comparison = comparison

    def models(self) -> tuple[str, ...]:
        return ()

    def answer(self, params: AskAnswerParams, /) -> None:
        self._comparison.store.asks.answer(params)

    def load_older(self) -> None:
        """Nothing to do: a column has all that it shows."""

    def open_agent(self, agent_id: str) -> None:
        """Nothing to do: a comparison shows its own branches."""


class ComparedBranchView(QWidget):
    """Emits `branch_chosen` with another branch to show here."""

    branch_chosen = Signal(object)

    def __init__(
        self,
        comparison: ComparisonStore,
        side: ComparedBranchStore,
        theme: Theme,
        pulse: PulseTimer,
        actions: ComparisonActions,
    ) -> None:
        super().__init__()
        self._reaction_time = ReactionTime(self)  # the comparison opens by itself, while a person may type
        self.side = side
        self._comparison = comparison
        self._theme = theme
        tokens = theme.tokens
        self.transcript = TranscriptView(side, theme, actions)
        self.stop = push_button(tr("Stop"))
        self.continue_button = push_button(_CONTINUE)
        self._name = ElidedLabel(theme, bold=True)
        self._dot = StatusDotView(theme, pulse)
        self._state = ElidedLabel(theme, size=tokens.size_small, tone="muted")
        self._figures = TextLabel(theme, size=tokens.size_small, tone="muted")
        self._note = TextLabel(theme, tone="muted", wrap=True)
        self._other = IconButton(theme, "chevron-down", tr("Show another branch here"))
        self._lay_out()
        self._other.clicked.connect(self._on_other_clicked)
        self.stop.clicked.connect(self._on_stop_clicked)
        self.continue_button.clicked.connect(self.continue_here)
        side.state_changed.connect(self.show_side)
        self.setFocusProxy(self.transcript)

    @property
    def title(self) -> str:
        """The names of the models, with a number if another column has the same; the agent's while it has not begun."""
        models, sides = self.side.models, self._comparison.sides
        if not models:
            return self._name_of(self.side.compared)
        names, number = ", ".join(map(model_name, models)), self.side.compared.number
        if sum(side.models == models for side in sides) < 2:
            return names
        if number:
            return tr("{model} · version {number}").format(model=names, number=number)
        return tr("{model} · branch {number}").format(model=names, number=sides.index(self.side) + 1)

    @property
    def texts(self) -> str:
        """The text of the header."""
        parts = (self._name.full_text, self._state.full_text, self._figures.text())
        return " · ".join(part for part in parts if part)

    @property
    def note(self) -> str:
        """Why there are no rows, and will be none; empty while there may be some."""
        return "" if self._note.isHidden() else self._note.text()

    def show_side(self) -> None:
        side, task = self.side, self.side.task
        self._name.set_text(self.title)
        self.transcript.setAccessibleName(tr("Reply of {model}").format(model=self.title))
        state = dot_state(task)
        self._dot.set_state(state)
        self._dot.setVisible(task is not None)
        text = state_text(task, side.streams, has_rows=side.count() > 0)
        self._state.set_text(text)
        self._state.set_tone(_TONES.get(state, "muted"))
        self._note.setText(text if task is not None else _ENDS_HERE)
        self._note.set_tone("failed" if state == "failed" else "muted")
        self._note.setVisible(self._comparison.is_loaded and not side.count() and not side.is_working)
        self.show_figures()
        self._show_buttons()

    def show_figures(self) -> None:
        """Time and cost, which grow while a task works."""
        self._figures.setText(figures_text(self.side.tasks))

    def show_loaded(self) -> None:
        """The rows are complete: replies that are being written are followed, others begin at the top."""
        self.show_side()
        if self.side.is_working:
            self.transcript.to_end()
        else:
            self.transcript.to_start()

    def continue_here(self) -> None:
        """Continue the conversation with this branch, if that is possible now and a person had time to see it."""
        if not self._reaction_time.is_over:
            return
        self._comparison.continue_with(self.side)
        self._show_buttons()

    def _name_of(self, branch: ComparedBranch) -> str:
        agent = self._comparison.store.agents.get(branch.agent_id or "")
        if agent is not None:
            return f"{agent.name} · {model_name(agent.model)}" if agent.model else agent.name
        return tr("Version {number}").format(number=branch.number) if branch.number else tr("This branch")

    def _show_buttons(self) -> None:
        side, can = self.side, self._comparison.can_continue(self.side)
        self.stop.setVisible(side.is_working)
        self.stop.setEnabled(any(is_working(task) and not task.activity.stopping for task in side.tasks))
        self.stop.setAccessibleName(tr("Stop {model}").format(model=self.title))
        self.continue_button.setEnabled(can)
        why = "" if can else _STILL_WRITING if side.branch.ids else _NOTHING_YET
        set_tool_tip(self.continue_button, why or native_keys("Enter"))
        self.continue_button.setAccessibleName(tr("Continue with {model}").format(model=self.title))
        self.continue_button.setAccessibleDescription(why)
        self._other.setVisible(bool(self._comparison.others))

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        self._other.setAccessibleName(tr("Show another branch here"))
        self._note.setMargin(tokens.space_far)
        self._note.hide()
        head = hbox(fill(self._name), self._other, spacing=tokens.space_tight)
        line = hbox(self._dot, fill(self._state), self._figures, spacing=tokens.space_tight)
        foot = hbox(self.continue_button, self.stop, STRETCH, spacing=tokens.space_close)
        space = tokens.space_normal
        set_vbox(
            self,
            head,
            line,
            self._note,
            fill(self.transcript),
            foot,
            spacing=tokens.space_tight,
            margins=(space, space, space, space),
        )

    def _on_stop_clicked(self) -> None:
        self._comparison.stop(self.side)

    def _on_other_clicked(self) -> None:
        menu = self.choices_menu()
        menu.popup(self._other.mapToGlobal(self._other.rect().bottomLeft()))

    def choices_menu(self) -> QMenu:
        """Return the branches that can be shown here."""
        menu = QMenu(self)
        for branch in self._comparison.others:
            action = menu.addAction(self._name_of(branch).replace("&", "&&"))
            action.triggered.connect(lambda _=False, branch=branch: self.branch_chosen.emit(branch))
        menu.aboutToHide.connect(menu.deleteLater)
        return menu


def state_text(task: Task | None, streams: StreamingKind, *, has_rows: bool) -> str:
    """Return what a branch does; for a failed task, why it failed."""
    if task is None:
        return ""
    writing = _WRITING[streams] if has_rows else tr("Waiting for the model")
    activity = task_activity(task, writing)
    return f"{activity}: {task.outcome.error}" if task.outcome.ended_at is not None and task.outcome.error else activity


def figures_text(tasks: tuple[Task, ...]) -> str:
    """Time and cost of all tasks; cost only if every price is known."""
    seconds = sum(map(elapsed, tasks))
    costs = [task.progress.usage.cost_usd for task in tasks if task.progress.usage.cost_usd is not None]
    estimated = any(task.progress.usage.estimated for task in tasks)
    spent = money(Usage(cost_usd=sum(costs), estimated=estimated)) if costs and len(costs) == len(tasks) else ""
    time = running_time(seconds) if any(map(is_working, tasks)) else duration(seconds)
    return " · ".join(part for part in (time if tasks else "", spent) if part)
