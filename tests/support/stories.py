"""Plays a scenario written in a test and tells it in short lines, so that a whole run can be compared at a glance."""

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from app.protocol.json import JsonValue
from tests.conformance.play import play
from tests.conformance.scenario import Profile, Scenario

_ANYTHING: dict[str, object] = {"type": "object", "properties": {"value": {"type": "string"}}}


Record: TypeAlias = dict[str, JsonValue]


class Trace(msgspec.Struct, frozen=True):
    """What a scenario did, as `tests/conformance/README.md` writes it."""

    events: list[Record]
    llm_calls: list[list[Record]]
    errors: list[Record]
    final_messages: list[Record]
    final_error: str | None


def call(call_id: str, name: str = "echo", value: str = "") -> dict[str, object]:
    return {"tool_call": {"id": call_id, "name": name, "args": {"value": value or call_id}}}


def calls(*call_ids: str) -> dict[str, object]:
    """A reply that calls the tool `echo` once for each id."""
    return {"blocks": [call(call_id) for call_id in call_ids]}


def says(*chunks: object) -> dict[str, object]:
    return {"blocks": [{"text": list(chunks)}]}


def echo(**by_call: object) -> dict[str, object]:
    """A tool that returns its value, with another script for some calls."""
    return tool("echo", [{"return": "${value}"}], **by_call)


def tool(name: str, script: object, **by_call: object) -> dict[str, object]:
    return {"name": name, "parameters": _ANYTHING, "script": script, "by_call": by_call}


async def story(scenario: Mapping[str, object], profile: Profile = "modern") -> list[str]:
    """One line for each message, call and turn; a prompt `go` is the default step."""
    return told(await trace(scenario, profile))


async def trace(scenario: Mapping[str, object], profile: Profile = "modern") -> Trace:
    complete = {"name": "test", "steps": [{"prompt": "go"}], **scenario}
    return msgspec.convert(await play(msgspec.convert(complete, Scenario), profile), Trace)


def told(recorded: Trace) -> list[str]:
    lines = [_line(event) for event in recorded.events if event["type"] not in ("message_start", "message_update")]
    return lines + [f"refused: {error['message']}" for error in recorded.errors]


def _line(event: Record) -> str:
    match event["type"]:
        case "message_end" if event["role"] == "assistant":
            failure = f" ({event['error']})" if "error" in event else ""
            return f"assistant {event['stop_reason']}: {event['text']}{failure}"
        case "message_end" if event["role"] == "tool_result":
            return f"result {event['tool_call_id']}: {event['text']}"
        case "message_end":
            return f"{event['role']}: {event['text']}"
        case "tool_execution_start":
            return f"start {event['id']}"
        case "tool_execution_update":
            return f"update {event['id']}: {event['text']}"
        case "tool_execution_end":
            return f"{'fail' if event['is_error'] else 'end'} {event['id']}: {event['text']}"
        case "agent_end":
            return f"agent_end {len(msgspec.convert(event['roles'], list[str]))}"
        case other:
            return str(other)
