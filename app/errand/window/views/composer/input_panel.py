"""The panel below the transcript: status line and notices, agents, to-do list, queue, options, composer."""

from collections.abc import Sequence
from dataclasses import replace

from PySide6.QtCore import QMimeData, Signal
from PySide6.QtWidgets import QWidget

from errand.client.conversation.branch_rows import StreamingKind
from errand.client.conversation.rows import UserRow
from errand.client.conversation.task_states import is_working
from errand.protocol.tasks.groups import ApproveMode
from errand.protocol.tasks.task import Task, replace_fields
from errand.text.translation import tr
from errand.window.rows.asks.choices import choice_names
from errand.window.stores.catalog import ModelStore
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.stores import Stores
from errand.window.stores.task_options import TaskOptionDefaults, TaskOptions
from errand.window.stores.usage import ContextUsageStore
from errand.window.theme.theme import Theme
from errand.window.views.agents.agents_bar import AgentsBarView
from errand.window.views.composer.approval_mode import ApprovalModeView
from errand.window.views.composer.background_view import BackgroundView
from errand.window.views.composer.completions import CompletionLists
from errand.window.views.composer.composer import ComposerState, ComposerView
from errand.window.views.composer.drop_payload import PastedFiles, drop_payload
from errand.window.views.composer.memory_switch import MemorySwitchView
from errand.window.views.composer.notices import NoticeSlotView
from errand.window.views.composer.queue_view import QueueView
from errand.window.views.composer.status_line import StatusLineView
from errand.window.views.composer.task_options_bar import TaskOptionsView
from errand.window.views.composer.todo_view import TodoView
from errand.window.views.usage.context_bar import ContextBarView
from errand.window.widgets.boxes import set_vbox

_WRITING: dict[StreamingKind, str] = {"none": tr("Working"), "thinking": tr("Thinking"), "reply": tr("Answering")}


class PromptHistory:
    """Steps through earlier messages. The unfinished text is kept as the newest entry, as is an edited one."""

    def __init__(self) -> None:
        self._index = 0
        self._shown = ""
        self._unsent = ""

    def step(self, by: int, messages: Sequence[str], current: str) -> str | None:
        """Return the text to show for a step, -1 for an older one; None at the ends.

        `messages` has the newest first.
        """
        if self._index == 0 or current != self._shown:
            self._index, self._unsent = 0, current
        index = self._index - by
        if not 0 <= index <= len(messages):
            return None
        self._index = index
        self._shown = messages[index - 1] if index else self._unsent
        return self._shown


class InputPanelView(QWidget):
    """Emits `sent` for each message, `model_missing` if no model is available, `mode_chosen` for an approval mode.

    Emits `options_changed` when the user changes the options of the next task, and `files_changed` with the paths
    attached to the unsent message.
    """

    sent = Signal()
    model_missing = Signal()
    files_changed = Signal(object)
    options_changed = Signal(object)
    mode_chosen = Signal()

    def __init__(
        self,
        store: ConversationStore,
        stores: Stores,
        models: ModelStore,
        theme: Theme,
        pasted: PastedFiles,
    ) -> None:
        super().__init__()
        self._theme = theme
        self._pasted = pasted
        self._store = store
        self._stores = stores
        self._models = models
        self._has_sent = False
        self._history = PromptHistory()
        self._context = ContextUsageStore(stores.session)
        self.context = ContextBarView(self._context, theme)
        self.agents = AgentsBarView(store, stores, models, theme)
        self.status = StatusLineView(theme, self.context)
        self.notices = NoticeSlotView(self.status, stores.session, theme)
        self.todo = TodoView(theme)
        self.queue = QueueView(store.queue, theme)
        self.background = BackgroundView(store.background, theme)
        self.approval_mode = ApprovalModeView(theme)
        self.memory_switch = MemorySwitchView(theme)
        self.task_options = TaskOptionsView(theme, self.approval_mode, self.memory_switch)
        self.composer = ComposerView(theme, self.task_options)
        self.completions = CompletionLists(
            self.composer,
            stores.tools,
            lambda: self.agents.mentionable,
            lambda: self.task_options.options.workspace,
            theme,
        )
        tokens = theme.tokens
        self.setMaximumWidth(tokens.column + 2 * tokens.space_far)  # aligned with the transcript
        set_vbox(
            self,
            self.agents,
            self.background,
            self.notices,
            self.todo,
            self.queue,
            self.composer,
            spacing=tokens.space_close,
            margins=(tokens.space_far, tokens.space_tight, tokens.space_far, tokens.space_wide),
        )
        self._connect()
        self.show_task()
        self.setFocusProxy(self.composer)

    @property
    def is_blank(self) -> bool:
        """True if nothing was typed or sent yet."""
        return self._store.conversation_id is None and not self._has_sent and not self.composer.has_content

    @property
    def is_at_rest(self) -> bool:
        """True if there is nothing to send, and the options are those of the last task."""
        return not self.composer.has_content and not self.task_options.has_choices

    def set_options(self, options: TaskOptions) -> None:
        """Use these options for the next task."""
        self.task_options.set_options(options)
        self._apply_options()

    def show_task(self) -> None:
        """Show the current state of the newest task."""
        task = self._store.task
        self._show_agents()
        self._show_status()
        self._context.show_task(task)
        self.context.lock(self._store.context.locked)
        self.notices.show_status(has_task=task is not None)
        self.todo.show_task(task)
        self.queue.show_entries()
        self._show_option_defaults()
        if task is not None:
            self.task_options.show_task(self._followed_task(task))
            self._apply_options()
        self._show_approve()
        asked = self._store.commands.question
        question = asked.text if asked is not None else ""
        waiting = asked or self._store.next_ask
        choices = choice_names(waiting) if waiting is not None else ()
        active = task is not None and is_working(task)
        stopping = task is not None and task.activity.stopping
        connected = self._stores.session.state == "ready"
        steers = self._store.commands.steers
        has_begun = task is not None
        ask_id = waiting.id if waiting is not None else ""
        self.composer.show_state(
            ComposerState(active, steers, stopping, question, connected, has_begun, choices, ask_id)
        )

    def go_on_as_shown(self) -> None:
        """Take the options of the branch that is shown, instead of those chosen before."""
        self.task_options.drop_choices()
        self.show_task()

    def _followed_task(self, task: Task) -> Task:
        """Return the task as the selected agent's own, if an agent that answered beside it wrote this branch."""
        shown_agent, author = self._store.agents.shown, self._store.agents.get(task.agent_id)
        if shown_agent is None or author is None or author.beside != shown_agent.id:
            return task
        return replace_fields(task, agent_id=shown_agent.id)

    def attach_content(self, mime: QMimeData) -> None:
        """Attach dropped or pasted content."""
        payload = drop_payload(mime)
        self.composer.attachments.add(payload.paths)
        try:
            if payload.picture is not None:
                self.composer.attachments.add([self._pasted.save_image(payload.picture)])
            elif payload.picture_file:
                self.composer.attachments.add([self._pasted.save_picture_file(payload.picture_file)])
            elif payload.text:
                self.composer.attachments.add([self._pasted.save_text(payload.text)])
        except OSError as error:
            self._store.commands.failed.emit(
                tr("Couldn't save the pasted content: {error}.").format(error=error.strerror)
            )

    def _connect(self) -> None:
        store, composer = self._store, self.composer
        store.taskUpdate.connect(self.show_task)
        store.loaded.connect(self.show_task)
        store.agents.changed.connect(self.show_task)
        store.inserted.connect(self._show_status)
        self._stores.asks.changed.connect(self.show_task)
        self._stores.session.state_changed.connect(self.show_task)
        self._stores.personalities.changed.connect(self._show_option_defaults)
        self._models.changed.connect(self._show_option_defaults)
        self._stores.sandbox.changed.connect(self._show_option_defaults)
        store.commands.unsent.connect(self._on_unsent)
        self.context.summarise_requested.connect(store.context.summarise)
        composer.submitted.connect(self._on_submitted)
        composer.queued.connect(store.commands.follow_up)
        composer.content_dropped.connect(self.attach_content)
        composer.history_step_requested.connect(self._on_history_step_requested)
        composer.attachments.changed.connect(self._on_files_changed)
        composer.attachments.dropped.connect(self._pasted.delete)
        composer.attachments.refused.connect(store.commands.failed)
        composer.attachments.folder_dropped.connect(self._on_folder_dropped)
        composer.stop_requested.connect(store.commands.stop)
        self.status.try_now_requested.connect(store.commands.try_now)
        for switch in (self.status.mode, self.context):
            switch.mode_requested.connect(store.commands.set_mode)
        self.queue.focus_released.connect(composer.setFocus)
        self.task_options.changed.connect(self._on_options_changed)
        self.approval_mode.chosen.connect(self.choose_mode)
        self.completions.failed.connect(store.failed)
        composer.writing.connect(self._on_writing)
        composer.field.mode_cycle_requested.connect(self.approval_mode.cycle)
        store.approve_changed.connect(self._show_approve)
        self.memory_switch.follow(store, self._stores.conversations)
        self.task_options.add_agent_requested.connect(self.agents.add_agent)
        self.task_options.model_chosen.connect(self._models.add_recent)
        self.task_options.models_requested.connect(self._models.load)
        self.task_options.favourite_changed.connect(self._models.set_favourite)

    def _show_status(self) -> None:
        task = self._store.task
        told_at = self._stores.tasks.reported_at(task.id) if task is not None else None
        writing = _WRITING[self._store.streams]
        self.status.show_task(task, self._agent_name(task), writing=writing, told_at=told_at)

    def ask_models(self, text: str, models: tuple[str, ...]) -> None:
        """Send this text, with the attachments, to several models."""
        paths = self.composer.attachments.paths
        self.composer.set_text("")
        self.composer.attachments.clear()
        self._has_sent = True
        self._store.commands.ask_models(text, models, paths)
        self.sent.emit()

    def _show_agents(self) -> None:
        self.agents.show_agents()
        if self._store.agents.is_several:
            self.completions.offer_mentions()

    def _agent_name(self, task: Task | None) -> str:
        """Return the name of the task's agent; empty with a single agent."""
        agent = self._store.agents.get(task.agent_id) if task is not None and self._store.agents.is_several else None
        return agent.name if agent is not None else ""

    def _show_option_defaults(self) -> None:
        self.task_options.set_defaults(
            TaskOptionDefaults(
                self._models.offered,
                self._models.default,
                self._stores.personalities.all,
                self._store.agents.shown,
                self._models.providers,
                self._stores.sandbox.holds,
                self._models.favourites,
                self._models.recent,
            )
        )
        self._apply_options()

    def _apply_options(self) -> None:
        self._store.commands.options = self.task_options.options

    def _show_approve(self) -> None:
        """The mode of an existing conversation is what the engine says."""
        if self._store.conversation is not None:
            self.task_options.set_approve(self._store.conversation.approve)
            self._apply_options()

    def choose_mode(self, mode: ApproveMode) -> None:
        """Choose the approval mode of the conversation, or of the new one."""
        self.mode_chosen.emit()
        if self._store.conversation_id is None:
            self.task_options.set_approve(mode)
            self._apply_options()
        else:
            self._store.commands.set_approve(mode)
        self.options_changed.emit(replace(self.task_options.options, approve=mode))

    def _on_submitted(self, text: str, paths: tuple[str, ...]) -> None:
        if self._models.is_empty and not self.task_options.model:
            self._on_unsent(text, paths)
            self.model_missing.emit()
            return
        self._has_sent = True
        self._store.commands.send(text, paths)
        self.sent.emit()

    def _on_unsent(self, text: str, paths: tuple[str, ...]) -> None:
        """Restore a text that was not sent, with its files, above the text typed since then."""
        self._has_sent = False
        current = self.composer.text
        self.composer.set_text(f"{text}\n{current}" if current.strip() else text)
        self.composer.attachments.restore(paths)

    def _on_history_step_requested(self, by: int) -> None:
        rows = (self._store.row(index) for index in reversed(range(self._store.count())))
        messages = [row.text for row in rows if isinstance(row, UserRow)]
        text = self._history.step(by, messages, self.composer.text)
        if text is not None:
            self.composer.set_text(text)

    def _on_files_changed(self) -> None:
        self.files_changed.emit(self.composer.attachments.paths)

    def _on_folder_dropped(self, path: str) -> None:
        """Use a folder as the workspace of a new conversation; in an existing one insert its path."""
        if self.task_options.has_begun:
            self.composer.field.insertPlainText(path)
        else:
            self.task_options.set_folder(path)

    def _on_writing(self) -> None:
        self._store.commands.prepare(self.task_options.model)

    def _on_options_changed(self) -> None:
        self._apply_options()
        self._store.commands.prepare_model(self.task_options.model)
        self.options_changed.emit(self.task_options.options)
