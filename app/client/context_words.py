"""The parts of a model's context in words."""

from app.protocol.context import ContextPart

# Its name, and what one of its items is called; empty where there is only one.
PARTS: dict[ContextPart, tuple[str, str]] = {
    "system": ("Instructions", ""),
    "tools": ("Tools", "tool"),
    "summary": ("Summary", ""),
    "kept": ("Kept messages", "message"),
    "history": ("Messages", "message"),
    "results": ("Results of tools", "result"),
    "memory": ("Memory", "text"),
}
