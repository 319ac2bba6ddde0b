"""The tool `search_memory`: finds earlier messages in all conversations, by their words."""

from typing import Annotated

from msgspec import Meta, Struct

from app.engine.core.cancel import CancelSignal
from app.engine.core.messages import in_tags
from app.engine.tools.base import (
    Access,
    ExecutionMode,
    OnUpdate,
    ToolContext,
    ToolError,
    ToolResult,
    decode,
    hidden,
    schema_of,
    text_argument,
    text_result,
)
from app.engine.tools.plain_text import clean_output
from app.protocol.base import JsonObject
from app.protocol.blocks import CallDisplay
from app.protocol.conversations import SearchHit

_LONGEST_QUERY = 1_000
_LONGEST_TITLE = 120
_LONGEST_LINE = 300
# Around the words that were found.
_MARKS = str.maketrans("", "", "\u2068\u2069")
_WHO = {"user": "the person", "assistant": "an agent", "tool_result": "a tool", "system": "Errand"}


class SearchMemoryArguments(Struct, frozen=True):
    query: Annotated[
        str,
        Meta(
            description="A few telling words or a phrase in quotes. Operators: from:user, in:TITLE, tool:NAME, "
            "before:2026-11-01, after:2026-10."
        ),
    ]
    limit: Annotated[int, Meta(ge=1, le=50, description="The most hits.")] = 10


class SearchMemory:
    name = "search_memory"
    label = "Search memory"
    description = (
        "Find what was said and done before in all conversations of the person: messages, replies and results of "
        "tools, by their words. Use it when something refers to earlier work. This task itself is left out."
    )
    parameters = schema_of(SearchMemoryArguments)
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return {key: value for key, value in arguments.items() if value is not None}

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        query = text_argument(arguments, "query")
        return CallDisplay(running="searching memory for", done="searched memory for", target=query, icon="search")

    def access(self, arguments: JsonObject) -> Access:
        wanted = decode(arguments, SearchMemoryArguments)
        # It reads the engine's own record, which no rule about paths covers.
        return Access("free", f"Search all conversations for “{wanted.query[:_LONGEST_QUERY]}”")

    def allow(self, call_id: str, access: Access) -> None:
        """Nothing to keep: a search has no effects."""

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        wanted = decode(arguments, SearchMemoryArguments)
        query = clean_output(wanted.query[:_LONGEST_QUERY].encode("utf-8", "replace"))
        if not any(letter.isalnum() for letter in query):
            raise ToolError("The query has no word. Give a few telling words.")
        hits = await self._context.find_messages(query, wanted.limit)
        if cancel.is_set:
            raise ToolError("Operation aborted")
        if not hits:
            return text_result("Nothing was found. Try fewer or other words.", "nothing found")
        text = "\n\n".join(_hit_text(number, hit) for number, hit in enumerate(hits, 1))
        count = f"{len(hits)} {'hit' if len(hits) == 1 else 'hits'}"
        details: JsonObject = {
            "hits": [{"conversation_id": hit.conversation_id, "node_id": hit.node_id} for hit in hits]
        }
        return hidden(text_result(f"{count}, the best first:\n\n{text}", count, details), self._context.redactor)


def _hit_text(number: int, hit: SearchHit) -> str:
    title = _line(hit.conversation_title, _LONGEST_TITLE) or "without a title"
    archived = " Archived," if hit.conversation_archived else ""
    place = f" Entry {hit.place} of {hit.of}," if hit.of else ""
    head = f"{number}.{archived}{place} {hit.created_at:%Y-%m-%d %H:%M} UTC, {_WHO.get(hit.role, hit.role)}:"
    lines = [f"(conversation) {title}"]
    lines += [f"(before) {_line(hit.before)}"] if hit.before else []
    lines.append(_line(hit.snippet))
    lines += [f"(after) {_line(hit.after)}"] if hit.after else []
    said = in_tags("\n".join(lines), "found")
    return f"{head}\n{said}"


def _line(text: str, longest: int = _LONGEST_LINE) -> str:
    line = " ".join(text.translate(_MARKS).split())
    return line if len(line) <= longest else f"{line[:longest]}…"
