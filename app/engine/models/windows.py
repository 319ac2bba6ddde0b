"""How much a model can read."""

from app.engine.models.router import ModelRouter
from app.engine.settings import Settings


def window_of(model_id: str, models: ModelRouter, settings: Settings) -> int | None:
    """In tokens: as the catalogue has it, or for all others as a person has set it; None where nobody knows."""
    return models.context_tokens(model_id) or settings.values.context_tokens or None
