"""Settings that list several values in one text: own models, hosts, folders."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from errand.engine.core.errors import InvalidParams
from errand.engine.core.file_names import is_secret

_ABILITIES = ("tools", "images", "thinking")
_UNKNOWN = "-"


@dataclass(frozen=True, slots=True)
class OwnModel:
    """A model defined by the user. Prices are US dollars per million tokens. `abilities` is None if not stated."""

    id: str
    context_tokens: int | None
    input_price: float | None
    output_price: float | None
    abilities: frozenset[str] | None
    name: str = ""


def parse_own_models(text: str) -> tuple[OwnModel, ...]:
    """Parse the setting's rows, separated by newlines or `;`. Raises `InvalidParams` that names the row.

    What stands after `#` is the name that is shown.
    """
    rows = (row.partition("#") for row in re.split(r"[\n;]", text))
    return tuple(_model(fields, " ".join(name.split())) for row, _, name in rows if (fields := row.split()))


def format_own_models(models: tuple[OwnModel, ...]) -> str:
    """Return the text of the setting, as `parse_own_models` reads it."""
    return "; ".join(map(_own_model_row, models))


def _own_model_row(model: OwnModel) -> str:
    numbers = (model.context_tokens, model.input_price, model.output_price)
    fields = [
        model.id,
        *(_UNKNOWN if number is None else f"{number:.9f}".rstrip("0").rstrip(".") for number in numbers),
    ]
    if model.abilities is not None:
        fields += [ability for ability in _ABILITIES if ability in model.abilities] or ["text"]
    return " ".join((*fields, f"# {model.name}") if model.name else fields)


def hosts_of(text: str) -> tuple[str, ...]:
    """Parse the setting `network_hosts`."""
    return tuple(host for part in re.split(r"[\s,;]", text) if (host := part.strip().lower()))


def folders_of(text: str, title: str = "Writable folders") -> tuple[Path, ...]:
    """Parse a setting that lists folders. Raises `InvalidParams` that names the folder."""
    named = [part.strip() for part in re.split(r"[\n;]", text) if part.strip()]
    folders = tuple(Path(os.path.normpath(os.path.expanduser(name))) for name in named)
    for name, folder in zip(named, folders, strict=True):
        if not folder.is_absolute():
            raise InvalidParams(f"{title}, “{name[:80]}”: begin it with / or ~/.")
    return folders


def writable_folders_of(text: str) -> tuple[Path, ...]:
    """Parse the setting `writable_folders`. Raises `InvalidParams` that names the folder."""
    folders = folders_of(text)
    for folder in folders:
        if Path.home().is_relative_to(folder) or is_secret(str(folder)) or _is_of_the_system(folder):
            raise InvalidParams(f"Writable folders, “{folder}”: it holds what commands must not change.")
    return folders


def _is_of_the_system(folder: Path) -> bool:
    return any(
        folder.is_relative_to(root) for root in ("/etc", "/sys", "/proc", "/boot", "/dev", "/usr", "/bin", "/lib")
    )


def _model(words: list[str], name: str) -> OwnModel:
    provider, _, model = words[0].partition("/")
    if not provider or not model:
        raise _invalid_row(words, "it begins with an id such as ollama/qwen3")
    if len(words) < 4:
        raise _invalid_row(words, "after the id come context tokens and two prices, or - for what is not known")
    abilities = set(words[4:])
    if unknown := abilities - {*_ABILITIES, "text"}:
        raise _invalid_row(words, f"{min(unknown)!r} is none of {', '.join(_ABILITIES)}, text")
    context = _number(words, words[1])
    return OwnModel(
        words[0],
        None if context is None else int(context),
        _number(words, words[2]),
        _number(words, words[3]),
        frozenset(abilities) if abilities else None,
        name,
    )


def _number(words: list[str], word: str) -> float | None:
    if word == _UNKNOWN:
        return None
    if not re.fullmatch(r"\d{1,12}(\.\d{1,9})?", word):
        raise _invalid_row(words, f"{word!r} is not a number from 0 up; - stands for what is not known")
    return float(word)


def _invalid_row(words: list[str], reason: str) -> InvalidParams:
    return InvalidParams(f"Custom models, “{' '.join(words)[:80]}”: {reason}.")
