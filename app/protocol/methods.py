"""Envelopes, and the table of all methods. Each method is declared beside its structs."""

from typing import Literal

import msgspec

from app.protocol.agents import (
    AGENT_CREATE,
    AGENT_DELETE,
    AGENT_GET,
    AGENT_LIST,
    AGENT_SET_HEAD,
    PERSONALITY_DELETE,
    PERSONALITY_LIST,
    PERSONALITY_SAVE,
)
from app.protocol.asks import ASK_ANSWER, ASK_LIST, GRANT_LIST, GRANT_REVOKE
from app.protocol.base import JsonValue, Wire
from app.protocol.context import CONTEXT_EXPLAIN, CONVERSATION_EDIT_SUMMARY, CONVERSATION_SUMMARISE, PROMPT_GET
from app.protocol.conversations import (
    AGENT_CHAT,
    CONVERSATION_CHANGE,
    CONVERSATION_COMPARE,
    CONVERSATION_GET,
    CONVERSATION_LIST,
    CONVERSATION_NODES,
    CONVERSATION_SEARCH,
    CONVERSATION_TREE,
    TASK_COMPARE_MODELS,
)
from app.protocol.data import (
    CONVERSATION_DELETE,
    DATA_EXPORT,
    DATA_IMPORT,
    DATA_ORPHANS,
    DATA_PRUNE,
    DATA_SUMMARY,
)
from app.protocol.engine import (
    CHALLENGE,
    ENGINE_SHUTDOWN,
    ENGINE_STATUS,
    INITIALIZE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    HealthUpdate,
)
from app.protocol.events import Delta, EventRecord, Resync
from app.protocol.executions import EXECUTION_LIST, EXECUTION_OUTPUT
from app.protocol.settings import (
    KEY_SET,
    MODEL_LIST,
    MODEL_SERVER_REMOVE,
    MODEL_SERVER_SAVE,
    MODEL_SERVER_TEST,
    MODEL_TEST,
    SETTINGS_GET,
    SETTINGS_SET,
)
from app.protocol.tasks import (
    TASK_CHANGE_QUEUED,
    TASK_FOLLOW_UP,
    TASK_GET,
    TASK_LIST,
    TASK_NEXT,
    TASK_PAUSE,
    TASK_PLANS,
    TASK_RECORD,
    TASK_REMOVE_QUEUED,
    TASK_RESUME,
    TASK_RETRY,
    TASK_SET_MODE,
    TASK_START,
    TASK_STEER,
    TASK_STOP,
    TASK_TRY_NOW,
)
from app.protocol.usage import USAGE_REPORT

METHODS = (
    CHALLENGE,
    INITIALIZE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    ENGINE_STATUS,
    ENGINE_SHUTDOWN,
    TASK_START,
    TASK_RETRY,
    TASK_COMPARE_MODELS,
    TASK_STOP,
    TASK_PAUSE,
    TASK_RESUME,
    TASK_TRY_NOW,
    TASK_SET_MODE,
    TASK_STEER,
    TASK_FOLLOW_UP,
    TASK_CHANGE_QUEUED,
    TASK_REMOVE_QUEUED,
    TASK_GET,
    TASK_NEXT,
    TASK_LIST,
    TASK_PLANS,
    TASK_RECORD,
    ASK_ANSWER,
    ASK_LIST,
    CONVERSATION_LIST,
    CONVERSATION_GET,
    CONVERSATION_NODES,
    CONVERSATION_TREE,
    CONVERSATION_SEARCH,
    CONVERSATION_CHANGE,
    CONVERSATION_COMPARE,
    CONVERSATION_DELETE,
    AGENT_LIST,
    AGENT_GET,
    AGENT_CREATE,
    AGENT_DELETE,
    AGENT_CHAT,
    AGENT_SET_HEAD,
    PERSONALITY_LIST,
    PERSONALITY_SAVE,
    PERSONALITY_DELETE,
    EXECUTION_LIST,
    EXECUTION_OUTPUT,
    GRANT_LIST,
    GRANT_REVOKE,
    MODEL_LIST,
    MODEL_TEST,
    MODEL_SERVER_TEST,
    MODEL_SERVER_SAVE,
    MODEL_SERVER_REMOVE,
    USAGE_REPORT,
    CONTEXT_EXPLAIN,
    PROMPT_GET,
    CONVERSATION_SUMMARISE,
    CONVERSATION_EDIT_SUMMARY,
    DATA_SUMMARY,
    DATA_EXPORT,
    DATA_IMPORT,
    DATA_ORPHANS,
    DATA_PRUNE,
    SETTINGS_GET,
    SETTINGS_SET,
    KEY_SET,
)


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a client. The client chooses `id`; a command sent twice with one id runs once."""

    method: str
    id: str | int
    params: msgspec.Raw = msgspec.Raw(b"{}")
    jsonrpc: Literal["2.0"] = "2.0"


class FailureObject(Wire, frozen=True, kw_only=True):
    """The error of a failed request.

    `code` is numeric (-32700 to -32600 as in JSON-RPC, -32000 for the engine's errors); `data.code` is the engine's
    error code.
    """

    code: int
    message: str
    data: dict[str, JsonValue] | None = None


class Response(msgspec.Struct, frozen=True):
    """The answer to a request: `result` or `error`."""

    id: str | int | None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: FailureObject | msgspec.UnsetType = msgspec.UNSET
    jsonrpc: Literal["2.0"] = "2.0"


class Notice(msgspec.Struct, frozen=True):
    """A message that the engine sends unasked: `event` (params an `EventRecord`), `delta`, `resync` or `health`."""

    method: Literal["event", "delta", "resync", "health"]
    params: EventRecord | Delta | Resync | HealthUpdate
    jsonrpc: Literal["2.0"] = "2.0"
