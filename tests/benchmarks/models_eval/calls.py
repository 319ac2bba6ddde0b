"""Counts of an agent's calls: meant, well formed, run."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from errand.engine.tools.registry import CONTROL_TOOLS
from errand.protocol.blocks import TextBlock, ToolCallBlock, ToolResultBlock
from errand.protocol.conversations import Node
from tests.benchmarks.models_eval.task import Run

# Forms in which models write calls as text: tags, JSON with a name and arguments, a call like a function's.
_CALL_TAG = re.compile(r"<\|?(?:tool_call|tool_calls|tools?|tool_code|function_call|function=\w+|invoke\b[^>]*)\|?>")
_CALL_JSON = re.compile(
    r"\"(?:name|tool|tool_name|function|action)\"\s*:\s*\"[^\"\n]{1,80}\"\s*,\s*\"(?:arguments|parameters|args|input)\"\s*:"
)
_CALL_FENCE = re.compile(r"```(?:tool_code|tool_call|tool)\b")
_CALL_EXPRESSION = re.compile(
    r"^\s*(?:read|write|edit|bash|shell|code|grep|glob|task_complete|ask_user)\(", re.MULTILINE
)
_CALL_FORMS = (_CALL_TAG, _CALL_JSON, _CALL_FENCE, _CALL_EXPRESSION)

_CONTROL_NAMES = frozenset(tool.name for tool in CONTROL_TOOLS)
# Marks of calls that were left out.
_LEFT_OUT = frozenset(("skipped", "stopped"))
# How the results of calls begin that reached no tool.
_NOT_RUN = re.compile(r"Wrong arguments: |Validation failed for tool |Tool .{1,200} not found\.")


@dataclass(frozen=True, slots=True)
class CallCounts:
    """Calls of a task.

    `meant` are all calls, and replies without a call whose text looks like one; `well_formed` are calls of a tool that
    exists with arguments that fit; `run` are those of them that were neither denied nor left out. `worked` are the run
    calls of tools that do not only control the task.
    """

    meant: int
    well_formed: int
    run: int
    worked: int


def looks_like_call(text: str) -> bool:
    """Return True for a text in one of the forms in which models write calls."""
    return any(form.search(text) for form in _CALL_FORMS)


def count_calls(runs: Sequence[Run]) -> CallCounts:
    """Count the calls of all replies of a task, and what became of them."""
    meant = well_formed = run = worked = 0
    for task_run in runs:
        for number, node in enumerate(task_run.nodes):
            if node.role != "assistant":
                continue
            calls = [block for block in node.blocks if isinstance(block, ToolCallBlock)]
            text = "\n".join(block.text for block in node.blocks if isinstance(block, TextBlock))
            meant += len(calls) or looks_like_call(text)
            results = _results_of(task_run.nodes[number + 1 :])
            for call in calls:
                result = results.get(call.call_id)
                if call.invalid is not None or result is None or (result.is_error and _NOT_RUN.match(result.text)):
                    continue
                well_formed += 1
                has_run = not (
                    _LEFT_OUT & {*result.marks} or (result.is_error and result.text.startswith("Not allowed: "))
                )
                run += has_run
                worked += has_run and call.tool not in _CONTROL_NAMES
    return CallCounts(meant, well_formed, run, worked)


def _results_of(nodes: Sequence[Node]) -> dict[str, ToolResultBlock]:
    """Return the results before the next reply: some servers use the same ids again."""
    before = takewhile(lambda node: node.role != "assistant", nodes)
    return {block.call_id: block for node in before for block in node.blocks if isinstance(block, ToolResultBlock)}
