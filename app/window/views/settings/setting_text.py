"""A setting's value as the text of a field, and back."""

import math

from app.protocol.json import JsonValue
from app.protocol.settings import Setting


class NotAValue(ValueError):
    """The text is none of the setting's kind; the message says what is wanted."""


def text_of(value: JsonValue) -> str:
    """Numbers without a needless `.0`."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def value_of(setting: Setting, text: str) -> JsonValue:
    """An empty field is the default of a number, and the empty text of a string."""
    stripped = text.strip()
    if setting.kind not in ("integer", "number"):
        return stripped
    return _number(setting, stripped) if stripped else setting.default


def _number(setting: Setting, text: str) -> float:
    try:
        value = int(text) if setting.kind == "integer" else float(text.replace(",", "."))
    except ValueError as error:
        wanted = "a whole number" if setting.kind == "integer" else "a number"
        raise NotAValue(f"This takes {wanted}, such as {text_of(setting.default)}.") from error
    if not math.isfinite(value):
        raise NotAValue("This takes a number that has an end.")
    if setting.minimum is not None and value < setting.minimum:
        raise NotAValue(f"This cannot be less than {text_of(setting.minimum)}.")
    return value
