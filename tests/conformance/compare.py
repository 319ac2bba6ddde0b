"""The first difference between our trace and a recorded one, by the README's rules of comparison."""

from dataclasses import dataclass

from errand.protocol.base import JsonValue
from tests.conformance.scenario import compact


@dataclass(frozen=True, slots=True)
class Difference:
    where: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.where}\n    ours:   {self.ours}\n    theirs: {self.theirs}"


def first_difference(ours: JsonValue, theirs: JsonValue, where: str = "trace") -> Difference | None:
    ours, theirs = _comparable(ours), _comparable(theirs)
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in (*theirs, *(name for name in ours if name not in theirs)):
            if name not in ours or name not in theirs:
                return Difference(where, compact(ours), compact(theirs))
            if difference := first_difference(ours[name], theirs[name], f"{where}.{name}"):
                return difference
        return None
    if isinstance(ours, list) and isinstance(theirs, list):
        return _first_in_lists(ours, theirs, where)
    return None if ours == theirs else Difference(where, compact(ours), compact(theirs))


def _first_in_lists(ours: list[JsonValue], theirs: list[JsonValue], where: str) -> Difference | None:
    for index, (our, their) in enumerate(zip(ours, theirs, strict=False)):
        if difference := first_difference(our, their, f"{where}[{index}]"):
            return Difference(difference.where, compact(our), compact(their))
    if len(ours) == len(theirs):
        return None
    index = min(len(ours), len(theirs))
    our, their = ours[index:][:1], theirs[index:][:1]
    return Difference(
        f"{where}[{index}]", compact(our[0]) if our else "nothing", compact(their[0]) if their else "nothing"
    )


def _comparable(value: JsonValue) -> JsonValue:
    """Reduce the start of a reply to its type and role, and a validation text to its first line."""
    if isinstance(value, dict) and value.get("type") == "message_start" and value.get("role") == "assistant":
        return {"type": "message_start", "role": "assistant"}
    if isinstance(value, str) and value.startswith("Validation failed for tool"):
        return value.partition("\n")[0]
    return value
