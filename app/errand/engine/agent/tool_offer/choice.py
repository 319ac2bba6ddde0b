"""Which tools a model is offered, and how it calls them: decided by its size, its context window and its server."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from errand.engine.models.base import CallForm
from errand.engine.models.servers.served_models import ServedModel

ToolSetName: TypeAlias = Literal["minimal", "usual", "all"]
ToolSetMode: TypeAlias = Literal["auto", "minimal", "usual", "all"]

# In billions of parameters. Models up to this size were measured to call tools badly by themselves (decision 82).
_SMALL_MODEL = 4.0
# In tokens. Instructions, the usual tools and a little work need more.
_SMALL_WINDOW = 8_192


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """The tools that a model is offered directly. `named` are registered names that a person chose, always offered.

    `window` is the context window in tokens, None if unknown. `call_form` is how the model calls them. `is_small`: the
    model or its window is.
    """

    set_name: ToolSetName = "usual"
    call_form: CallForm = "native"
    window: int | None = None
    named: frozenset[str] = frozenset()
    is_small: bool = False


def choose_tools(
    mode: ToolSetMode, served: ServedModel | None, window: int | None, named: frozenset[str]
) -> ToolChoice:
    """Return what fits a model. `served` is what its server says of it, None for a cloud provider or if unknown."""
    is_small = served is not None and served.parameters is not None and served.parameters <= _SMALL_MODEL
    can_constrain = served is not None and bool(served.constraints & {"json_schema", "format"})
    has_little_room = window is not None and window < _SMALL_WINDOW
    set_name = ("minimal" if is_small or has_little_room else "usual") if mode == "auto" else mode
    call_form: CallForm = "json" if is_small and can_constrain else "native"
    return ToolChoice(set_name, call_form, window, named, is_small or has_little_room)
