"""Envelopes, and the table of all methods. Each method is declared beside its structs."""

from typing import Literal

import msgspec

from errand.protocol import (
    agents,
    asks,
    background,
    changes,
    comparisons,
    context,
    conversations,
    data,
    engine,
    executions,
    local_models,
    memory,
    pictures,
    servers,
    settings,
    skills,
    usage,
)
from errand.protocol.base import JsonValue, Wire
from errand.protocol.engine import HealthUpdate
from errand.protocol.events import Delta, EventRecord, LogRecord, Resync
from errand.protocol.tasks import methods as tasks

METHODS = (
    *engine.METHODS,
    *tasks.METHODS,
    *asks.METHODS,
    *conversations.METHODS,
    *comparisons.METHODS,
    *agents.METHODS,
    *executions.METHODS,
    *changes.METHODS,
    *background.METHODS,
    *settings.METHODS,
    *local_models.METHODS,
    *servers.METHODS,
    *usage.METHODS,
    *context.METHODS,
    *memory.METHODS,
    *data.METHODS,
    *skills.METHODS,
    *pictures.METHODS,
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
    """A message that the engine sends unasked: `event` (params a `LogRecord`), `delta`, `resync` or `health`."""

    method: Literal["event", "delta", "resync", "health"]
    params: LogRecord | EventRecord | Delta | Resync | HealthUpdate
    jsonrpc: Literal["2.0"] = "2.0"
