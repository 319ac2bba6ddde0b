"""Hostile arguments for every tool: a clear error for the model, a short one for people, nothing left running.

What the policy would ask about is not executed: no value here may do anything on this machine.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import cast

import msgspec
import pytest

from errand.engine.core.cancel import CancelSignal
from errand.engine.models.reply.builder import parse_arguments
from errand.engine.permissions.policy import decide
from errand.engine.tools.argument_check import check_in_time
from errand.engine.tools.base import Tool
from errand.engine.tools.context import ToolContext
from errand.engine.tools.registry import NAMES
from errand.engine.tools.results import ToolError, ToolResult
from errand.protocol.base import JsonObject, JsonValue
from tests.attacks.campaign import Campaign
from tests.support.limits import WAIT_LIMIT_S
from tests.support.loop_parts import make_tool_context, text_of, tool_of

_MAX_ERROR_LENGTH, _MAX_SUMMARY_LENGTH = 40_000, 200
# Far above what a call takes on a busy machine, far below what blocks a task.


def _deep(levels: int) -> JsonValue:
    value: JsonValue = "x"
    for _ in range(levels):
        value = {"a": [value]}
    return value


def _values(campaign: Campaign) -> dict[str, JsonValue]:
    size = campaign.rounds(1_000_000, 10_000_000)
    return {
        "nothing": None,
        "an empty text": "",
        "NUL": "a\0b",
        "escape sequences": "\x1b]0;title\x07\x1b[2J\u202etxt.exe",
        "line feeds": "a\r\nb\n\n",
        "a long text": "x" * size,
        "a long line of slashes": "a/" * (size // 2),
        "a path upwards": "../../../../../../nothing-here",
        "a link to itself": "loop/x",
        "a link outwards": "out/file",
        "a named pipe": "pipe",
        "a pattern that explodes": "(a+)+$" * 10,
        "an address with a name": "http://localhost@evil.test/",
        "another scheme": "javascript:alert(1)",
        "deep JSON": _deep(40),
        "deeper JSON": _deep(400),
        "a huge number": 1e300,
        "a negative number": -1,
        "not a number": "NaN",
        "many items": cast(JsonValue, ["x"] * 100_000),
        "many names": {f"n{index}": index for index in range(20_000)},
    }


def _calls(tool: Tool, values: dict[str, JsonValue]) -> Iterator[tuple[str, JsonObject]]:
    """Each action with each hostile value in the place of each argument, alone and beside plausible others."""
    properties = cast(dict[str, JsonObject], tool.parameters["properties"])
    actions = cast(list[str], properties.get("action", {}).get("enum", []))
    plausible: JsonObject = {name: _plausible(schema) for name, schema in properties.items()}
    for action in actions or [""]:
        head: JsonObject = {"action": action} if action else {}
        for name in properties:
            for kind, value in values.items():
                yield f"{action} {name}: {kind}", {**head, name: value}
                yield f"{action} {name}: {kind}, with others", {**plausible, **head, name: value}
    yield "no arguments", {}
    yield "arguments that nobody knows", {"__proto__": {}, "": 1, "\0": _deep(30)}


def _plausible(schema: JsonObject) -> JsonValue:
    kinds: dict[JsonValue, JsonValue] = {"string": "a", "integer": 1, "number": 1, "boolean": False, "array": []}
    kind = schema.get("type")
    return kinds.get(kind if isinstance(kind, str) else None)


@pytest.fixture
async def context(tmp_path: Path) -> AsyncGenerator[ToolContext]:
    tool_context = make_tool_context(tmp_path)
    (tool_context.workspace / "loop").symlink_to("loop")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("of somebody else", encoding="utf-8")
    (tool_context.workspace / "out").symlink_to(tmp_path / "outside")
    (tool_context.workspace / "a").write_text("text\n", encoding="utf-8")
    os.mkfifo(tool_context.workspace / "pipe")
    yield tool_context
    await tool_context.sessions.all.close()
    assert await tool_context.processes.end() == ()
    assert (tmp_path / "outside" / "file").read_text(encoding="utf-8") == "of somebody else"


# `mcp` exists only beside servers.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "mcp"])
async def test_a_tool_answers_hostile_arguments_with_a_clear_error(
    name: str, context: ToolContext, tmp_path: Path
) -> None:
    campaign = Campaign()
    tool = tool_of(context, name)
    calls = list(_calls(tool, _values(campaign)))
    most = campaign.rounds(20, len(calls))
    for label, arguments in campaign.random(name).sample(calls, min(most, len(calls))):
        began = time.monotonic()
        try:
            async with asyncio.timeout(WAIT_LIMIT_S):
                result = await _called(tool, arguments, context, tmp_path)
        except ToolError as error:
            assert str(error).strip(), label
            assert len(str(error)) <= _MAX_ERROR_LENGTH, (label, len(str(error)))
            assert len(error.summary) <= _MAX_SUMMARY_LENGTH, (label, error.summary)
        except TimeoutError:
            pytest.fail(f"{name}, {label}: no answer in {time.monotonic() - began:.0f} s")
        else:
            assert result is None or len(text_of(result)) <= 200_000, label
        campaign.count("tool calls")


async def _called(tool: Tool, arguments: JsonObject, context: ToolContext, private: Path) -> ToolResult | None:
    """The call as the loop makes it; None if the policy does not allow it unasked."""
    received = parse_arguments(msgspec.json.encode(arguments).decode())
    if received is None:
        return None  # refused before it reaches a tool
    tool.display(received)
    cancel = CancelSignal()
    prepared = tool.prepare_arguments(received)
    checked = await check_in_time(tool.name, tool.parameters, prepared, lambda: cancel.is_set)
    access = await asyncio.to_thread(tool.access, checked)
    decision = decide(access, context.workspace, "ask", frozenset(), private / "private")
    if decision.verdict != "allow":
        return None
    tool.allow("call", access)
    return await tool.execute("call", checked, cancel, lambda _: None)
