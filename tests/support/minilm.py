"""The real embedding model, for what judges quality and speed: made by `make model`, and skipped where it is not."""

import os
from importlib.util import find_spec
from pathlib import Path

_BUILT = Path(__file__).parents[2] / "build" / "minilm"


def minilm() -> Path | None:
    """The folder of the model: `ERRAND_MINILM`, else that of `make model`. None without it or without fastembed."""
    folder = Path(os.environ.get("ERRAND_MINILM") or _BUILT).absolute()
    return folder if find_spec("fastembed") is not None and (folder / "model.onnx").is_file() else None
