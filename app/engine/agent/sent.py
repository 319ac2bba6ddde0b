"""How much of each kind a model call sends, in characters: kept with its turn, to explain what the provider counted."""

from collections.abc import Iterable

from app.engine.agent.reach import SummaryMessage
from app.engine.messages import ToolResultMessage
from app.engine.models.base import ModelRequest
from app.engine.models.kept import Kept
from app.engine.models.usage import characters_of, characters_of_tool
from app.engine.storage.turns import PartSize
from app.protocol.context import ContextPart

# One request is measured to fit, for the record, and to learn from what its provider counted.
_measured: Kept[tuple[PartSize, ...]] = Kept()


def sizes_of(request: ModelRequest) -> tuple[PartSize, ...]:
    """The parts of a request that are not empty."""
    return _measured.of(request, lambda: _sizes(request))


def _sizes(request: ModelRequest) -> tuple[PartSize, ...]:
    first = request.messages[0] if request.messages else None
    summary = (first,) if isinstance(first, SummaryMessage) else ()
    after = len(summary) + (first.kept if isinstance(first, SummaryMessage) else 0)
    said = request.messages[after:]
    parts = (
        PartSize("system", len(request.system_prompt), 1),
        _part("tools", map(characters_of_tool, request.tools)),
        _part("summary", map(characters_of, summary)),
        _part("kept", map(characters_of, request.messages[len(summary) : after])),
        _part("history", (characters_of(one) for one in said if not isinstance(one, ToolResultMessage))),
        _part("results", (characters_of(one) for one in said if isinstance(one, ToolResultMessage))),
    )
    return tuple(part for part in parts if part.characters)


def _part(part: ContextPart, sizes: Iterable[int]) -> PartSize:
    counted = tuple(sizes)
    return PartSize(part, sum(counted), len(counted))
