"""Which models are shared, by patterns of their ids."""

from fnmatch import fnmatchcase

from app.engine.models.catalog import PROVIDERS

# All that has an address of its own here: no script, no model of a third machine.
_EVERYTHING = tuple(f"{row.name}/*" for row in PROVIDERS if row.kind == "litellm" or row.base_url)


class Offer:
    """`patterns` are ids in which `*` stands for anything: `openai/*`, `anthropic/claude-haiku-*`. None is all."""

    def __init__(self, patterns: tuple[str, ...] = ()) -> None:
        self._patterns = patterns or _EVERYTHING

    def has(self, model_id: str) -> bool:
        return any(fnmatchcase(model_id, pattern) for pattern in self._patterns)
