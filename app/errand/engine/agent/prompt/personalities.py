"""The personalities that come with Errand: their prompts, and the tools that each of them needs."""

from errand.engine.agent.prompt.texts import prompt_text
from errand.engine.storage.records.agents import ASSISTANT
from errand.protocol.agents import Personality

# What reads: files, commands that only look, the web, memory. Tools of other programs are left out, since nobody knows
# what they change.
_RESEARCH_TOOLS = ("code:read", "shell:read", "web_fetch", "browser:read", "search_memory", "propose_memory", "task")
_WRITING_TOOLS = ("code", "shell:read", "web_fetch", "search_memory", "propose_memory", "task", "mcp")

BUILTIN_PERSONALITIES = (
    ASSISTANT,
    Personality(id="coder", name="Coder", system_prompt=prompt_text("coder"), thinking_level="medium", color="teal"),
    Personality(
        id="researcher",
        name="Researcher",
        system_prompt=prompt_text("researcher"),
        tools=_RESEARCH_TOOLS,
        thinking_level="medium",
        color="violet",
    ),
    Personality(id="writer", name="Writer", system_prompt=prompt_text("writer"), tools=_WRITING_TOOLS, color="orange"),
)


def is_builtin(personality_id: str) -> bool:
    return any(personality.id == personality_id for personality in BUILTIN_PERSONALITIES)


def chosen_tools(personality: Personality) -> tuple[str, ...]:
    """Return the tools that a person chose for a personality: none if it has those it came with."""
    is_as_shipped = any((personality.id, personality.tools) == (own.id, own.tools) for own in BUILTIN_PERSONALITIES)
    return () if is_as_shipped else personality.tools
