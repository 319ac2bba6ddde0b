"""Joins the features of one task into a `TaskRun`."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.engine.agent.compaction.context_window import ContextWindow, ContextWindowOptions
from app.engine.agent.compaction.summary import Summarizer
from app.engine.agent.history.attachments import Attachments, load_images
from app.engine.agent.history.branch import BranchWriter
from app.engine.agent.history.visible_history import ToModelMessages
from app.engine.agent.loop.agent import Agent, AgentOptions
from app.engine.agent.loop.hooks import Hooks
from app.engine.agent.prompt.system_prompt import TaskSystemPrompt
from app.engine.agent.run.approvals import Approvals
from app.engine.agent.run.limits import DailyBudget, TaskLimits
from app.engine.agent.run.pause_gate import PauseGate
from app.engine.agent.run.pending_asks import PendingAsks, UserQuestions
from app.engine.agent.run.queued_messages import QueuedMessages
from app.engine.agent.run.rate_limit_wait import RateLimitWait
from app.engine.agent.run.recorder import TaskRecorder, ToolExecutionLog
from app.engine.agent.run.repeat_detection import RepeatDetector
from app.engine.agent.run.resume import InterruptedTurn, TurnReplay
from app.engine.agent.run.stop_policy import ModeDetector, StopPolicy
from app.engine.agent.run.task_hooks import TaskHooks
from app.engine.agent.run.task_run import TaskRun
from app.engine.agent.run.task_state import TaskState
from app.engine.core.cancel import CancelSignal
from app.engine.core.messages import Message
from app.engine.core.settings import Settings
from app.engine.event_log import EventLog
from app.engine.models.base import ChatModel
from app.engine.permissions.grants import Grants
from app.engine.storage.database import Database
from app.engine.tools.base import GuardedTool, ToolContext
from app.engine.tools.control_tools import AskUser, SendUpdate, TaskComplete
from app.engine.tools.registry import bind
from app.engine.tools.shell.environment import environment_of_commands
from app.paths import Paths
from app.protocol.agents import Personality
from app.protocol.tasks import Task


def _unchanged(tools: tuple[GuardedTool, ...]) -> tuple[GuardedTool, ...]:
    return tools


@dataclass(frozen=True, slots=True)
class TaskBuilder:
    """Dependencies shared by all tasks. `replace_tools` may replace a task's tools, as a replay does."""

    log: EventLog
    database: Database
    settings: Settings
    desk: PendingAsks
    grants: Grants
    paths: Paths
    attachments: Attachments
    day: DailyBudget
    has_price: Callable[[str], bool]
    window_of: Callable[[str], int | None]
    replace_tools: Callable[[tuple[GuardedTool, ...]], tuple[GuardedTool, ...]] = _unchanged

    def build(
        self,
        task: Task,
        branch: BranchWriter,
        personality: Personality,
        model: ChatModel,
        history: tuple[Message, ...],
        stored_prompts: int,
        heard: ToModelMessages,
        open_turn: InterruptedTurn | None = None,
    ) -> TaskRun:
        """A task ready to run. `history` comes before its prompt; a new task's prompt is already stored.

        With an open turn, `history` comes before that turn; `stored_prompts` counts its stored messages.
        """
        live, cancel, completion = TaskState(task, self.log), CancelSignal(), TaskComplete(task.answer_schema)
        journal = self.database.journal
        executions = ToolExecutionLog(task.id, journal)
        queue = QueuedMessages(live, self.attachments)
        recorder = TaskRecorder(live, branch, self.log, journal, executions, self.has_price, queue, stored_prompts)
        gate = PauseGate(live, self.settings.values.seconds_between_calls, RateLimitWait(live))
        tools = self.replace_tools(self._tools(task, personality, live, completion))
        approvals = Approvals(live, self.desk, self.grants, self.log, self.paths.home)
        resumption = TurnReplay(live, self.desk, executions, open_turn)
        warn = partial(recorder.notice, "warning")
        known = ContextWindowOptions(self.window_of, self.settings.values.summarise_at, heard)
        summaries = Summarizer(branch, recorder, live.set_activity, model, heard)
        room = ContextWindow(branch, recorder, summaries, self.database, known, warn)
        steps = TaskHooks(live, branch, gate, recorder, executions, approvals, resumption, model, room, tools)
        course = StopPolicy(live, self.desk, completion, self._limits(task), self.day, warn)
        repeats = RepeatDetector(live, self.desk, history, warn, course.end_as_stuck)
        agent = Agent(
            AgentOptions(
                stream=steps.stream,
                model=task.model,
                tools=tools,
                messages=history,
                thinking_level=task.thinking_level,
                temperature=personality.temperature,
                session_id=task.conversation_id,
                hooks=Hooks(
                    transform_context=course.before_model_call,
                    convert_to_llm=load_images,
                    before_tool_call=repeats.before(steps.before_tool_call),
                    after_tool_call=repeats.after_tool_call,
                    finish_turn=repeats.finish_turn(course.finish_turn),
                    prepare_next_turn=course.prepare_next_turn,
                ),
            )
        )
        agent.subscribe(repeats.listen)
        agent.subscribe(ModeDetector(live).listen)
        queue.follow(agent)
        briefing = TaskSystemPrompt(task, personality.system_prompt, self.database)
        return TaskRun(live, branch, self.log, gate, recorder, course, completion, agent, queue, cancel, briefing, room)

    def _tools(
        self, task: Task, personality: Personality, live: TaskState, completion: TaskComplete
    ) -> tuple[GuardedTool, ...]:
        output = self.paths.outputs / task.id
        workplace = ToolContext(task.id, Path(task.workspace), output, environment_of_commands())
        ask_user = AskUser(UserQuestions(live, self.desk).ask)
        tools = (*bind(workplace, personality.tools), ask_user)
        return tools if task.mode == "chat" else (*tools, SendUpdate(), completion)  # a chat has nothing to complete

    def _limits(self, task: Task) -> TaskLimits:
        values = self.settings.values
        return TaskLimits(task.max_turns, values.max_minutes or None, task.budget_usd, values.max_tokens or None)
