"""A system prompt, part by part: what changes least stands first, so that providers can keep it."""

from app.engine.agent.prompt.instructions import instructions
from app.engine.agent.prompt.occasion import Occasion
from app.engine.agent.prompt.role import role, rules
from app.engine.agent.prompt.skills import skills
from app.engine.agent.prompt.workplace import workplace
from app.protocol.prompts import PromptPart

PARTS = (role, rules, instructions, skills, workplace)


def read_parts(occasion: Occasion) -> tuple[PromptPart, ...]:
    """Reads files, and so runs in a thread."""
    found = (part(occasion) for part in PARTS)
    return tuple(part for part in found if part is not None)


def joined(parts: tuple[PromptPart, ...]) -> str:
    return "\n\n".join(part.text for part in parts if part.text)
