"""What forgetting removes, and what it does not reach, as text."""

from errand.client.number_format import count
from errand.client.safe_text import escape_hidden
from errand.protocol.memory import MemoryForgetResult

# What nothing on this machine can tell Errand to remove.
_LIMITS = (
    "Not removed: files in workspaces and what is kept to undo changes in them, permission rules made from a command, "
    "exports, other machines, and what the model's provider has received."
)


def removed_parts(result: MemoryForgetResult) -> list[str]:
    """What goes or went, in numbers; empty if nothing did."""
    counted = (
        (result.nodes, "text", ""),
        (result.entries, "entry of memory", "entries of memory"),
        (result.executions, "record of a tool call", "records of tool calls"),
        (result.summaries, "summary", "summaries"),
        (result.recalls, "place where it was recalled", "places where it was recalled"),
        (result.asks, "question or approval", "questions and approvals"),
        (result.tasks, "task's prompt or summary", "tasks' prompts or summaries"),
        (result.titles, "title", ""),
        (result.files, "file of output or picture", "files of output and pictures"),
        (result.facts, "proposed fact", ""),
    )
    return [count(number, one, many) for number, one, many in counted if number]


def forgotten_text(result: MemoryForgetResult) -> str:
    """What went, as a sentence."""
    parts = removed_parts(result)
    return f"Forgotten: {', '.join(parts)}." if parts else "There was nothing left to forget."


def remarks(result: MemoryForgetResult) -> list[str]:
    """What was not cleared or cannot be; lines of copies begin with two spaces."""
    lines = [result.problem] if result.problem else []
    if result.rules:
        rules = count(result.rules, "permission rule")
        lines.append(f"{rules} made from it stay until revoked: errand grants, or the settings of the window.")
    if result.copies:
        lines.append("These copies of the database were made before and may still have it. Delete them if you must:")
        lines += [f"  {escape_hidden(copy)}" for copy in result.copies]
    return [*lines, *([_LIMITS] if result.nodes else [])]
