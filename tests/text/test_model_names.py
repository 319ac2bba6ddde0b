"""Names of models for people."""

import pytest

from errand.text.model_names import short_model_name


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("/models/qwen2.5-coder-1.5b.gguf", "qwen2.5-coder-1.5b"),
        ("C:\\models\\gemma.GGUF", "gemma"),
        ("qwen-00001-of-00003.gguf", "qwen"),
        ("Qwen/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen3:8b", "qwen3:8b"),
        (".gguf", ".gguf"),
    ],
)
def test_a_file_is_shown_by_the_name_of_its_model(name: str, short: str) -> None:
    assert short_model_name(name) == short
