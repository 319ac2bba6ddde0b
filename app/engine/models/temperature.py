"""Whether a model takes a temperature that is asked for, as far as that is known: some refuse the whole request."""

import re

from app.engine.models import prices
from app.engine.models.base import ModelRequest

# OpenAI's models that reason take their own alone, whoever serves them.
_HAS_ITS_OWN = re.compile(r"(?:^|/)(?:o[134](?:-|$)|gpt-[5-9](?!.*chat))", re.IGNORECASE)


def is_taken(request: ModelRequest) -> bool:
    """False for models with one of their own, and while a model thinks."""
    return not _HAS_ITS_OWN.search(request.model) and not thinks(request)


def thinks(request: ModelRequest) -> bool:
    """Whether the model thinks before this reply, where that is not known too."""
    known = prices.facts(request.model)
    return request.options.thinking_level != "off" and (known is None or known.reasons)
