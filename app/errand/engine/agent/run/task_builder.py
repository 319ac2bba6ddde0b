"""Joins the features of one task into a `TaskRun`."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from errand.engine.agent.compaction.context_window import ContextWindow, ContextWindowOptions
from errand.engine.agent.compaction.summary import Summarizer
from errand.engine.agent.history.attachments import Attachments, ResultPictures, load_images
from errand.engine.agent.history.branch import BranchWriter
from errand.engine.agent.history.visible_history import SummaryMessage, ToModelMessages
from errand.engine.agent.loop.features import emit_of, hooks_of, stream_of
from errand.engine.agent.loop.run_state import LoopConfig, LoopRun
from errand.engine.agent.prompt.personalities import chosen_tools
from errand.engine.agent.prompt.system_prompt import TaskSystemPrompt
from errand.engine.agent.run.approvals import Approvals
from errand.engine.agent.run.delegation import Delegation, SubAgentRunner
from errand.engine.agent.run.limits import DailyBudget, TaskLimits
from errand.engine.agent.run.memory.recall import MemorySource, RunningRecalls, TaskRecall
from errand.engine.agent.run.memory.standing_instructions import StandingInstructions
from errand.engine.agent.run.model_calls import TaskModelCalls
from errand.engine.agent.run.pause_gate import PauseGate
from errand.engine.agent.run.pending_asks import PendingAsks, UserQuestions
from errand.engine.agent.run.queued_messages import QueuedMessages
from errand.engine.agent.run.rate_limit_wait import RateLimitWait
from errand.engine.agent.run.recorder import TaskRecorder, ToolExecutionLog
from errand.engine.agent.run.replies.call_repair import CallRepair
from errand.engine.agent.run.replies.repeat_detection import RepeatDetector
from errand.engine.agent.run.replies.text_calls import TextCalls
from errand.engine.agent.run.replies.untouched_names import CallNames, first_message
from errand.engine.agent.run.resume import InterruptedTurn, TurnReplay
from errand.engine.agent.run.server_wait import ModelServerWait
from errand.engine.agent.run.skill_question import SkillQuestion
from errand.engine.agent.run.stop_policy import ModeDetector, StopPolicy
from errand.engine.agent.run.task_context import TaskContext, TaskTools
from errand.engine.agent.run.task_run import TaskParts, TaskRun
from errand.engine.agent.run.task_sandbox import SandboxFactory, TaskAddresses
from errand.engine.agent.run.task_state import TaskState
from errand.engine.agent.run.tools.edit_guidance import EditGuidance
from errand.engine.agent.run.tools.offered_tools import OfferedTools
from errand.engine.agent.run.tools.service_tools import ServiceTools
from errand.engine.agent.tool_offer.choice import ToolChoice, choose_tools
from errand.engine.checkpoints.baselines import Baselines
from errand.engine.checkpoints.recorder import TaskCheckpoints
from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import Message
from errand.engine.core.settings import Settings
from errand.engine.event_log import EventLog
from errand.engine.memory.facts import FactProposals, Facts
from errand.engine.models.base import ChatModel
from errand.engine.models.model_servers import ModelServers
from errand.engine.models.servers.served_models import ServedModel, ServerKind
from errand.engine.permissions.grants import Grants
from errand.engine.sandbox.detection import short_text
from errand.engine.storage.database import Database
from errand.engine.tools.base import GuardedTool
from errand.engine.tools.context import Embed, MemoryAccess, ModelAccess, ShellContext, ToolContext, no_embedding
from errand.engine.tools.control.find_tools import FindTools
from errand.engine.tools.control.task_messages import AskUser, SendUpdate, TaskComplete
from errand.engine.tools.control.todo import Todo
from errand.engine.tools.mcp.pool import McpPool
from errand.engine.tools.processes.termination import ProcessSweep
from errand.engine.tools.reading_form import full_name
from errand.engine.tools.registry import bind
from errand.engine.tools.sessions import ConversationSessions, ToolSessions
from errand.engine.tools.shell.environment import environment_of_commands
from errand.engine.tools.task import MAX_DEPTH, TaskTool
from errand.protocol.agents import Personality
from errand.protocol.background import BackgroundCommand
from errand.protocol.events import BackgroundUpdate
from errand.protocol.tasks.task import Task
from errand.system.paths import Paths
from errand.text.redaction import Redactor


def _unchanged(tools: tuple[GuardedTool, ...]) -> tuple[GuardedTool, ...]:
    return tools


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDependencies:
    """The facts about models that tasks need. `open` opens another model, for a tool that asks one.

    `has_price` and `window_of` take the id of a model, which may have no known price and no known window, and
    `window_of` the address of the request, None for the usual one. `servers` are
    asked before each call; without them no server is.
    """

    has_price: Callable[[str], bool]
    window_of: Callable[[str, str | None], int | None]
    daily_budget: DailyBudget
    open: Callable[[str], ChatModel] | None = None
    servers: ModelServers | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolDependencies:
    """The parts that the tools of all tasks share. `replace` may replace a task's tools, as a replay does.

    Without `servers` there are no tools of other programs. `writes_offered_names` is False for a replay, whose record
    has the names of the registered tools.
    """

    sessions: ToolSessions
    baselines: Baselines
    redactor: Redactor
    embed: Embed = no_embedding
    servers: McpPool | None = None
    replace: Callable[[tuple[GuardedTool, ...]], tuple[GuardedTool, ...]] = _unchanged
    writes_offered_names: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDependencies:
    """The memory of earlier tasks: pinned facts, and the `source` of what bears on a message."""

    facts: Facts
    source: MemorySource | None = None
    recalls: RunningRecalls = field(default_factory=RunningRecalls)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskBuilder:
    """Dependencies shared by all tasks. Without `sub_agents` a task cannot start others."""

    log: EventLog
    database: Database
    settings: Settings
    paths: Paths
    asks: PendingAsks
    grants: Grants
    attachments: Attachments
    models: ModelDependencies
    tools: ToolDependencies
    memory: MemoryDependencies
    sub_agents: SubAgentRunner | None = None

    def build(
        self,
        task: Task,
        branch: BranchWriter,
        personality: Personality,
        model: ChatModel,
        history: tuple[Message, ...],
        stored_prompts: int,
        to_messages: ToModelMessages,
        open_turn: InterruptedTurn | None = None,
    ) -> TaskRun:
        """Return a task ready to run. `history` comes before its prompt; a new task's prompt is already stored.

        With an open turn, `history` comes before that turn; `stored_prompts` counts its stored messages.
        """
        state, completion = TaskState(task, self.log), TaskComplete(task.request.answer_schema)
        queue = QueuedMessages(state, self.attachments)
        context = TaskContext(state, branch, queue, self.asks, self.log, self.database)
        values = self.settings.values
        processes = ProcessSweep(task.id, state.show_remaining_processes, values.max_processes)
        executions = ToolExecutionLog(task.id, self.database.journal)
        environment = environment_of_commands()
        sandboxes = SandboxFactory(self.settings, self.paths, self.grants, self.tools.sessions)
        sandbox = sandboxes.for_task(task, environment, executions)
        workspace, outputs = Path(task.request.workspace), self.paths.outputs / task.id
        sessions = ConversationSessions(self.tools.sessions, task.conversation_id)
        addresses = TaskAddresses(state, self.grants, self.settings, self.paths)
        checkpoints = TaskCheckpoints(lambda: state.task, self.log, self.tools.baselines)
        recorder = TaskRecorder(context, executions, self.models.has_price, stored_prompts)
        warn = partial(recorder.notice, "warning")
        policy = StopPolicy(context, completion, self._limits(task), self.models.daily_budget, warn)
        delegation = self._delegation(state, policy)
        calls = TaskModelCalls(
            state,
            policy,
            self.models.daily_budget,
            self.database.journal,
            model,
            self.models.has_price,
            self.models.open,
            delegation,
        )
        window_of = self._window_of(task)
        is_summarised = bool(history) and isinstance(history[0], SummaryMessage)
        recall = TaskRecall(
            context,
            self.memory.source,
            self.memory.recalls,
            window_of,
            history_length=len(history),
            is_summarised=is_summarised,
        )
        proposals = FactProposals(self.memory.facts, task, branch.agent.name, lambda: branch.position)
        tool_context = ToolContext(
            task.id,
            workspace,
            outputs,
            environment,
            processes,
            sessions,
            sandbox,
            self.tools.redactor,
            addresses=addresses,
            checkpoints=checkpoints,
            settings=values,
            shell=ShellContext(
                task.progress.working_dir, state.set_working_dir, partial(self._show_background, task.conversation_id)
            ),
            memory=MemoryAccess(recall.find, proposals.propose),
            models=ModelAccess(calls, self.tools.embed),
            sub_agents=delegation,
        )
        find_tools = FindTools(lambda: tools.offer.hidden_definitions)
        bound = self._tools(task, personality, state, completion, tool_context)
        tools = TaskTools(
            self.tools.replace((*bound, find_tools)),
            Path(task.request.workspace),
            self._choice(task, personality, task.request.model),
        )
        calls.find_tools = lambda: tools.all
        recorder.findable_tools = lambda: tools.offer.findable
        gate = PauseGate(state, values.seconds_between_calls, RateLimitWait(state))
        options = ContextWindowOptions(
            window_of,
            values.summarise_at,
            to_messages,
            lambda model: self._server_kind(task, model),
        )
        summaries = Summarizer(branch, recorder, state.set_activity, model, to_messages)
        pool = self.tools.servers
        services = (
            ServiceTools(context, tools, pool, (task.request.tools, personality.tools), tool_context, recorder)
            if pool is not None
            else None
        )
        is_resumed = open_turn is not None or task.progress.step_count > 0
        names = CallNames(history, 0 if is_resumed else first_message(history, stored_prompts))
        window = ContextWindow(branch, recorder, summaries, self.database, options, warn)
        prompt = self._system_prompt(context, personality)
        wait = self._server_wait(context, recorder, tools, prompt, personality)
        features = (
            ResultPictures(self.attachments),
            RepeatDetector(context, history, warn, policy.end_as_stuck),
            TurnReplay(context, tools, executions, open_turn),
            ModeDetector(state, policy),
            policy,
            gate,
            *wait,
            recall,
            StandingInstructions(
                context,
                self.memory.source,
                proposals,
                # A conversation without a folder has one of its own, which no other will see.
                "always" if workspace.is_relative_to(self.paths.workspaces) else "folder",
                history_length=len(history),
            ),
            window,
            EditGuidance(workspace, tools, history),
            Approvals(
                context,
                tools,
                self.grants,
                self.tools.baselines,
                self.paths.home,
                short_text(values.command_sandbox),
                has_sandbox=sandbox is not None,
            ),
            recorder,
            names,
            *(() if services is None else (services,)),
            CallRepair(tools),
            TextCalls(tools),
            *((OfferedTools(tools),) if self.tools.writes_offered_names else ()),
        )
        config = LoopConfig(
            stream=stream_of(features, model),
            tools=tools.all,
            temperature=personality.temperature,
            session_id=task.conversation_id,
            hooks=hooks_of(features, load_images),
            define_tools=lambda _: tools.offer.definitions,
        )
        loop = LoopRun(
            config=config,
            emit=emit_of(features),
            cancel=CancelSignal(),
            steering=queue.steering,
            follow_ups=queue.follow_ups,
            messages=list(history),
            model=task.request.model,
            thinking_level=task.request.thinking_level,
        )
        return TaskRun(
            TaskParts(
                context=context,
                gate=gate,
                recorder=recorder,
                names=names,
                policy=policy,
                completion=completion,
                loop=loop,
                system_prompt=prompt,
                window=window,
                processes=processes,
                sandbox=sandbox,
                delegation=delegation,
                model=model,
                services=services,
            )
        )

    def _window_of(self, task: Task) -> Callable[[str], int | None]:
        return lambda model: self.models.window_of(model, task.request.api_base)

    def _server_kind(self, task: Task, model: str) -> ServerKind:
        served = self._served(task, model)
        return served.server if served is not None else "other"

    def _served(self, task: Task, model: str) -> ServedModel | None:
        """Return what the server of a model says of it; None if nothing is known."""
        servers = self.models.servers
        return servers.known(model, task.request.api_base) if servers is not None else None

    def _delegation(self, state: TaskState, policy: StopPolicy) -> Delegation | None:
        if self.sub_agents is None:
            return None
        delegation = Delegation(
            state, policy, self.sub_agents, self.sub_agents.delegation_of(state.task.origin.parent_id)
        )
        policy.limit_above = delegation.limit_above
        return delegation

    def _tools(
        self,
        task: Task,
        personality: Personality,
        state: TaskState,
        completion: TaskComplete,
        tool_context: ToolContext,
    ) -> tuple[GuardedTool, ...]:
        ask_user = AskUser(UserQuestions(state, self.asks).ask)
        bound = bind(tool_context, personality.tools, task.request.tools)
        # The deepest sub-agents start no others.
        can_delegate = task.origin.depth < MAX_DEPTH
        tools = (*(tool for tool in bound if can_delegate or tool.name != TaskTool.name), ask_user)
        if task.options.mode == "chat":  # it has nothing to plan and to complete
            return tools
        return (*tools, SendUpdate(), Todo(state.set_todo), completion)

    def _choice(self, task: Task, personality: Personality, model: str) -> ToolChoice:
        """Return which tools the model is offered, and how it calls them."""
        named = frozenset(map(full_name, (*chosen_tools(personality), *task.request.tools)))
        served = self._served(task, model)
        return choose_tools(self.settings.values.tool_set, served, self._window_of(task)(model), named)

    def _system_prompt(self, context: TaskContext, personality: Personality) -> TaskSystemPrompt:
        skills = SkillQuestion(context, self.paths.skills)
        role, task = personality.system_prompt, context.state.task
        return TaskSystemPrompt(task, role, self.memory.facts, self.database, self.paths, skills.ask_if_new)

    def _server_wait(
        self,
        context: TaskContext,
        recorder: TaskRecorder,
        tools: TaskTools,
        prompt: TaskSystemPrompt,
        personality: Personality,
    ) -> tuple[ModelServerWait, ...]:
        if self.models.servers is None:
            return ()
        choice_for = partial(self._choice, context.state.task, personality)
        return (ModelServerWait(context.state, recorder, self.models.servers, tools, prompt, choice_for),)

    def _show_background(self, conversation_id: str, commands: tuple[BackgroundCommand, ...]) -> None:
        self.log.publish(BackgroundUpdate(conversation_id=conversation_id, commands=commands))

    def _limits(self, task: Task) -> TaskLimits:
        values = self.settings.values
        minutes, tokens = task.budget.max_minutes or values.max_minutes, task.budget.max_tokens or values.max_tokens
        return TaskLimits(task.budget.max_turns, minutes or None, task.budget.budget_usd, tokens or None)
