"""The status text of a provider's row."""

import msgspec
import pytest

from errand.protocol.settings import Provider
from errand.window.theme.style import Tone
from errand.window.views.settings.provider_row import provider_status

READY = Provider(
    name="openai",
    title="OpenAI",
    key_source="environment",
    key_variable="OPENAI_API_KEY",
    api_base="http://b",
    ready=True,
)


@pytest.mark.parametrize(
    ("changed", "words", "tone"),
    [
        ({}, "Ready, with the key in OPENAI_API_KEY · 1,200 models", "done"),
        ({"in_the_clear": True}, "Ready, but what is sent to http://b is not encrypted", "waiting"),
        ({"in_the_clear": True, "list_error": "It could not be reached."}, "It could not be reached.", "waiting"),
        ({"ready": False}, "It has a key, but no address: set it in General, under Shared models", "waiting"),
        ({"ready": False, "key_source": "none"}, "No key (OPENAI_API_KEY)", "muted"),
        ({"ready": False, "key_source": "not_needed", "local": True}, "Not running here", "muted"),
    ],
)
def test_a_provider_says_whether_it_can_be_used(changed: dict[str, object], words: str, tone: Tone) -> None:
    assert provider_status(msgspec.structs.replace(READY, **changed), 1200) == (words, tone)
