"""The personalities that come with Errand. Those that people make or change are storage's."""

from app.engine.agent.prompting import text
from app.engine.storage.personalities import ASSISTANT
from app.protocol.agents import Personality

SHIPPED = (
    ASSISTANT,
    Personality(id="coder", name="Coder", system_prompt=text("coder"), thinking_level="medium", color="teal"),
    Personality(
        id="researcher", name="Researcher", system_prompt=text("researcher"), thinking_level="medium", color="violet"
    ),
    Personality(id="writer", name="Writer", system_prompt=text("writer"), color="orange"),
)


def is_shipped(personality_id: str) -> bool:
    return any(personality.id == personality_id for personality in SHIPPED)
