"""Rows for the transcript without an engine: a list in memory, rows of each kind, and long conversations."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from PySide6.QtCore import QObject, Signal

from errand.client.conversation.rows import (
    CallState,
    ImageRow,
    NoticeRow,
    ReplyRow,
    Row,
    TaskEndRow,
    ThinkingRow,
    ToolCallRow,
    UserRow,
)
from errand.engine.tools.call_display import display_of, with_facts
from errand.protocol.asks import (
    RUN_AGAIN,
    SKIP,
    STOP,
    Approval,
    Ask,
    GrantedCall,
    GrantOffer,
    UnknownCall,
)
from errand.protocol.base import JsonObject
from errand.protocol.blocks import (
    ImageBlock,
    NoticeBlock,
    NoticeKind,
    RecalledEntry,
    RecallReason,
    ResultMark,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.conversations import Node, Role
from errand.protocol.tasks.groups import (
    CallProgress,
    TaskActivity,
    TaskOutcome,
    TaskProgress,
    TaskRequest,
    TaskStatus,
    TaskStopReason,
)
from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

WHEN = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
QUESTION = Ask(
    id="ask_q",
    task_id="task_1",
    conversation_id="conversation_1",
    kind="question",
    text="Which colour?",
    created_at=WHEN,
    choices=("Blue", "Green, with a reason that is so long that it takes a second line in any card " * 2),
)
_COMMAND = "python -m pytest -q && rm -rf build"
APPROVAL = Ask(
    id="ask_a",
    task_id="task_1",
    conversation_id="conversation_1",
    kind="approval",
    text="Run a command",
    created_at=WHEN,
    approval=Approval(
        tool="shell",
        call_id="call_1",
        text="Run a command",
        rule="it runs a program",
        risk="medium",
        command=_COMMAND,
        working_dir="/home/anna/project",
        reads=("/home/anna/project", "/home/anna/other"),
        writes=("/home/anna/project/build",),
        preview="--- a/x.sql\n+++ b/x.sql\n@@ -1 +1 @@\n--- an old comment\n+select 1;\n",
        offers=(
            GrantOffer(
                kind="exact",
                calls=(GrantedCall(operation="run", command=_COMMAND, working_dir="/home/anna/project"),),
                scopes=("conversation", "workspace"),
                covers="Exactly this command, in /home/anna/project.",
                example=_COMMAND,
                not_covered=f"{_COMMAND} --help",
            ),
            GrantOffer(
                kind="prefix",
                calls=(
                    GrantedCall(operation="run", prefix=("python", "-m", "pytest"), working_dir="/home/anna/project"),
                ),
                scopes=("conversation", "workspace", "user"),
                covers="Commands that begin with `python -m pytest …`, on files of the workspace.",
                example="python -m pytest -v",
                not_covered="python -m pip",
            ),
        ),
        explained="ask: `python` can change things\nrule    program",
    ),
)


def _asked(name: str, approval: Approval) -> Ask:
    return Ask(
        id=f"ask_{name}",
        task_id="task_1",
        conversation_id="conversation_1",
        kind="approval",
        text=approval.text,
        created_at=WHEN,
        approval=approval,
    )


FETCH = _asked(
    "fetch",
    Approval(
        tool="web_fetch",
        call_id="call_1",
        text="Fetch https://docs.example.org/guide",
        rule="no rule opens docs.example.org",
        risk="medium",
        address="https://docs.example.org/guide?q=a\u200bb",
        explained="ask: no rule opens docs.example.org\nrule    address",
        offers=(
            GrantOffer(
                kind="host",
                calls=(GrantedCall(host="docs.example.org"),),
                scopes=("conversation", "workspace", "user"),
                covers="Addresses of docs.example.org, and what is done on its pages, by the browser and by fetches.",
                example="https://docs.example.org/",
                not_covered="https://other.docs.example.org/",
            ),
        ),
    ),
)
CODE = _asked(
    "code",
    Approval(
        tool="python",
        call_id="call_1",
        text="Run Python code",
        rule="it runs Python code in the sandbox",
        risk="medium",
        code="import csv\n\n# how many rows\nwith open('a.csv') as file:\n    rows = list(csv.reader(file))\n"
        "print(len(rows), 'rows \u202e')\n",
        language="Python",
        explained="ask: it runs Python code in the sandbox\nrule    tool",
        offers=(
            GrantOffer(
                kind="code",
                calls=(GrantedCall(operation="code"),),
                scopes=("conversation", "workspace"),
                covers="Any Python code that this tool runs in its sandbox.",
                not_covered="code that commands run",
            ),
        ),
    ),
)
SERVICE = _asked(
    "service",
    Approval(
        tool="github_create_issue",
        call_id="call_1",
        text="Call create_issue of the server github",
        rule="the server github is another program: what its tool create_issue does cannot be checked",
        risk="medium",
        service="github/create_issue",
        preview='{\n  "repo": "example/tool",\n  "title": "A bug",\n  "labels": [\n    1,\n    true\n  ]\n}',
        explained="ask: the server github is another program\nrule    tool",
        offers=(
            GrantOffer(
                kind="tool",
                calls=(GrantedCall(operation="call", service="github/create_issue"),),
                scopes=("conversation", "workspace", "user"),
                covers="Any call of create_issue of the server github, whatever its arguments.",
                not_covered="any other tool of github",
            ),
        ),
    ),
)
LIMIT = Ask(
    id="ask_l",
    task_id="task_1",
    conversation_id="conversation_1",
    kind="limit",
    text="The task has used its 50 turns.",
    choices=("Go on with as much again", "Stop here"),
    created_at=WHEN,
)
UNKNOWN = Ask(
    id="ask_u",
    task_id="task_1",
    conversation_id="conversation_1",
    kind="unknown",
    text="The engine was killed while this was under way. It may have taken effect in part, in whole, or not at all: "
    "look first, then choose.",
    created_at=WHEN,
    choices=(RUN_AGAIN, SKIP, STOP),
    call_id="call_1",
    unknown=UnknownCall(
        execution_id="exec_1",
        call_id="call_1",
        tool="shell",
        text="Run a command",
        started_at=WHEN,
        command="make deploy && ./announce.sh",
    ),
)


class RowList(QObject):
    """A row source over a list; signals each change."""

    reset = Signal()
    inserted = Signal(int, int)
    changed = Signal(int)
    removed = Signal(int, int)

    def __init__(self, rows: Iterable[Row] = (), *, has_older: bool = False) -> None:
        super().__init__()
        self._rows = list(rows)
        self._has_older = has_older

    @property
    def has_older(self) -> bool:
        return self._has_older

    def count(self) -> int:
        return len(self._rows)

    def row(self, index: int) -> Row:
        return self._rows[index]

    def append(self, *rows: Row) -> None:
        self.insert(len(self._rows), rows)

    def insert(self, first: int, rows: Sequence[Row]) -> None:
        self._rows[first:first] = rows
        self.inserted.emit(first, len(rows))

    def change(self, index: int, row: Row) -> None:
        self._rows[index] = row
        self.changed.emit(index)

    def remove(self, first: int, count: int) -> None:
        del self._rows[first : first + count]
        self.removed.emit(first, count)

    def replace(self, rows: Iterable[Row], *, has_older: bool = False) -> None:
        self._rows = list(rows)
        self._has_older = has_older
        self.reset.emit()


def node(key: str, text: str = "", role: Role = "assistant") -> Node:
    return Node(
        id=key,
        conversation_id="c1",
        parent_id=None,
        role=role,
        author="a1",
        blocks=(TextBlock(text=text),) if text else (),
        status="complete",
        created_at=NOW,
    )


def user(text: str, key: str = "user") -> UserRow:
    return UserRow(key, node(key, text, "user"), text)


def reply(markdown: str, key: str = "reply", *, streaming: bool = False, step: int = 0) -> ReplyRow:
    return ReplyRow(key, node(key, markdown), markdown, streaming, step)


def thinking(text: str, key: str = "thinking", *, streaming: bool = False) -> ThinkingRow:
    return ThinkingRow(key, node(key), text, streaming)


def tool(
    name: str,
    arguments: JsonObject,
    text: str | None = None,
    key: str = "tool",
    *,
    summary: str = "",
    is_error: bool = False,
    details: JsonObject | None = None,
    output: str = "",
    state: CallState = "running",
    marks: tuple[ResultMark, ...] = (),
    progress: CallProgress | None = None,
) -> ToolCallRow:
    """A call; running while `text`, its result, is None."""
    call = ToolCallBlock(call_id=key, tool=name, arguments=arguments, display=display_of(name, arguments))
    result = None
    if text is not None:
        result = with_facts(
            ToolResultBlock(
                call_id=key, tool=name, text=text, is_error=is_error, summary=summary, details=details, marks=marks
            )
        )
    return ToolCallRow(key, node(key), call, result, output, state, progress)


def notice(kind: NoticeKind, text: str, key: str = "notice") -> NoticeRow:
    return NoticeRow(key, node(key), NoticeBlock(kind=kind, text=text))


def image(data: str = PIXEL, key: str = "image") -> ImageRow:
    return ImageRow(key, node(key), ImageBlock(media_type="image/png", data=data))


def end(reason: TaskStopReason, *, summary: str = "", error: str | None = None, key: str = "end") -> TaskEndRow:
    statuses: dict[TaskStopReason, TaskStatus] = {"completed": "completed", "manual_stop": "cancelled"}
    task = Task(
        id=key,
        conversation_id="c1",
        agent_id="a1",
        started_at=NOW,
        request=TaskRequest(prompt="Do it.", model="scripted/tour", workspace="/tmp"),
        activity=TaskActivity(status=statuses.get(reason, "error")),
        outcome=TaskOutcome(stop_reason=reason, summary=summary, error=error, ended_at=NOW + timedelta(seconds=74)),
        progress=TaskProgress(step_count=6, usage=Usage(input_tokens=8_200, output_tokens=640, cost_usd=0.0312)),
    )
    return TaskEndRow(key, task)


_PARAGRAPH = (
    "The discount was taken off as an **amount** instead of a share, so `total` gave 190 where 180 was wanted. "
    "I changed one line of `shop/basket.py` and ran the tests again; see [the guide](https://example.org/guide)."
)
_LIST = "- the first point, with a word on why it matters\n- a second one\n- `third` with code"
_FENCE = "```python\ndef total(prices: list[float], percent: int) -> float:\n    return round(sum(prices), 2)\n```"
_TABLE = "| file | lines | state |\n|---|---:|---|\n| basket.py | 24 | changed |\n| test_basket.py | 31 | same |"


def long_conversation(messages: int) -> list[Row]:
    """About this many messages: a question, thinking, prose, a call, a list, code or a table, and prose again."""
    rows: list[Row] = []
    for number in range(messages):
        key = f"m{number}"
        match number % 8:
            case 0:
                rows.append(user(f"Question {number}: what is wrong with the discount?", key))
            case 1:
                rows.append(thinking("I should look at the tests first. " * 5, key))
            case 3:
                rows.append(tool("shell", {"command": "python3 -m unittest"}, "OK", key, summary="exit 0"))
            case 4:
                rows.append(reply(_LIST, key))
            case 5:
                rows.append(reply(_FENCE if number % 16 == 5 else _TABLE, key))
            case _:
                rows.append(reply(f"{number}. {_PARAGRAPH}" if number % 3 else _PARAGRAPH * 2, key))
    return rows


def recalled(
    text: str, score: float = 0.5, key: str = "n0", reason: RecallReason = "meaning", words: tuple[str, ...] = ()
) -> RecalledEntry:
    """An entry of memory that Anna wrote in another conversation."""
    return RecalledEntry(
        conversation_id="c0",
        conversation_title="The garden",
        node_id=key,
        role="user",
        speaker="Anna",
        at=NOW,
        text=text,
        score=score,
        folder="/srv/garden",
        reason=reason,
        words=words,
    )
