"""Makes a local server the model that tasks speak to."""

import pytest

from tests.support.model_server import ModelServer


def speak_to(monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> None:
    """For engines that start from now on: as OpenAI, with a key."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
