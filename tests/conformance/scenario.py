"""The format of a conformance file, as described in `README.md` beside it."""

from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

from errand.protocol.base import JsonObject, JsonValue

Mode = Literal["all", "one-at-a-time"]
Profile = Literal["modern", "seed"]
PROFILES: tuple[Profile, ...] = ("modern", "seed")

_RENAMED = {"raise_": "raise", "return_": "return", "continue_": "continue"}


class SetMode(Struct, frozen=True):
    steering: Mode | None = None
    follow_up: Mode | None = None


class Action(Struct, frozen=True):
    """An action on the agent during a run; one field is set."""

    steer: str | UnsetType = UNSET
    follow_up: str | UnsetType = UNSET
    abort: bool = False
    clear_all: bool = False
    clear_steering: bool = False
    clear_follow_up: bool = False
    set_mode: SetMode | None = None
    sleep: float | UnsetType = UNSET


class ScriptStep(Action, frozen=True, rename=_RENAMED):
    """A step of a tool's script."""

    emit: str | UnsetType = UNSET
    honour_abort: bool = False
    raise_: str | UnsetType = UNSET
    return_: str | UnsetType = UNSET
    terminate: bool = False
    details: JsonObject | None = None
    detach: list["ScriptStep"] | None = None


class PrepareArguments(Struct, frozen=True):
    rename: dict[str, str] = msgspec.field(default_factory=dict[str, str])


class ToolSpec(Struct, frozen=True):
    name: str
    parameters: JsonObject
    script: list[ScriptStep]
    description: str = ""
    execution_mode: Literal["parallel", "sequential"] = "parallel"
    prepare_arguments: PrepareArguments | None = None
    by_call: dict[str, list[ScriptStep]] = msgspec.field(default_factory=dict[str, list[ScriptStep]])


class CallSpec(Struct, frozen=True):
    id: str
    name: str
    args: JsonObject


Chunk: TypeAlias = str | Action


class BlockSpec(Struct, frozen=True):
    """One block of a reply; one field is set."""

    text: list[Chunk] | None = None
    thinking: list[Chunk] | None = None
    tool_call: CallSpec | None = None
    action: Action | None = None


class ReplySpec(Struct, frozen=True):
    blocks: list[BlockSpec] = msgspec.field(default_factory=list[BlockSpec])
    stop: Literal["stop", "toolUse", "tool_use", "length", "error", "aborted"] | None = None
    error: str | None = None
    throw: str | None = None
    no_start: bool = False


class MessageSpec(Struct, frozen=True):
    role: str
    text: str = ""
    thinking: str = ""
    tool_calls: list[CallSpec] = msgspec.field(default_factory=list[CallSpec])
    tool_call_id: str = ""
    tool_name: str = ""
    is_error: bool = False
    stop_reason: Literal["stop", "toolUse", "tool_use", "length", "error", "aborted"] | None = None
    error: str | None = None


class EventSpec(Struct, frozen=True):
    event: str
    nth: int = 1
    do: list[Action] = msgspec.field(default_factory=list[Action])


class Step(Struct, frozen=True, rename=_RENAMED):
    """One step of a scenario; one field is set."""

    prompt: str | list[MessageSpec] | UnsetType = UNSET
    start_prompt: str | list[MessageSpec] | UnsetType = UNSET
    join: bool = False
    continue_: bool = False
    steer: str | UnsetType = UNSET
    follow_up: str | UnsetType = UNSET
    abort: bool = False
    reset: bool = False
    wait_for_idle: bool = False
    wait_event: EventSpec | None = None
    drop_last_message: bool = False
    clear_all: bool = False
    clear_steering: bool = False
    clear_follow_up: bool = False
    set_mode: SetMode | None = None
    sleep: float | UnsetType = UNSET


class TransformSpec(Struct, frozen=True, rename=_RENAMED):
    keep_last: int | None = None
    append: str | None = None
    raise_: str | None = None


class ConvertSpec(Struct, frozen=True):
    drop: list[str] = msgspec.field(default_factory=list[str])
    as_user: list[str] = msgspec.field(default_factory=list[str])


class BeforeSpec(Struct, frozen=True, rename=_RENAMED):
    block: bool = False
    reason: str = ""
    terminate: bool = False
    raise_: str | None = None
    abort: bool = False


class AfterSpec(Struct, frozen=True, rename=_RENAMED):
    text: str | None = None
    details: JsonObject | None = None
    is_error: bool | None = None
    terminate: bool | None = None
    raise_: str | None = None


class Options(Struct, frozen=True):
    tool_execution: Literal["parallel", "sequential"] | None = None
    steering: Literal["skip_remaining", "finish_batch"] | None = None
    steering_mode: Mode = "one-at-a-time"
    follow_up_mode: Mode = "one-at-a-time"
    get_api_key: bool = False
    transform_context: TransformSpec | None = None
    convert_to_llm: ConvertSpec | None = None
    before_tool_call: dict[str, BeforeSpec] | None = None
    after_tool_call: dict[str, AfterSpec] | None = None
    finish_turn: list[Literal["end", "continue"] | None] | None = None
    prepare_next_turn: list[list[str] | None] | None = None


class Scenario(Struct, frozen=True):
    name: str
    replies: list[ReplySpec]
    steps: list[Step]
    about: str = ""
    system_prompt: str = ""
    tools: list[ToolSpec] = msgspec.field(default_factory=list[ToolSpec])
    options: Options = Options()
    on_event: list[EventSpec] = msgspec.field(default_factory=list[EventSpec])
    initial_messages: list[MessageSpec] = msgspec.field(default_factory=list[MessageSpec])


class Case(Struct, frozen=True):
    """A scenario and, for each profile it has, the recorded trace."""

    scenario: Scenario
    expected: dict[str, JsonValue]


def compact(value: JsonValue) -> str:
    """JSON without spaces, as in the recordings."""
    return msgspec.json.encode(value).decode()
