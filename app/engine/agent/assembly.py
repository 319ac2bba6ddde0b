"""Puts the parts of one task together."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.engine.agent.agent import Agent, AgentOptions
from app.engine.agent.approvals import Approvals
from app.engine.agent.asks import AskDesk
from app.engine.agent.attachments import Attachments
from app.engine.agent.branch import Branch
from app.engine.agent.control import AskUser, SendUpdate, TaskComplete
from app.engine.agent.course import Course
from app.engine.agent.day import Day
from app.engine.agent.executions import Executions
from app.engine.agent.gate import Gate
from app.engine.agent.hooks import Hooks
from app.engine.agent.limit_wait import LimitWait
from app.engine.agent.limits import Limits
from app.engine.agent.live import LiveTask
from app.engine.agent.mode import FirstReply
from app.engine.agent.model_calls import ModelCalls
from app.engine.agent.open_turn import OpenTurn
from app.engine.agent.pictures import with_pictures
from app.engine.agent.prompt.briefing import Briefing
from app.engine.agent.questions import Questions
from app.engine.agent.reach import Hearing
from app.engine.agent.recorder import Recorder
from app.engine.agent.repeats import Repeats
from app.engine.agent.resumption import Resumption
from app.engine.agent.room import Known, Room
from app.engine.agent.steps import Steps
from app.engine.agent.summaries import Summaries
from app.engine.agent.task_queue import TaskQueue
from app.engine.agent.task_run import TaskRun
from app.engine.broadcast import EventLog
from app.engine.cancel import CancelSignal
from app.engine.messages import Message
from app.engine.models.base import ChatModel
from app.engine.permissions.grants import Grants
from app.engine.settings import Settings
from app.engine.storage.database import Database
from app.engine.tools.base import GuardedTool, Workplace
from app.engine.tools.environment import environment_of_commands
from app.engine.tools.registry import bind
from app.paths import Paths
from app.protocol.agents import Personality
from app.protocol.tasks import Task


def _as_they_are(tools: tuple[GuardedTool, ...]) -> tuple[GuardedTool, ...]:
    return tools


@dataclass(frozen=True, slots=True)
class Assembly:
    """What all tasks share. `dress` may put others in the place of a task's tools: a replay does."""

    log: EventLog
    database: Database
    settings: Settings
    desk: AskDesk
    grants: Grants
    paths: Paths
    attachments: Attachments
    day: Day
    has_price: Callable[[str], bool]
    window_of: Callable[[str], int | None]
    dress: Callable[[tuple[GuardedTool, ...]], tuple[GuardedTool, ...]] = _as_they_are

    def build(
        self,
        task: Task,
        branch: Branch,
        personality: Personality,
        model: ChatModel,
        history: tuple[Message, ...],
        stored_prompts: int,
        heard: Hearing,
        open_turn: OpenTurn | None = None,
    ) -> TaskRun:
        """A task ready to run. `history` comes before its prompt, which is in the tree already if it is a new task.

        With an open turn it is what comes before that, and `stored_prompts` counts what of the turn is in the tree.
        """
        live, cancel, completion = LiveTask(task, self.log), CancelSignal(), TaskComplete(task.answer_schema)
        journal = self.database.journal
        executions = Executions(task.id, journal)
        queue = TaskQueue(live, self.attachments)
        recorder = Recorder(live, branch, self.log, journal, executions, self.has_price, queue, stored_prompts)
        gate = Gate(live, self.settings.values.seconds_between_calls, LimitWait(live))
        tools = self.dress(self._tools(task, personality, live, completion))
        approvals = Approvals(live, self.desk, self.grants, self.log, self.paths.home)
        resumption = Resumption(live, self.desk, executions, open_turn)
        warn = partial(recorder.notice, "warning")
        known = Known(self.window_of, self.settings.values.summarise_at, heard)
        summaries = Summaries(branch, recorder, live.say, model, heard)
        room = Room(branch, recorder, summaries, self.database, known, warn)
        calls = ModelCalls(branch, recorder, model, room)
        steps = Steps(live, branch, self.log, gate, recorder, executions, approvals, resumption, calls, tools)
        course = Course(live, self.desk, completion, self._limits(task), self.day, warn)
        repeats = Repeats(live, self.desk, history, warn, course.end_as_stuck)
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
                    convert_to_llm=with_pictures,
                    before_tool_call=repeats.before(steps.before_tool_call),
                    after_tool_call=repeats.after_tool_call,
                    finish_turn=repeats.finish_turn(course.finish_turn),
                    prepare_next_turn=course.prepare_next_turn,
                ),
            )
        )
        agent.subscribe(repeats.listen)
        agent.subscribe(FirstReply(live).listen)
        queue.follow(agent)
        briefing = Briefing(task, personality.system_prompt, self.database)
        return TaskRun(live, branch, self.log, gate, recorder, course, completion, agent, queue, cancel, briefing, room)

    def _tools(
        self, task: Task, personality: Personality, live: LiveTask, completion: TaskComplete
    ) -> tuple[GuardedTool, ...]:
        output = self.paths.outputs / task.id
        workplace = Workplace(task.id, Path(task.workspace), output, environment_of_commands())
        ask_user = AskUser(Questions(live, self.desk).ask)
        tools = (*bind(workplace, personality.tools), ask_user)
        return tools if task.mode == "chat" else (*tools, SendUpdate(), completion)  # talk has nothing to complete

    def _limits(self, task: Task) -> Limits:
        values = self.settings.values
        return Limits(task.max_turns, values.max_minutes or None, task.budget_usd, values.max_tokens or None)
