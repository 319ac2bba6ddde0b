"""Files of other programs are found, named and used in place."""

import json
from pathlib import Path

import pytest

from errand.engine.local_models.entries import look_for_models
from errand.engine.local_models.found_files import find_files
from errand.engine.local_models.gguf import NotGguf, read_facts
from tests.support.local_models import gguf


def _put(file: Path, data: bytes) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def test_models_of_other_programs_are_found(tmp_path: Path) -> None:
    home, mine = tmp_path / "home", tmp_path / "mine"
    _put(home / ".lmstudio/models/someone/Repo-GGUF/Some-Model-Q4_K_M.gguf", gguf(padding=b"a"))
    _put(home / ".lmstudio/models/someone/Repo-GGUF/mmproj-F16.gguf", gguf(padding=b"b"))
    _put(home / "jan/models/Jan-Nano/model.gguf", gguf(padding=b"c"))
    _put(home / ".lmstudio/models/someone/Split/big-00001-of-00002.gguf", gguf(padding=b"d" * 100))
    _put(home / ".lmstudio/models/someone/Split/big-00002-of-00002.gguf", b"d" * 50)
    _put(home / ".lmstudio/models/someone/Embed/nomic.gguf", gguf("nomic-bert"))
    _put(home / ".lmstudio/models/someone/Bad/bad.gguf", b"not a model")
    digest = "sha256:" + "1" * 64
    manifest = {"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": digest}]}
    _put(home / ".ollama/models/manifests/registry.ollama.ai/library/qwen/0.5b", json.dumps(manifest).encode())
    _put(home / ".ollama/models/manifests/registry.ollama.ai/library/broken/latest", b"{")
    blob = _put(home / ".ollama/models/blobs" / digest.replace(":", "-"), gguf(context_tokens=4_096))
    _put(mine / "Own.gguf", gguf(padding=b"e"))
    (mine / "again.gguf").symlink_to(mine / "Own.gguf")
    files = {file.name: file for file in find_files(home, str(mine))}
    assert {name: file.source for name, file in files.items()} == {
        "own": "folder",
        "some-model-q4_k_m": "lm_studio",
        "big": "lm_studio",
        "jan-nano": "jan",
        "qwen-0.5b": "ollama",
    }
    assert files["qwen-0.5b"].path == blob
    assert files["qwen-0.5b"].facts.context_tokens == 4_096
    assert files["big"].size_bytes == len(gguf()) + 150


def test_a_file_of_few_bytes_is_a_small_model(tmp_path: Path) -> None:
    file = _put(tmp_path / "mine/Small.gguf", gguf())
    models = look_for_models((), tmp_path / "models", tmp_path / "home", str(file.parent))
    (entry,) = models.entries.values()
    assert models.installed == {entry.name}
    assert entry.parameters is not None and entry.parameters < 0.1


def test_the_memory_of_a_token_is_read_from_the_file(tmp_path: Path) -> None:
    facts = read_facts(_put(tmp_path / "a.gguf", gguf()))
    assert (facts.architecture, facts.context_tokens, facts.cache_bytes) == ("llama", 8_192, 2 * 2 * 32 * 2)


@pytest.mark.parametrize(("template", "calls_tools"), [("{{ tools }}", True), ("{{ messages }}", False), ("", False)])
def test_a_template_without_tools_is_known(tmp_path: Path, template: str, calls_tools: bool) -> None:
    assert read_facts(_put(tmp_path / "a.gguf", gguf(template=template))).calls_tools is calls_tools


@pytest.mark.parametrize("data", [b"", b"GGUF", b"GGUF\x09\0\0\0", gguf()[:60], b"GGUF\3\0\0\0" + b"\xff" * 40])
def test_a_damaged_file_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(NotGguf):
        read_facts(_put(tmp_path / "a.gguf", data))
