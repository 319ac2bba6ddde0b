"""The sentences of memory's window."""

from errand.client.forget_text import forgotten_text, remarks, removed_parts
from errand.client.number_format import file_size, moment_text
from errand.client.safe_text import escape_hidden_line, plain
from errand.protocol.blocks import MemoryRole
from errand.protocol.facts import Fact
from errand.protocol.memory import (
    EmbeddingModel,
    MemoryForgetResult,
    MemoryItem,
    MemoryLogEntry,
    MemoryPreviewForgetResult,
)
from errand.window.stores.memory import LeftOutFolder
from errand.window.widgets.labels import one_line

KINDS: dict[MemoryRole, tuple[str, str]] = {
    "user": ("Message", "Messages"),
    "agent": ("Reply", "Replies"),
    "tool": ("Tool result", "Tool results"),
    "task": ("Task", "Tasks"),
}
"""The name of each kind, and of several."""

_LONGEST_TITLE = 300  # characters
_MOST_OTHERS = 6
_MISSING = "The embedding model has not been downloaded yet. Until then, entries are found by their words only."
_READY = "Ready. Entries are also found by their meaning."


def title_text(item: MemoryItem) -> str:
    title = one_line(item.conversation_title, _LONGEST_TITLE)
    return f"“{title}”" if title else "a conversation without a title"


def origin_text(fact: Fact) -> str:
    """Where the fact holds, who added it and when."""
    match fact.scope:
        case "always":
            where = "Always"
        case "me":
            where = "About me"
        case "folder":
            where = f"In {escape_hidden_line(fact.folder)}"
    verb = "proposed" if fact.status == "proposed" else "pinned"
    by = f" by {escape_hidden_line(fact.by)}" if fact.by else ""
    return f"{where} · {verb}{by} on {moment_text(fact.at)}"


def forget_question(found: MemoryPreviewForgetResult) -> str:
    """What would go for good."""
    parts = ", ".join(removed_parts(found.removes))
    if not parts:
        return "Its text was forgotten before. Remove what memory and the search may still have of it?"
    own = "\n".join(f"“{one_line(node.text, _LONGEST_TITLE)}”" for node in found.nodes[1:_MOST_OTHERS])
    others = f"\nWith it goes what belongs to it:\n{own}\n" if own else " "
    return f"This removes for good: {parts}, and what memory and the search have of it.{others}It cannot be undone."


def forget_result(gone: MemoryForgetResult) -> str:
    """What went, and what is not reached."""
    return "\n".join((forgotten_text(gone), *remarks(gone)))


def model_text(model: EmbeddingModel) -> str:
    reason = plain(model.reason)
    match model.status:
        case "ready":
            return f"{_READY} {reason}".strip()
        case "failed":
            return f"The model cannot be used, so entries are found by their words only. {reason}".strip()
        case "missing" | "downloading":
            return reason or _MISSING


def download_text(model: EmbeddingModel) -> str:
    if not model.total:
        return "Downloading the embedding model …"
    return f"Downloading the embedding model: {file_size(model.done)} of {file_size(model.total)}"


def left_out_text(folder: LeftOutFolder) -> str:
    kept, given = "" if folder.remembers else "not remembered", "" if folder.recalls else "nothing is recalled there"
    return ", ".join(filter(None, (kept, given)))


def log_line(entry: MemoryLogEntry) -> str:
    by = f" by {plain(entry.by)}" if entry.by else ""
    about = f": {' '.join(plain(entry.about).split())}" if entry.about else ""
    return f"{moment_text(entry.at)} · {entry.action}{by}{about}"
