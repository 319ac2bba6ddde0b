"""The line about the embedding model says which one serves, in each of its states."""

import pytest

from errand.cli.commands.memory.index import model_line
from errand.protocol.memory import EmbeddingModel


@pytest.mark.parametrize(
    ("model", "line"),
    [
        (EmbeddingModel(status="ready", folder="/models"), "in /models"),
        (EmbeddingModel(status="missing"), "not downloaded yet"),
        (
            EmbeddingModel(status="missing", has_simple=True),
            "simple, built in; for a better one: errand memory download",
        ),
        (EmbeddingModel(status="missing", reason="There is no folder /x."), "There is no folder /x."),
        (
            EmbeddingModel(status="missing", reason="There is no folder /x.", has_simple=True),
            "simple, built in. There is no folder /x.",
        ),
        (
            EmbeddingModel(status="failed", reason="hub cannot be reached.", has_simple=True),
            "simple, built in. hub cannot be reached.",
        ),
        (EmbeddingModel(status="failed", reason="hub cannot be reached."), "hub cannot be reached."),
    ],
)
def test_the_line_says_which_model_serves(model: EmbeddingModel, line: str) -> None:
    assert model_line(model) == line
