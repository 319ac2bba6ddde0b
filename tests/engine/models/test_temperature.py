"""Which temperature a request names: the one wanted, and none where a model would refuse it."""

import pytest

from app.engine.messages import ThinkingLevel
from app.engine.models.base import ModelOptions, ModelRequest
from app.engine.models.temperature import temperature_of


@pytest.mark.parametrize(
    ("model", "level", "named"),
    [
        ("openai/gpt-4.1", "off", 0.3),
        ("openai/gpt-5.4", "off", None),
        ("openai/gpt-5-chat-latest", "off", 0.3),
        ("openai/o3", "off", None),
        ("openrouter/openai/o4-mini", "off", None),
        ("openai_compatible/o1-mini", "off", None),
        ("openai_compatible/olmo", "off", 0.3),
        ("anthropic/claude-sonnet-4-5", "off", 0.3),
        ("anthropic/claude-sonnet-4-5", "medium", None),
    ],
)
def test_a_model_that_thinks_keeps_its_own(model: str, level: ThinkingLevel, named: float | None) -> None:
    request = ModelRequest(model, "", (), options=ModelOptions(thinking_level=level, temperature=0.3))
    assert temperature_of(request) == named
