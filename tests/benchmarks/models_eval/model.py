"""The model that is evaluated."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EvaluatedModel:
    """A model and the server that has it; `key` is sent to the server."""

    name: str
    api_base: str
    key: str = "none"
