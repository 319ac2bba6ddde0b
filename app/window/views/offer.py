"""What can be chosen for a task, and what it comes to where nothing was chosen."""

from dataclasses import dataclass

from app.protocol.agents import Personality
from app.window.stores.personalities import DEFAULT
from app.window.stores.task_options import TaskOptions


@dataclass(frozen=True, slots=True)
class Offer:
    """`model` is the default one. `agent` is the personality that the conversation's agent has, "" before it began."""

    models: tuple[str, ...] = ()
    model: str = ""
    personalities: tuple[Personality, ...] = ()
    agent: str = ""

    def personality(self, options: TaskOptions) -> Personality | None:
        wanted = options.personality_id or self.agent or DEFAULT
        return next((each for each in self.personalities if each.id == wanted), None)

    def model_of(self, options: TaskOptions) -> str:
        """The model that the next task is started with."""
        personality = self.personality(options)
        return options.model or (personality.model if personality is not None else "") or self.model
