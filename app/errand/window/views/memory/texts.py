"""The sentences of memory's window."""

from collections.abc import Collection

from errand.client.number_format import moment_text
from errand.client.safe_text import escape_hidden_line, plain
from errand.client.texts.embedding_model import offer_text
from errand.client.texts.forgetting import forgotten_text, remarks, removed_parts
from errand.protocol.blocks import MemoryRole
from errand.protocol.memory import (
    EmbeddingModel,
    Fact,
    MemoryForgetResult,
    MemoryItem,
    MemoryLogEntry,
    MemoryPreviewForgetResult,
)
from errand.text.translation import tr
from errand.window.stores.memory.entries import LeftOutFolder
from errand.window.widgets.labels import one_line

KINDS: dict[MemoryRole, tuple[str, str]] = {
    "user": (tr("Message"), tr("Messages")),
    "agent": (tr("Answer"), tr("Answers")),
    "tool": (tr("Tool result"), tr("Tool results")),
    "task": (tr("Task"), tr("Tasks")),
}
"""The name of each kind, and of several."""

_MAX_TITLE_LENGTH = 300  # characters
_MAX_LISTED_NODES = 5
_MISSING = tr("The embedding model isn't downloaded yet. Entries are only found by their words.")
_FAILED = tr("The model can't be used. Entries are only found by their words.")
_SIMPLE = tr("Entries are also found by their meaning, with a simple built-in model.")
_READY = tr("Ready. Entries are also found by their meaning.")


def title_text(item: MemoryItem) -> str:
    title = one_line(item.conversation_title, _MAX_TITLE_LENGTH)
    return tr("“{title}”").format(title=title) if title else tr("an untitled conversation")


def origin_line(what: str, item: MemoryItem) -> str:
    """Who said an entry or when, and in which conversation."""
    return tr("{what}, in {conversation}").format(what=what, conversation=title_text(item))


def origin_text(fact: Fact) -> str:
    """Return where the fact holds, who added it and when."""
    match fact.scope:
        case "always":
            where = tr("Always")
        case "me":
            where = tr("About me")
        case "folder":
            where = tr("In {folder}").format(folder=escape_hidden_line(fact.folder))
    who = escape_hidden_line(fact.by)
    if fact.status == "proposed":
        template = tr("{where} · proposed by {who} on {time}") if who else tr("{where} · proposed on {time}")
    else:
        template = tr("{where} · pinned by {who} on {time}") if who else tr("{where} · pinned on {time}")
    return template.format(where=where, who=who, time=moment_text(fact.at))


def forget_question(found: MemoryPreviewForgetResult, node_ids: Collection[str], fact: str = "") -> str:
    """Return the question about what would be forgotten for good with these nodes; `fact` would replace them."""
    parts = ", ".join(removed_parts(found.removes))
    if not parts:
        return tr("Its text was already forgotten. Remove what memory and search may still have of it?")
    lines = [tr("This permanently removes {what}, also from memory and search.").format(what=parts)]
    if fact:
        lines.insert(0, tr("Pinned as a fact instead: “{text}”").format(text=plain(fact)))
    if others := [node for node in found.nodes if node.node_id not in node_ids]:
        lines.append(tr("These are removed with it:"))
        lines += [one_line(node.text, _MAX_TITLE_LENGTH) for node in others[:_MAX_LISTED_NODES]]
    return "\n".join((*lines, tr("You can't undo this.")))


def forget_result(gone: MemoryForgetResult) -> str:
    """Return what was forgotten, and what could not be reached."""
    return "\n".join((forgotten_text(gone), *remarks(gone)))


def model_text(model: EmbeddingModel) -> str:
    reason = plain(model.reason)
    match model.status:
        case "ready":
            return f"{_READY} {reason}".strip()
        case "failed":
            return f"{_SIMPLE if model.has_simple else _FAILED} {reason}".strip()
        case "missing" | "downloading" if model.has_simple:
            return f"{_SIMPLE} {reason}" if reason else offer_text(model)
        case "missing" | "downloading":
            return reason or (f"{_MISSING} {offer_text(model)}" if model.hosts else _MISSING)


def left_out_text(folder: LeftOutFolder) -> str:
    no_entries = "" if folder.remembers else tr("left out of memory")
    no_recall = "" if folder.recalls else tr("doesn't use memory")
    return ", ".join(filter(None, (no_entries, no_recall)))


def log_line(entry: MemoryLogEntry) -> str:
    what = tr(entry.action)
    if entry.by:
        what = tr("{action} by {who}").format(action=what, who=plain(entry.by))
    about = f": {' '.join(plain(entry.about).split())}" if entry.about else ""
    return f"{moment_text(entry.at)} · {what}{about}"
