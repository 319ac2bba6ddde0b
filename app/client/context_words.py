"""The parts of a model's context, and summaries of it, in words."""

from app.client.figures import count
from app.protocol.blocks import SummaryBlock
from app.protocol.context import ContextPart
from app.protocol.prompts import PromptPartName

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

PROMPT_PARTS: dict[PromptPartName, str] = {
    "role": "Personality",
    "rules": "How agents work",
    "instructions": "AGENTS.md",
    "skills": "Skills",
    "workspace": "Workspace",
}


def summary_words(summary: SummaryBlock) -> str:
    """What it stands for and what it saves, in one line."""
    entries = count(summary.nodes, "earlier entry", "earlier entries")
    saved = f"{_short(summary.tokens_before)} → {_short(summary.tokens_after)} tokens"
    return f"Summary of {entries} · {saved}" if summary.tokens_before else f"Summary of {entries}"


def _short(tokens: int) -> str:
    if tokens < 1_000:
        return f"{tokens}"
    return f"{tokens / 1_000:.1f}k" if tokens < 9_950 else f"{tokens / 1_000:,.0f}k"
