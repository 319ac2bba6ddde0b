"""The first parts of a system prompt: who the agent is, and how agents of Errand work, or in a chat talk."""

from app.engine.agent.prompt.occasion import Occasion
from app.engine.agent.prompting import text
from app.protocol.prompts import PromptPart


def role(occasion: Occasion) -> PromptPart:
    return PromptPart(name="role", text=occasion.role or text("assistant"))


def rules(occasion: Occasion) -> PromptPart:
    return PromptPart(name="rules", text=text("talk" if occasion.mode == "chat" else "system"))
