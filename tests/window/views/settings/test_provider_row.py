"""The status text of a provider's row."""

import msgspec
import pytest

from errand.protocol.settings import Provider
from errand.window.theme.style import Tone
from errand.window.views.settings.providers.row import provider_status

READY = Provider(
    name="openai",
    title="OpenAI",
    key_source="environment",
    key_variable="OPENAI_API_KEY",
    api_base="http://b",
    ready=True,
)


@pytest.mark.parametrize(
    ("changed", "status", "tone"),
    [
        ({}, "Key from OPENAI_API_KEY · 1,200 models", "muted"),
        ({"in_the_clear": True}, "The connection to http://b isn't encrypted", "waiting"),
        ({"in_the_clear": True, "list_error": "It could not be reached."}, "It could not be reached.", "waiting"),
        ({"ready": False}, "No address yet: choose Edit…", "waiting"),
        ({"key_source": "file"}, "Key in the encrypted file · 1,200 models", "muted"),
        ({"local": True, "key_source": "not_needed"}, "Running at http://b · 1,200 models", "muted"),
        ({"own": True, "key_source": "keyring"}, "http://b · key in the keyring · 1,200 models", "muted"),
    ],
)
def test_a_provider_says_whether_it_can_be_used(changed: dict[str, object], status: str, tone: Tone) -> None:
    assert provider_status(msgspec.structs.replace(READY, **changed), 1200) == (status, tone)
