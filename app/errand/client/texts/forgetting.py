"""What forgetting removes, and what it does not reach, as text."""

from errand.client.safe_text import escape_hidden
from errand.protocol.memory import MemoryForgetResult
from errand.text.translation import tr, trn

# What nothing on this machine can tell Errand to remove.
_LIMITS = tr(
    "Not removed: files in workspaces and the data kept to undo changes in them, permissions made from a command, "
    "exports, other machines, and what the model's provider received."
)


NOTHING_CHANGED = tr("Nothing was changed: the entry was edited or forgotten meanwhile.")


def removed_parts(result: MemoryForgetResult) -> list[str]:
    """Return the counts of what is removed; empty if nothing is."""
    counted = (
        (result.nodes, trn("{n} text", "{n} texts", result.nodes)),
        (result.entries, trn("{n} memory entry", "{n} memory entries", result.entries)),
        (result.executions, trn("{n} tool call record", "{n} tool call records", result.executions)),
        (result.summaries, trn("{n} summary", "{n} summaries", result.summaries)),
        (result.recalls, trn("{n} recall", "{n} recalls", result.recalls)),
        (result.asks, trn("{n} question or approval", "{n} questions and approvals", result.asks)),
        (result.tasks, trn("{n} task prompt or summary", "{n} task prompts or summaries", result.tasks)),
        (result.titles, trn("{n} title", "{n} titles", result.titles)),
        (result.files, trn("{n} output file or picture", "{n} output files and pictures", result.files)),
        (result.facts, trn("{n} proposed fact", "{n} proposed facts", result.facts)),
    )
    return [text for number, text in counted if number]


def forgotten_text(result: MemoryForgetResult) -> str:
    """Return a sentence about what was removed."""
    parts = removed_parts(result)
    if not parts:
        return tr("There was nothing left to forget.")
    return tr("Forgotten: {what}.").format(what=", ".join(parts))


def being_removed(entries: int) -> str:
    """Return a sentence about vectors that may still be on the disk."""
    return trn(
        "Being removed: the vectors of {n} entry may still be on the disk for a moment.",
        "Being removed: the vectors of {n} entries may still be on the disk for a moment.",
        entries,
    )


def remarks(result: MemoryForgetResult) -> list[str]:
    """Return what was not cleared or cannot be; lines of copies begin with two spaces."""
    lines = [result.problem] if result.problem else []
    if result.to_remove:
        lines.append(being_removed(result.to_remove))
    if result.rules:
        lines.append(
            trn(
                "{n} permission made from it stays until you revoke it, in the settings or with errand grants.",
                "{n} permissions made from it stay until you revoke them, in the settings or with errand grants.",
                result.rules,
            )
        )
    if result.copies:
        lines.append(tr("These older copies of the database may still contain it. Delete them if necessary:"))
        lines += [f"  {escape_hidden(copy)}" for copy in result.copies]
    return [*lines, *([_LIMITS] if result.nodes else [])]
