"""Names of models for people."""

import re

_FILE = re.compile(r"(-\d{5}-of-\d{5})?\.gguf$", re.IGNORECASE)


def short_model_name(name: str) -> str:
    """Return a model's name for people: of the path of a file only the name, without `.gguf`."""
    is_path = name.startswith(("/", "./", "~", "\\")) or name[1:3] in (":\\", ":/")
    if not is_path and not name.lower().endswith(".gguf"):
        return name
    return _FILE.sub("", re.split(r"[/\\]", name.rstrip("/\\"))[-1]) or name
