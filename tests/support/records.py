"""Records to store: minimal ones, with the fields that a test cares about."""

import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from errand.protocol.agents import Agent
from errand.protocol.asks import Ask, Grant
from errand.protocol.base import JsonObject
from errand.protocol.blocks import TextBlock
from errand.protocol.conversations import Conversation, Node, NodeStatus
from errand.protocol.events import EventRecord, LogRecord
from errand.protocol.tasks.groups import TaskActivity, TaskOutcome, TaskProgress, TaskRequest
from errand.protocol.tasks.task import Task

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

S = TypeVar("S", bound=msgspec.Struct)

_MADE: dict[type[msgspec.Struct], list[Any]] = {}

_JSON: JsonObject = {"text": 'q" \\ \u2028 é 🙂', "list": [1, 2.5, None, True], "empty": {}}

_PLAIN: dict[type[inspect.Type], Callable[[], list[object]]] = {
    inspect.AnyType: lambda: [_JSON, None, 7],
    inspect.NoneType: lambda: [None],
    inspect.BoolType: lambda: [True, False],
    inspect.IntType: lambda: [0, 2**53],
    inspect.FloatType: lambda: [0.25, 1e-9],
    inspect.StrType: lambda: ['q" \\ \u2028 é 🙂', ""],
    inspect.DateTimeType: lambda: [datetime(2026, 11, 20, 10, 0, 0, 123456, tzinfo=UTC)],
    inspect.DateType: lambda: [date(2026, 11, 20)],
    inspect.RawType: lambda: [msgspec.Raw(b'{"a":[1]}')],
}


def conversation(conversation_id: str = "c1", at: datetime = NOW, archived: bool = False) -> Conversation:
    return Conversation(id=conversation_id, title="A title", created_at=NOW, updated_at=at, archived=archived)


def node(
    node_id: str,
    parent_id: str | None = None,
    conversation_id: str = "c1",
    text: str = "Hello.",
    status: NodeStatus = "complete",
) -> Node:
    return Node(
        id=node_id,
        conversation_id=conversation_id,
        parent_id=parent_id,
        role="assistant",
        author="a1",
        blocks=(TextBlock(text=text),),
        status=status,
        created_at=NOW,
    )


def agent(agent_id: str = "a1", version: int = 0, head_id: str | None = None, at: datetime = NOW) -> Agent:
    return Agent(
        id=agent_id,
        conversation_id="c1",
        personality_id="assistant",
        name="Assistant",
        head_id=head_id,
        version=version,
        created_at=at,
    )


def task(
    task_id: str = "t1", step_count: int = 0, started_at: datetime = NOW, ended_at: datetime | None = None
) -> Task:
    return Task(
        id=task_id,
        conversation_id="c1",
        agent_id="a1",
        started_at=started_at,
        request=TaskRequest(prompt="Do it.", model="scripted/tour", workspace="/tmp"),
        activity=TaskActivity(status="completed" if ended_at else "running"),
        progress=TaskProgress(step_count=step_count),
        outcome=TaskOutcome(ended_at=ended_at),
    )


def ask(ask_id: str = "k1", at: datetime = NOW) -> Ask:
    return Ask(id=ask_id, task_id="t1", conversation_id="c1", kind="question", text="Which?", created_at=at)


def grant(grant_id: str = "g1") -> Grant:
    return Grant(
        id=grant_id,
        tool="shell",
        exact="make test",
        scope="workspace",
        scope_id="/tmp/project",
        created_at=NOW,
        created_by="local",
        ask_id="k1",
    )


def logged(*records: EventRecord) -> tuple[LogRecord, ...]:
    """The records as the log keeps them."""
    return tuple(LogRecord(sequence=record.sequence, epoch=record.epoch, event=record.event) for record in records)


def samples(struct: type[S]) -> Iterator[S]:
    """The minimal instance, then as many full ones as the field with the most variants has."""
    if struct not in _MADE:
        info = inspect.type_info(struct)
        assert isinstance(info, inspect.StructType)
        _make(info)
    yield from _MADE[struct]


def _make(info: inspect.StructType) -> list[Any]:
    """Once for each struct: most are parts of many others."""
    if (instances := _MADE.get(info.cls)) is None:
        values = {field.name: _values(field.type) for field in info.fields}
        instances = [info.cls(**{field.name: values[field.name][0] for field in info.fields if field.required})]
        for index in range(max((len(some) for some in values.values()), default=0)):
            instances.append(info.cls(**{name: some[index % len(some)] for name, some in values.items()}))
        _MADE[info.cls] = instances
    return instances


def _values(kind: inspect.Type) -> list[Any]:
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)]()
    match kind:
        case inspect.Metadata():
            return _values(kind.type)
        case inspect.LiteralType():
            return list(kind.values)
        case inspect.UnionType():
            return list(itertools.chain.from_iterable(_values(member) for member in kind.types))
        case inspect.TupleType():
            return [tuple(_values(member)[0] for member in kind.item_types)]
        case inspect.VarTupleType():
            some = _values(kind.item_type)
            return [tuple(some), ()]
        case inspect.DictType():
            return [dict.fromkeys(_values(kind.key_type), _values(kind.value_type)[0]), {}]
        case inspect.StructType():
            return _make(kind)
        case _:
            raise AssertionError(f"no sample of {kind}")
