"""The tool `find_tools`: names tools that a model is not told of directly, with their arguments."""

import re
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from errand.engine.core.cancel import CancelSignal
from errand.engine.core.messages import Text
from errand.engine.tools.arguments import decode, renamed, schema_of
from errand.engine.tools.base import Access, ExecutionMode
from errand.engine.tools.results import OnUpdate, ToolError, ToolResult
from errand.protocol.base import JsonObject
from errand.protocol.blocks import CallDisplay
from errand.text.translation import marked

_MAX_RESULTS = 5
_MAX_LISTED_NAMES = 100
_WORD = re.compile(r"[a-z0-9]+")
_DISPLAY = CallDisplay(
    kind="search", running=marked("looking for tools"), done=marked("looked for tools"), icon="wrench"
)


class _FindToolsArguments(msgspec.Struct, frozen=True):
    query: str


class DescribedTool(Protocol):
    """A tool as described to a model."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> JsonObject: ...


class FindTools:
    """Answers with the definitions of tools that are not offered directly. `hidden` returns them."""

    name = "find_tools"
    label = "Find tools"
    description = "Find more tools by what they do; the result has their arguments. Call them with call_tool."
    parameters = schema_of(_FindToolsArguments)
    execution_mode: ExecutionMode = "parallel"

    def __init__(self, hidden: Callable[[], Sequence[DescribedTool]]) -> None:
        self._hidden = hidden

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return renamed(arguments, {"name": "query", "text": "query", "search": "query"})

    @staticmethod
    def display(arguments: JsonObject) -> CallDisplay:
        query = arguments.get("query")
        return msgspec.structs.replace(_DISPLAY, target=query if isinstance(query, str) else "")

    def access(self, arguments: JsonObject) -> Access:
        return Access("free", "Look for tools.")

    def allow(self, call_id: str, access: Access) -> None:
        """Does nothing: the call accesses nothing."""

    async def execute(
        self, call_id: str, arguments: JsonObject, cancel: CancelSignal, on_update: OnUpdate
    ) -> ToolResult:
        query = decode(arguments, _FindToolsArguments).query
        tools = self._hidden()
        matches = best_matches(query, tools)
        if not matches:
            names = ", ".join(tool.name for tool in tools[:_MAX_LISTED_NAMES])
            raise ToolError(f"No tool fits {query[:200]!r}. There are: {names or 'no more tools'}.")
        texts = (
            f"{tool.name}: {tool.description}\n{msgspec.json.encode(tool.parameters).decode()}" for tool in matches
        )
        summary = "one tool" if len(matches) == 1 else f"{len(matches)} tools"
        return ToolResult((Text("\n\n".join(texts)),), summary=summary)


def best_matches(query: str, tools: Sequence[DescribedTool]) -> list[DescribedTool]:
    """Return the tools whose names and descriptions have most words of the query, best first."""
    query_words = set(_WORD.findall(query.casefold()))
    scored = [(_score(query_words, query, tool), tool) for tool in tools]
    best = sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])
    return [tool for _, tool in best[:_MAX_RESULTS]]


def _score(query_words: set[str], query: str, tool: DescribedTool) -> float:
    if tool.name == query.strip():
        return 100.0
    name = set(_WORD.findall(tool.name.casefold().replace("_", " ")))
    description = set(_WORD.findall(tool.description.casefold()))
    return 3.0 * len(query_words & name) + len(query_words & description)
