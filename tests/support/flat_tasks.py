"""A task as it was stored before revision 0016, with each field, and as it is now; tasks that `--json` prints."""

from datetime import timedelta

import msgspec

from errand.engine.storage.database import Database
from errand.engine.storage.records.flat_tasks import grouped_task
from errand.protocol.base import JsonObject
from errand.protocol.tasks.groups import (
    Allowance,
    CallProgress,
    Queued,
    TaskActivity,
    TaskBudget,
    TaskOptions,
    TaskOrigin,
    TaskOutcome,
    TaskProgress,
    TaskRequest,
    TodoItem,
)
from errand.protocol.tasks.task import Task
from errand.protocol.usage import Usage
from tests.support.databases import execute
from tests.support.records import NOW


def printed_task(line: str) -> Task:
    """The task of a line that `--json` printed."""
    task = grouped_task(msgspec.json.decode(line, type=JsonObject))
    for name, group_name in LATER_FIELDS.items():
        group = task[group_name]
        assert isinstance(group, dict)
        if name in task:
            group[name] = task.pop(name)
    return msgspec.convert(task, Task)


# Fields that came after revision 0016, and their groups.
LATER_FIELDS = {
    "awaitsServer": "activity",
    "toolRuns": "progress",
    "changingCalls": "progress",
    "lastCallFailed": "progress",
    "untouched": "outcome",
    "changedNothing": "outcome",
}


_AT = NOW.isoformat().replace("+00:00", "Z")
_LATER = (NOW + timedelta(minutes=1)).isoformat().replace("+00:00", "Z")

FLAT_TASK: JsonObject = {
    "id": "t1",
    "conversationId": "c1",
    "agentId": "a1",
    "prompt": "Do it.",
    "status": "completed",
    "model": "m/x",
    "workspace": "/work",
    "startedAt": _AT,
    "apiBase": "http://localhost:1/v1",
    "mode": "task",
    "approve": "edits",
    "network": "on",
    "attended": False,
    "thinkingLevel": "high",
    "maxTurns": 7,
    "budgetUsd": 1.5,
    "maxMinutes": 9.0,
    "maxTokens": 1000,
    "stopReason": "completed",
    "completion": "declared",
    "refusedCalls": 1,
    "actingCalls": 2,
    "stopping": True,
    "pausing": True,
    "stepCount": 3,
    "messages": 4,
    "currentTool": "shell",
    "calls": [{"callId": "call_1", "startedAt": _AT}],
    "activity": "stopping",
    "attempt": 5,
    "askId": "k1",
    "queue": [{"id": "q1", "kind": "steer", "text": "also", "queuedAt": _AT, "attachments": []}],
    "summary": "Done.",
    "error": "no",
    "usage": {"inputTokens": 10},
    "workedS": 6.5,
    "allowance": {"turns": 70, "minutes": None, "budgetUsd": None, "tokens": None},
    "near": ["turns"],
    "resumes": True,
    "decided": "task",
    "retryAt": _LATER,
    "limitedAt": _AT,
    "ownKey": True,
    "answerSchema": {"type": "object"},
    "answer": {"n": 1},
    "summarises": True,
    "summarised": True,
    "follows": "t0",
    "todo": [{"text": "look", "status": "done"}],
    "workingDir": "/work/a",
    "parentId": "t00",
    "depth": 1,
    "title": "Part",
    "callId": "call_0",
    "callTurn": 2,
    "tools": ["shell"],
    "delegated": {"outputTokens": 20},
    "delegatedTurns": 8,
    "owner": "someone",
    "endedAt": _LATER,
}

TASK = Task(
    id="t1",
    conversation_id="c1",
    agent_id="a1",
    started_at=NOW,
    owner="someone",
    request=TaskRequest(
        prompt="Do it.",
        model="m/x",
        workspace="/work",
        api_base="http://localhost:1/v1",
        network="on",
        thinking_level="high",
        answer_schema={"type": "object"},
        tools=("shell",),
        own_key=True,
        summarises=True,
    ),
    origin=TaskOrigin(parent_id="t00", depth=1, title="Part", call_id="call_0", call_turn=2, follows="t0"),
    options=TaskOptions(mode="task", decided="task", approve="edits", attended=False),
    budget=TaskBudget(
        max_turns=7,
        budget_usd=1.5,
        max_minutes=9.0,
        max_tokens=1000,
        allowance=Allowance(turns=70),
        near=("turns",),
    ),
    activity=TaskActivity(
        status="completed",
        detail="stopping",
        current_tool="shell",
        calls=(CallProgress(call_id="call_1", started_at=NOW),),
        attempt=5,
        ask_id="k1",
        stopping=True,
        pausing=True,
        retry_at=NOW + timedelta(minutes=1),
        limited_at=NOW,
        resumes=True,
        worked_s=6.5,
    ),
    progress=TaskProgress(
        step_count=3,
        messages=4,
        refused_calls=1,
        acting_calls=2,
        usage=Usage(input_tokens=10),
        delegated=Usage(output_tokens=20),
        delegated_turns=8,
        summarised=True,
        working_dir="/work/a",
    ),
    queue=(Queued(id="q1", kind="steer", text="also", queued_at=NOW),),
    todo=(TodoItem(text="look", status="done"),),
    outcome=TaskOutcome(
        stop_reason="completed",
        completion="declared",
        summary="Done.",
        error="no",
        answer={"n": 1},
        ended_at=NOW + timedelta(minutes=1),
    ),
)


# The triggers of that time wrote to the index at once, which no test of old tasks needs.
_BATCHED_SEARCH = (
    "DROP TRIGGER nodes_rest",
    "DROP TABLE node_unindexed",
    *(
        statement
        for name in ("nodes_indexed", "nodes_leave", "nodes_return", "nodes_deleted")
        for statement in (f"DROP TRIGGER {name}", f"CREATE TRIGGER {name} AFTER INSERT ON nodes BEGIN SELECT 1; END")
    ),
)


async def back_to_flat_tasks(database: Database) -> None:
    """Undo the changes of the schema since revision 0015, before which tasks were flat."""
    for statement in (
        "DROP TABLE task_requests",
        "CREATE INDEX nodes_by_time ON nodes (created_at, number)",
        *(() if await database.on_server() else _BATCHED_SEARCH),
        "UPDATE alembic_version SET version_num = '0015'",
    ):
        await execute(database, statement)
