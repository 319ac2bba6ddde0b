"""Removes forgotten texts from records: nodes, tasks, asks, plans, titles, and whatever contains them.

Pure. What stands where by its structure (a block of a node, the arguments of a call) goes as a whole. Fields that are
derived from a text, such as the summary of a task, are compared with it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, assert_never, cast

import msgspec

from errand.engine.agent.tasks.task_target import NO_TITLE, title_of
from errand.engine.storage.records.executions import ExecutionEnd, ExecutionStart
from errand.protocol.agents import Agent
from errand.protocol.asks import Approval, Ask, UnknownCall
from errand.protocol.background import BackgroundCommand
from errand.protocol.base import JsonObject, JsonValue
from errand.protocol.blocks import (
    Block,
    EnvironmentBlock,
    FileBlock,
    ImageBlock,
    NoticeBlock,
    RecallBlock,
    RecalledEntry,
    SummaryBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.conversations import Conversation, Node
from errand.protocol.memory import MemoryItem
from errand.protocol.notices import (
    LimitReached,
    NoticeData,
    RepeatedCall,
    SummaryForgotten,
    TaskCompleted,
    TaskFailed,
    TaskStopped,
    TaskStuck,
)
from errand.protocol.tasks.change import ALL_GROUPS, TaskChange, change_of
from errand.protocol.tasks.task import AgentPlan, Task
from errand.text.notice_text import FORGOTTEN

# A text that is no whole field is replaced inside another from this length on: shorter ones stand everywhere.
_TELLING = 16
# A field that begins with so much of a text is that text, shortened.
_BEGINNING = 200
# As much of a text stands at least in the results of a search, if it has so much.
_OPENING = 60
SEARCH_TOOL = "search_memory"
SUB_AGENT = "Sub-agent"

S = TypeVar("S", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The forgotten parts: ids of complete `nodes`, of `summaries` made from them, and of replies that lose `calls`
    (reply id → call ids).

    `conversations` are those of the nodes. `plans` are the turns of these replies: all of their calls (None), or the
    numbers of some. `asked` are the calls by task id. `texts` is what the nodes said, `arguments` what calls did.
    """

    nodes: frozenset[str]
    summaries: frozenset[str]
    calls: Mapping[str, frozenset[str]]
    conversations: frozenset[str]
    plans: Mapping[tuple[str, int], frozenset[int] | None]
    asked: frozenset[tuple[str, str]]
    texts: tuple[str, ...]
    arguments: tuple[str, ...]

    @property
    def quoted(self) -> frozenset[str]:
        """Nodes that must not be quoted any more."""
        return self.nodes | self.summaries | frozenset(self.calls)


class Scrubber:
    """Each method returns the same object if it has nothing that is forgotten."""

    def __init__(self, forgotten: Forgotten, redact: Callable[[str], str]) -> None:
        self._forgotten = forgotten
        # A word alone, such as the path of a file, stands in other texts for itself.
        long = (text for text in forgotten.arguments if len(text.split()) > 1)
        texts = tuple(dict.fromkeys(text.strip() for text in (*forgotten.texts, *long) if text.strip()))
        self._lines = tuple(" ".join(text.split()) for text in texts)
        self._exact_texts = frozenset((*texts, *self._lines, *forgotten.arguments))
        self._titles = frozenset(title_of(text, redact) for text in texts)
        self._telling = tuple(sorted((text for text in texts if len(text) >= _TELLING), key=len, reverse=True))
        self._openings = frozenset(line[:_OPENING] for line in self._lines if len(line) >= _TELLING)
        self._quoted = forgotten.quoted

    def struct(self, record: S) -> S:
        """Return any struct of the protocol, scrubbed with all that it contains."""
        changed = self._scrubbed_record(record)
        if changed is not None:
            return changed
        different: dict[str, object] = {}
        for name, value in msgspec.structs.asdict(record).items():
            new = self._value(value)
            if new is not value:
                different[name] = new
        return msgspec.structs.replace(record, **different) if different else record

    def _scrubbed_record(self, record: S) -> S | None:
        """Return the scrubbed struct; None for a struct without a rule of its own."""
        changed: msgspec.Struct
        match record:
            case Node():
                changed = self.node(record)
            case Task():
                changed = self.task(record)
            case TaskChange():
                changed = self._task_change(record)
            case Ask():
                changed = self.ask(record)
            case AgentPlan():
                changed = self.plan(record)
            case Conversation():
                changed = self.conversation(record)
            case BackgroundCommand():
                changed = self._background(record)
            case Agent():
                changed = self.agent(record)
            case _:
                return None
        assert isinstance(changed, type(record))
        return record if changed == record else changed

    def _value(self, value: object) -> object:
        if isinstance(value, msgspec.Struct):
            return self.struct(value)
        if isinstance(value, tuple):
            items = cast("tuple[object, ...]", value)
            new = tuple(self._value(item) for item in items)
            return new if any(changed is not other for changed, other in zip(new, items, strict=True)) else items
        return value

    def node(self, node: Node) -> Node:
        if node.id in self._forgotten.nodes:
            if is_forgotten(node):
                return node
            return msgspec.structs.replace(node, blocks=tuple(_without_text(node)), error=None)
        if node.id in self._forgotten.summaries:
            return msgspec.structs.replace(node, blocks=(NoticeBlock(kind="model", data=SummaryForgotten()),))
        if (calls := self._forgotten.calls.get(node.id)) is not None:
            return msgspec.structs.replace(node, blocks=tuple(_without_calls(node.blocks, calls)))
        if node.role in ("system", "tool_result"):
            return msgspec.structs.replace(node, blocks=tuple(map(self._quoting, node.blocks)))
        return node

    def quotes(self, node: Node) -> bool:
        """Return True if the node says what an agent was given from memory, or found there, that is forgotten."""
        return any(
            any(entry.node_id in self._quoted and entry.text != FORGOTTEN for entry in block.entries)
            if isinstance(block, RecallBlock)
            else isinstance(block, ToolResultBlock) and self._is_search_hit(block)
            for block in node.blocks
        )

    def _is_search_hit(self, block: ToolResultBlock) -> bool:
        """Return True for a search of memory with such a text among its hits, or beside one."""
        if block.tool != SEARCH_TOOL or "forgotten" in block.marks:
            return False
        if self._quoted & nodes_found_by(block):
            return True
        line = " ".join(block.text.split())
        return any(opening in line for opening in self._openings)

    def says(self, item: MemoryItem) -> bool:
        """Return True for an entry of memory with a forgotten text, also in the title of its conversation."""
        title = self._title(item.conversation_id, item.conversation_title)
        return item.node_id in self._quoted or title != item.conversation_title

    def task(self, task: Task) -> Task:
        if task.conversation_id not in self._forgotten.conversations:
            return task
        return self._task_change(change_of(task, ALL_GROUPS)).applied_to(task)

    def _task_change(self, change: TaskChange) -> TaskChange:
        if change.conversation_id not in self._forgotten.conversations:
            return change
        fields: dict[str, object] = {}
        if (request := change.request) is not None:
            fields["request"] = msgspec.structs.replace(request, prompt=self.text(request.prompt))
        if (origin := change.origin) is not None:
            fields["origin"] = msgspec.structs.replace(origin, title=self.text(origin.title))
        if (activity := change.activity) is not None:
            fields["activity"] = msgspec.structs.replace(activity, detail=self.text(activity.detail))
        if change.todo is not None:
            fields["todo"] = tuple(msgspec.structs.replace(item, text=self.text(item.text)) for item in change.todo)
        if change.queue is not None:
            fields["queue"] = tuple(msgspec.structs.replace(item, text=self.text(item.text)) for item in change.queue)
        if (outcome := change.outcome) is not None:
            fields["outcome"] = msgspec.structs.replace(
                outcome,
                summary=self.text(outcome.summary),
                error=self.text(outcome.error) if outcome.error is not None else None,
                answer=self._json(outcome.answer),
            )
        return msgspec.structs.replace(change, **fields)

    def ask(self, ask: Ask) -> Ask:
        if ask.conversation_id not in self._forgotten.conversations:
            return ask
        if any((ask.task_id, call_id) in self._forgotten.asked for call_id in calls_of(ask)):
            return msgspec.structs.replace(
                ask,
                text=FORGOTTEN,
                choices=(),
                answer=None if ask.answer is None else FORGOTTEN,
                approval=None if ask.approval is None else _bare_approval(ask.approval),
                unknown=None if ask.unknown is None else _bare_unknown(ask.unknown),
            )
        answer = self.text(ask.answer) if ask.answer is not None else None
        return msgspec.structs.replace(ask, text=self.text(ask.text), answer=answer)

    def plan(self, plan: AgentPlan) -> AgentPlan:
        key = (plan.task_id, plan.turn)
        if key not in self._forgotten.plans:
            return plan
        numbers = self._forgotten.plans[key]
        calls = tuple(
            msgspec.structs.replace(call, parameters={}) if numbers is None or number in numbers else call
            for number, call in enumerate(plan.tool_calls)
        )
        question = FORGOTTEN if plan.question is not None else None
        return msgspec.structs.replace(
            plan, reasoning=FORGOTTEN if plan.reasoning else "", tool_calls=calls, question=question
        )

    def conversation(self, conversation: Conversation) -> Conversation:
        """Return the struct without a title that is the beginning of a forgotten text."""
        return msgspec.structs.replace(conversation, title=self._title(conversation.id, conversation.title))

    def agent(self, agent: Agent) -> Agent:
        """Return a sub-agent is named by its task; a number tells it from others of the same name."""
        if agent.conversation_id not in self._forgotten.conversations or agent.called_by is None:
            return agent
        name = agent.name.rstrip("0123456789").rstrip()
        is_named_by = self.text(agent.name) != agent.name or self.text(name) != name
        return msgspec.structs.replace(agent, name=SUB_AGENT) if is_named_by else agent

    def execution(self, row: ExecutionStart | ExecutionEnd, ids: frozenset[str]) -> ExecutionStart | ExecutionEnd:
        """`ids` are those of the executions of forgotten calls."""
        if row.execution_id not in ids:
            return row
        if isinstance(row, ExecutionStart):
            return ExecutionStart(
                execution_id=row.execution_id,
                task_id=row.task_id,
                turn=row.turn,
                node_id=row.node_id,
                call_id=row.call_id,
                tool=row.tool,
                arguments={},
                at=row.at,
                text=FORGOTTEN,
                tier=row.tier,
            )
        return ExecutionEnd(
            execution_id=row.execution_id,
            task_id=row.task_id,
            text=FORGOTTEN,
            summary=FORGOTTEN.lower(),
            details=None,
            is_error=row.is_error,
            at=row.at,
            marks=("forgotten",),
        )

    def text(self, text: str) -> str:
        """Return a derived text without what is forgotten."""
        visible = text.strip().removesuffix("…").rstrip()
        if not visible:
            return text
        line = " ".join(visible.split())
        if (
            line in self._exact_texts
            or visible in self._exact_texts
            or self._is_beginning(line, is_cut=visible != text.strip())
        ):
            return FORGOTTEN
        for telling in self._telling:
            text = text.replace(telling, FORGOTTEN)
        return text

    def _is_beginning(self, line: str, *, is_cut: bool) -> bool:
        """Return True if a text was shortened to this line, or to something that begins like it."""
        return any(
            (is_cut and forgotten_line.startswith(line))
            or (len(forgotten_line) > _BEGINNING and line.startswith(forgotten_line[:_BEGINNING]))
            or (len(line) >= _TELLING and forgotten_line.startswith(line))
            for forgotten_line in self._lines
        )

    def _json(self, value: JsonValue) -> JsonValue:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._json(item) for item in value]
        if isinstance(value, dict):
            return {name: self._json(item) for name, item in value.items()}
        return value

    def _background(self, command: BackgroundCommand) -> BackgroundCommand:
        if command.conversation_id not in self._forgotten.conversations:
            return command
        line = self.text(command.command)
        last_lines = self.text(command.last_lines) if line == command.command else ""
        return msgspec.structs.replace(command, command=line, last_lines=last_lines)

    def _quoting(self, block: Block) -> Block:
        """Return a block of the engine or of a tool without quotes of what is forgotten."""
        match block:
            case RecallBlock(entries=entries):
                return msgspec.structs.replace(block, entries=tuple(map(self._recalled, entries)))
            case ToolResultBlock() if self._is_search_hit(block):
                return without_result(block)
            case NoticeBlock(data=data) if data is not None:
                return msgspec.structs.replace(block, data=self._notice(data))
            case _:
                return block

    def _notice(self, data: NoticeData) -> NoticeData:
        """Return the task without calls, errors and unread messages that are forgotten."""
        match data:
            case RepeatedCall() | TaskStuck():
                data = msgspec.structs.replace(
                    data, call=self.text(data.call), others=tuple(map(self.text, data.others))
                )
            case TaskFailed():
                data = msgspec.structs.replace(data, text=self.text(data.text))
            case _:
                pass
        match data:
            case TaskCompleted() | TaskStopped() | LimitReached() | TaskStuck() | TaskFailed():
                return msgspec.structs.replace(data, unread=tuple(map(self.text, data.unread)))
            case _:
                return data

    def _recalled(self, entry: RecalledEntry) -> RecalledEntry:
        text = FORGOTTEN if entry.node_id in self._quoted else entry.text
        title = self._title(entry.conversation_id, entry.conversation_title)
        return msgspec.structs.replace(entry, text=text, conversation_title=title)

    def _title(self, conversation_id: str, title: str) -> str:
        is_derived = " ".join(title.split()) in self._titles or self.text(title) != title
        return NO_TITLE if conversation_id in self._forgotten.conversations and is_derived else title


def nodes_found_by(block: ToolResultBlock) -> frozenset[str]:
    """Return the nodes that a search of memory found."""
    hits = (block.details or {}).get("hits")
    hit_ids = [hit.get("node_id") for hit in hits if isinstance(hit, dict)] if isinstance(hits, list) else []
    return frozenset(hit_id for hit_id in hit_ids if isinstance(hit_id, str))


def texts_of(blocks: Iterable[Block]) -> Iterable[str]:
    """Return the texts of blocks."""
    for block in blocks:
        match block:
            case TextBlock(text=text, forgotten=False) | ThinkingBlock(text=text) | SummaryBlock(text=text):
                yield text
            case ToolResultBlock(text=text, marks=marks) if "forgotten" not in marks:
                yield text
            case _:
                pass


def arguments_of(blocks: Iterable[Block], call_ids: frozenset[str] | None = None) -> Iterable[str]:
    """Yield all texts in the arguments of calls, or of these calls."""
    for block in blocks:
        if isinstance(block, ToolCallBlock) and (call_ids is None or block.call_id in call_ids):
            yield from _strings(block.arguments)
            yield block.invalid or ""


def is_forgotten(node: Node) -> bool:
    """Return True if nothing is left to forget in the node."""
    return node.error is None and all(map(_is_bare, node.blocks))


def _is_bare(block: Block) -> bool:
    match block:
        case TextBlock(forgotten=is_bare):
            return is_bare
        case ToolCallBlock():
            return not block.arguments and block.invalid is None
        case ToolResultBlock(marks=marks):
            return "forgotten" in marks
        case RecallBlock(entries=entries):
            return all(entry.text == FORGOTTEN for entry in entries)
        case NoticeBlock(text=text, data=data):
            return isinstance(data, SummaryForgotten) or (data is None and text == FORGOTTEN)
        case ThinkingBlock() | ImageBlock() | FileBlock() | SummaryBlock() | EnvironmentBlock():
            return False
        case _:
            assert_never(block)


def without_result(block: ToolResultBlock) -> ToolResultBlock:
    return ToolResultBlock(
        call_id=block.call_id,
        tool=block.tool,
        text=FORGOTTEN,
        is_error=block.is_error,
        summary=FORGOTTEN.lower(),
        execution_id=block.execution_id,
        marks=("forgotten",),
    )


def _without_text(node: Node) -> Iterable[Block]:
    """Yield the remaining blocks of a forgotten node: calls and results, which models need in pairs, without text."""
    first = next((block for block in node.blocks if isinstance(block, TextBlock)), None)
    if node.role in ("user", "assistant"):
        yield TextBlock(
            text=FORGOTTEN,
            engine_message=first.engine_message if first is not None else None,
            task_from=first.task_from if first is not None else "",
            forgotten=True,
        )
    for block in node.blocks:
        match block:
            case ToolCallBlock():
                yield ToolCallBlock(call_id=block.call_id, tool=block.tool, arguments={})
            case ToolResultBlock():
                yield without_result(block)
            case RecallBlock(entries=entries):
                yield RecallBlock(entries=tuple(msgspec.structs.replace(entry, text=FORGOTTEN) for entry in entries))
            case SummaryBlock():
                yield NoticeBlock(kind="model", data=SummaryForgotten())
            case NoticeBlock():
                yield NoticeBlock(kind=block.kind, text=FORGOTTEN)
            case _:
                pass


def _without_calls(blocks: Sequence[Block], call_ids: frozenset[str]) -> Iterable[Block]:
    """Yield a reply without these calls' arguments, and without its thinking, which is about them."""
    for block in blocks:
        match block:
            case ThinkingBlock():
                pass
            case ToolCallBlock(call_id=call_id) if call_id in call_ids:
                yield ToolCallBlock(call_id=call_id, tool=block.tool, arguments={})
            case _:
                yield block


def calls_of(ask: Ask) -> tuple[str, ...]:
    """Return the ids of the calls that it is about."""
    named = (ask.call_id, ask.approval and ask.approval.call_id, ask.unknown and ask.unknown.call_id)
    return tuple(call_id for call_id in named if call_id)


def _bare_approval(approval: Approval) -> Approval:
    return Approval(
        tool=approval.tool,
        call_id=approval.call_id,
        text=FORGOTTEN,
        rule=FORGOTTEN,
        risk=approval.risk,
        modes=approval.modes,
        sandbox=approval.sandbox,
    )


def _bare_unknown(unknown: UnknownCall) -> UnknownCall:
    return msgspec.structs.replace(unknown, text=FORGOTTEN, command=None)


def _strings(value: JsonValue | JsonObject) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
