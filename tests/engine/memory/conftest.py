"""A small package in the place of fastembed, which has its real interface, and the folder of its model."""

import sys
from pathlib import Path

import pytest

from errand.engine.memory.embedding_models import ENGLISH

# The same words give the same vector. A text "sleep" takes long, "die" ends the process, "fail" raises, and the word
# "nan" spoils the numbers. The first words of each batch are in the file "batches".
_STAND_IN = """
import array, hashlib, math, os, time

class TextEmbedding:
    def __init__(self, model_name, *, threads, specific_model_path, local_files_only):
        graph, self.tokens = {
            "sentence-transformers/all-MiniLM-L6-v2": ("model.onnx", 256),
            "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2": ("model_optimized.onnx", 128),
        }[model_name]
        assert local_files_only and threads >= 1
        assert os.environ["HF_HUB_OFFLINE"] == "1"
        with open(os.path.join(specific_model_path, graph)) as file:
            self.size = int(file.read())
        if not self.size:
            raise ValueError("no graph in the file")
        self.model = self.tokenizer = self
        self.folder = specific_model_path

    def enable_truncation(self, max_length):
        assert max_length == self.tokens

    def embed(self, documents, batch_size):
        assert batch_size == len(documents) <= 8
        with open(os.path.join(self.folder, "batches"), "a") as file:
            file.write(documents[0].partition(" ")[0] + "\\n")
        for text in documents:
            assert len(text) <= 4096
            if text.startswith("slow"):
                time.sleep(0.01)
            if text == "sleep":
                time.sleep(600)
            if text == "die":
                os._exit(3)
            if text == "fail":
                raise RuntimeError("out of order")
            sums = [math.nan if "nan" in text.split() else 0.0] * self.size
            for word in text.split():
                sums[int(hashlib.sha256(word.encode()).hexdigest(), 16) % self.size] += 1
            # The library returns the vectors of the multilingual model as they are.
            length = (math.sqrt(sum(x * x for x in sums)) or 1.0) if self.tokens == 256 else 1.0
            yield array.array("f", [x / length for x in sums])
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package, folder = tmp_path / "packages" / "fastembed", tmp_path / "model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(_STAND_IN, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(package.parent), *sys.path])
    folder.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_text("{}", encoding="utf-8")
    (folder / "model.onnx").write_text(str(ENGLISH.dimensions), encoding="utf-8")
    return folder
