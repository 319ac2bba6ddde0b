"""Replies that are no answer: nothing to read, an end before the call or answer, a call written as text."""

import re
from collections.abc import Iterator, Sequence

from errand.engine.agent.run.replies.written_calls import MAX_CALL_CHARACTERS, written_calls
from errand.engine.core.messages import AssistantMessage
from errand.engine.models.base import ToolDefinition
from errand.protocol.notices import MissingAnswer

# At the start of a line: the marks in which models are trained to write calls. The second ones mean more than calls,
# so that a tool must be named after them.
_MARK = re.compile(
    r"^[ \t]*(?:<(?:tool_call|tool_calls|function_call|function_calls|tool_code|tool_use)\b[^>\n]*>"
    r"|<function=[^>\n]*>|\[TOOL_CALLS?\]|<\|(?:tool_call|tool_calls|python_tag|start_of_tool)[^>\n]*\|?>"
    r"|<[|｜]tool[▁_]calls?[^>\n]*>|(?:<\|(?:start|channel)\|>|assistant|commentary)[^\n]*\bto=)",
    re.MULTILINE | re.IGNORECASE,
)
_VAGUE_MARK = re.compile(
    r"^[ \t]*(?:<(?:tools?|invoke|function)\b[^>\n]*>|(?:\*\*)?Action:)", re.MULTILINE | re.IGNORECASE
)
# What follows a call written as text: nothing but closing marks.
_END = re.compile(r"(?:\}|\]|>|```|\))\s*\Z")


def missing_answer(
    reply: AssistantMessage, tools: Sequence[ToolDefinition], call_text: str | None = None
) -> MissingAnswer | None:
    """Why a complete reply is no answer; None if it is one, or calls a tool.

    `call_text` is its text with the marks of tokens that it copied (see `ReplyEnd`): a copied token makes no call.
    """
    if reply.tool_calls or reply.stop_reason in ("error", "aborted", "length"):
        return None
    if reply.stop_reason == "tool_use":
        return "unfinished"
    if not reply.text.strip():
        return "empty"
    text = reply.text if call_text is None else call_text
    return "call_as_text" if tools and _is_call(text.strip(), tools) else None


def _is_call(text: str, tools: Sequence[ToolDefinition]) -> bool:
    if len(text) > MAX_CALL_CHARACTERS or not _END.search(text):
        return False
    if _has_mark(_MARK, text):
        return True
    names = {*_known_names(tools)}
    if _has_mark(_VAGUE_MARK, text):
        return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in names)
    called = [call.name.rpartition(".")[2] for call in written_calls(text)]
    # Other names count only where nobody would write such an object as data.
    return bool(called) and (names.issuperset(called) or (not text.startswith("```") and '"arguments"' in text))


def _has_mark(mark: re.Pattern[str], text: str) -> bool:
    return any(not _is_in_fence(text, match.start()) for match in mark.finditer(text))


def _is_in_fence(text: str, position: int) -> bool:
    """True inside a fence that began after other text: an example in an answer."""
    before = text[:position]
    return before.count("```") % 2 == 1 and not before.startswith("```")


def _known_names(tools: Sequence[ToolDefinition]) -> Iterator[str]:
    """Yield the names of tools and of their actions: small models call `read` where the tool is `code`."""
    for tool in tools:
        yield tool.name
        properties = tool.parameters.get("properties")
        action = properties.get("action") if isinstance(properties, dict) else None
        values = action.get("enum") if isinstance(action, dict) else None
        yield from (value for value in values if isinstance(value, str)) if isinstance(values, list) else ()
