"""Models that a person describes in the setting `own_models`: one a line, what is known of each."""

import re
from dataclasses import dataclass

from app.engine.errors import InvalidParams

_ABILITIES = ("tools", "images", "thinking")
_UNKNOWN = "-"


@dataclass(frozen=True, slots=True)
class OwnModel:
    """Prices are US dollars for a million tokens. `abilities` is None where nothing was said of them."""

    id: str
    context_tokens: int | None
    input_price: float | None
    output_price: float | None
    abilities: frozenset[str] | None


def parse(text: str) -> tuple[OwnModel, ...]:
    """The rows of the setting, which `;` parts like a line's end. Raises `InvalidParams` that names the row."""
    rows = (words for row in re.split(r"[\n;]", text) if (words := row.partition("#")[0].split()))
    return tuple(_model(words) for words in rows)


def _model(words: list[str]) -> OwnModel:
    provider, _, name = words[0].partition("/")
    if not provider or not name:
        raise _wrong(words, "it begins with an id such as ollama/qwen3")
    if len(words) < 4:
        raise _wrong(words, "after the id come context tokens and two prices, or - for what is not known")
    abilities = set(words[4:])
    if unknown := abilities - {*_ABILITIES, "text"}:
        raise _wrong(words, f"{min(unknown)!r} is none of {', '.join(_ABILITIES)}, text")
    context = _number(words, words[1])
    return OwnModel(
        words[0],
        None if context is None else int(context),
        _number(words, words[2]),
        _number(words, words[3]),
        frozenset(abilities) if abilities else None,
    )


def _number(words: list[str], word: str) -> float | None:
    if word == _UNKNOWN:
        return None
    if not re.fullmatch(r"\d{1,12}(\.\d{1,9})?", word):
        raise _wrong(words, f"{word!r} is not a number from 0 up; - stands for what is not known")
    return float(word)


def _wrong(words: list[str], reason: str) -> InvalidParams:
    return InvalidParams(f"Own models, “{' '.join(words)[:80]}”: {reason}.")
