"""The words for what a task is started with: a name for each value, and what it means."""

from app.protocol.agents import ThinkingLevel
from app.protocol.tasks import ApproveMode, TaskMode

MODES: dict[TaskMode, tuple[str, str]] = {
    "auto": ("Auto", "Done at a reply that uses no tool, or when the agent says so."),
    "task": ("Task", "Goes on until the agent says itself that the job is complete."),
    "chat": ("Chat", "Plain talk: tools may be used, done at each reply."),
}
APPROVALS: dict[ApproveMode, tuple[str, str]] = {
    "ask": ("Ask me", "You are asked before anything risky."),
    "never": ("Deny", "What would need your approval is denied unasked."),
    "all": ("Allow all", "Nothing is asked. Commands run as you, with all your files."),
}
THINKING: dict[ThinkingLevel, str] = {
    "off": "Off",
    "minimal": "Minimal",
    "low": "Low",
    "medium": "Medium",
    "high": "High",
    "xhigh": "Highest",
}
