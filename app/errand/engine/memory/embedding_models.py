"""The embedding models: those that a person puts into a folder, and the simple one that comes with Errand."""

import os
import re
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from errand.system.paths import Paths

_PACKAGE = "fastembed"
_SIMPLE_PACKAGE = "wordllama"
MODEL_FILES = ("model.onnx", "tokenizer.json", "tokenizer_config.json")
MODEL_REPOSITORY = "Qdrant/all-MiniLM-L6-v2-onnx"
MODEL_SOURCE = f"https://huggingface.co/{MODEL_REPOSITORY}"
_FALSE = ("0", "off", "no", "false")


@dataclass(frozen=True, slots=True)
class ModelKind:
    """A model by its name in the library. Of its `files` the first is the graph; of a text it reads `tokens`.

    Its vectors have `dimensions` numbers.
    """

    name: str
    files: tuple[str, ...]
    tokens: int
    dimensions: int = 384


ENGLISH = ModelKind("sentence-transformers/all-MiniLM-L6-v2", MODEL_FILES, 256)
# Of https://huggingface.co/Qdrant/paraphrase-multilingual-MiniLM-L12-v2-onnx-Q: about 50 languages, 220 MB.
MULTILINGUAL = ModelKind(
    "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2",
    ("model_optimized.onnx", "tokenizer.json", "tokenizer_config.json"),
    128,
)
# A table with 256 numbers for each of 32,000 tokens, of which a text gets the mean, however long (decision 94).
SIMPLE = ModelKind(
    "wordllama l2_supercat 256",
    ("weights/l2_supercat_256.safetensors", "tokenizers/l2_supercat_tokenizer_config.json"),
    0,
    256,
)
NOT_INSTALLED = (
    "The package fastembed is not installed. It comes with Errand on Linux (x86-64, ARM64) and macOS (Apple silicon) "
    "with Python 3.11 to 3.14: install Errand again there."
)
# The entry `location` of an initialiser whose data is in another file, in ONNX: its length and its name.
_EXTERNAL_DATA = re.compile(rb"\n\x08location\x12(.)([ -~]+)", re.DOTALL)
_MAX_BARE_GRAPH_BYTES = 4 * 1024 * 1024


def is_installed() -> bool:
    """Return True if the package that runs the models of a folder is there."""
    return find_spec(_PACKAGE) is not None


def package_folder() -> Path | None:
    """Return the folder in which that package lies, which other packages lie in too."""
    spec = find_spec(_PACKAGE)
    return Path(spec.origin).parents[1] if spec is not None and spec.origin is not None else None


def simple_model_folder() -> Path | None:
    """Return the folder with the files of the simple model; None where it cannot be run or is switched off.

    Its package is not imported: only two of its files are used.
    """
    if sys.platform == "win32" or os.environ.get("ERRAND_SIMPLE_MODEL", "").lower() in _FALSE:
        return None
    spec = find_spec(_SIMPLE_PACKAGE)
    if spec is None or spec.origin is None or any(find_spec(name) is None for name in ("numpy", "tokenizers")):
        return None
    folder = Path(spec.origin).parent
    return folder if all((folder / name).is_file() for name in SIMPLE.files) else None


def missing_files(folder: Path) -> list[str]:
    """Return the names of the files that the model in this folder lacks, with those that hold the graph's weights."""
    files = kind_of(folder).files
    missing = [name for name in files if not (folder / name).is_file()]
    if files[0] not in missing:
        missing += [name for name in _weights_files(folder / files[0]) if not (folder / name).is_file()]
    return missing


def kind_of(folder: Path) -> ModelKind:
    """Return the kind of the model in a folder, by the name of its graph; the English one without any."""
    graphs = {kind: (folder / kind.files[0]).is_file() for kind in (ENGLISH, MULTILINGUAL)}
    return MULTILINGUAL if graphs[MULTILINGUAL] and not graphs[ENGLISH] else ENGLISH


def folder_of_model(setting: str, paths: Paths) -> Path:
    """Return the folder that a person set, else that of the data directory."""
    return Path(setting).expanduser() if setting else paths.embedding


def _weights_files(graph: Path) -> list[str]:
    """Return the files beside the graph that hold its weights; none for a graph that holds them itself."""
    try:
        if graph.stat().st_size > _MAX_BARE_GRAPH_BYTES:
            return []
        data = graph.read_bytes()
    except OSError:
        return []
    names = {match[2][: match[1][0]].decode("ascii", "replace") for match in _EXTERNAL_DATA.finditer(data)}
    return sorted(names)
