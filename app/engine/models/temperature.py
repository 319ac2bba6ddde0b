"""The temperature a request may name: some models refuse it, and then the whole request."""

import re

from app.engine.models.base import ModelRequest

# OpenAI's models that reason take their own alone, whoever serves them.
_HAS_ITS_OWN = re.compile(r"(?:^|/)(?:o[134](?:-|$)|gpt-[5-9](?!.*chat))", re.IGNORECASE)


def temperature_of(request: ModelRequest) -> float | None:
    """As it is wanted, or None: a model that thinks has its own."""
    if request.options.thinking_level != "off" or _HAS_ITS_OWN.search(request.model):
        return None
    return request.options.temperature
