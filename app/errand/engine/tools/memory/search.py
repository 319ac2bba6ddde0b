"""The tool `search_memory`: finds what was said and done before, in all conversations."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import in_tags
from errand.engine.tools.arguments import decode, schema_of, text_argument
from errand.engine.tools.base import Access, ExecutionMode, PermissionTier
from errand.engine.tools.context import ToolContext
from errand.engine.tools.plain_text import clean_output
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult, hidden, text_result
from errand.protocol.base import JsonObject
from errand.protocol.blocks import CallDisplay, MemoryRole
from errand.protocol.memory import MemoryFilter, MemoryItem, MemorySearchParams
from errand.text.translation import marked

_MAX_QUERY_LENGTH = 1_000
_MAX_TITLE_LENGTH = 120
_ROLES: dict[str, tuple[MemoryRole, ...]] = {
    "messages": ("user",),
    "replies": ("agent",),
    "results": ("tool",),
    "tasks": ("task",),
}
_Kind = Literal["messages", "replies", "results", "tasks"]


class SearchMemoryArguments(Struct, frozen=True):
    query: Annotated[
        str,
        Meta(description="A question, or a few telling words. Names, dates and words that were used help most."),
    ]
    limit: Annotated[int, Meta(ge=1, le=50, description="The most hits.")] = 10
    kinds: Annotated[
        tuple[_Kind, ...],
        Meta(
            max_length=4,
            description="Only the person's messages, replies of agents, results of tools, or tasks and summaries.",
        ),
    ] = ()
    this_folder: Annotated[bool, Meta(description="Only conversations that work in this folder.")] = False
    after: Annotated[str, Meta(description="Only from this day on, such as 2026-11-02.")] = ""
    before: Annotated[str, Meta(description="Only from before this day.")] = ""


class SearchMemory:
    name = "search_memory"
    label = "Search memory"
    description = (
        "Find what was said and done before in all conversations of the person: messages, replies and results of "
        "tools, by meaning and by words. Use it when something refers to earlier work. This task is left out."
    )
    parameters = schema_of(SearchMemoryArguments)
    tier: PermissionTier = "free"
    activity = marked("searching memory")
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, context: ToolContext) -> None:
        self._context = context

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return {key: value for key, value in arguments.items() if value is not None}

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        query = text_argument(arguments, "query")
        return CallDisplay(
            kind="search", running="searching memory for", done="searched memory for", target=query, icon="text-search"
        )

    def access(self, arguments: JsonObject) -> Access:
        request = decode(arguments, SearchMemoryArguments)
        # It reads the engine's own record, which no rule about paths covers.
        return Access("free", f"Search all conversations for “{request.query[:_MAX_QUERY_LENGTH]}”")

    def allow(self, call_id: str, access: Access) -> None:
        """Nothing to keep: a search has no effects."""

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        request = decode(arguments, SearchMemoryArguments)
        query = clean_output(request.query[:_MAX_QUERY_LENGTH].encode("utf-8", "replace"))
        if not any(letter.isalnum() for letter in query):
            raise ToolError("The query has no word. Give a few telling words.")
        where = MemoryFilter(
            folders=(str(self._context.workspace),) if request.this_folder else (),
            roles=tuple(role for kind in request.kinds for role in _ROLES[kind]),
            after=_day(request.after),
            before=_day(request.before),
        )
        result = await self._context.memory.find(
            MemorySearchParams(text=query, limit=request.limit, where=where), cancel
        )
        if cancel.is_set:
            raise ToolError("Operation aborted")
        remark = f" ({result.remark})" if result.remark else ""
        if not result.hits:
            return text_result(f"Nothing was found. Try other words, or fewer conditions.{remark}", "nothing found")
        positions = {hit.number: position for position, hit in enumerate(result.hits, 1)}
        text = "\n\n".join(_hit_text(positions, hit) for hit in result.hits)
        count = f"{len(result.hits)} {'hit' if len(result.hits) == 1 else 'hits'}"
        details: JsonObject = {
            "hits": [{"conversation_id": hit.conversation_id, "node_id": hit.node_id} for hit in result.hits]
        }
        return hidden(
            text_result(f"{count}, the best first{remark}:\n\n{text}", count, details), self._context.redactor
        )


def _day(text: str) -> datetime | None:
    """Midnight in the zone of this machine. Raises `ToolError` for a day that does not exist."""
    if not text:
        return None
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError) as error:
        raise ToolError(f"{text[:40]!r} is no day. Write it like 2026-11-02.") from error


def _hit_text(positions: Mapping[int, int], hit: MemoryItem) -> str:
    title = " ".join(hit.conversation_title.split())[:_MAX_TITLE_LENGTH] or "without a title"
    cut = f"\n(the beginning of {hit.length:,} characters)" if hit.length > len(hit.text) else ""
    quoted = in_tags(f"(conversation) {title}\n{hit.text}{cut}", "found")
    times = f", {hit.times} times, the last time then" if hit.times > 1 else ""
    newer = f" {positions[hit.newer]}" if hit.newer in positions else ""
    older = f", older than the statement{newer} about the same" if hit.newer else ""
    return f"{positions[hit.number]}. {hit.at.astimezone():%Y-%m-%d %H:%M}, {hit.speaker}{times}{older}:\n{quoted}"
