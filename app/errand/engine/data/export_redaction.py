"""Removes keys from what is exported: exports leave the machine, and people show them to others."""

from typing import TypeVar

import msgspec

from errand.engine.storage.sql.statements import to_json
from errand.protocol.base import JsonValue
from errand.text.redaction import REMOVED, Redactor

_Record = TypeVar("_Record", bound=msgspec.Struct)


class ExportRedaction:
    """Removes the app's own keys, and everything else that looks like a key. `removed` counts the texts that held any.

    With `keep_secrets` everything stays as it is, except for the app's own keys.
    """

    def __init__(self, redactor: Redactor, *, keep_secrets: bool) -> None:
        self._redact = redactor.hide if keep_secrets else redactor
        self.removed = 0

    def json(self, body: str) -> str:
        """Return a record in JSON; the same text if it holds no key. May take long: call it in a thread."""
        before = self.removed
        cleaned = self._clean(msgspec.json.decode(body))
        return body if self.removed == before else to_json(cleaned)

    def record(self, record: _Record) -> _Record:
        """Return the record without keys; the same object if it holds none."""
        before = self.removed
        cleaned = self._clean(msgspec.json.decode(msgspec.json.encode(record)))
        return record if self.removed == before else msgspec.convert(cleaned, type(record))

    def _clean(self, value: JsonValue, name: str = "") -> JsonValue:
        match value:
            case str():
                return self._text(value, name)
            case list():
                return [self._clean(item) for item in value]
            case dict():
                return {self._text(key, ""): self._clean(item, key) for key, item in value.items()}
            case _:
                return value

    def _text(self, text: str, name: str) -> str:
        """Return a text; `name` is its field, which may say that it is a key."""
        cleaned = self._redact(text)
        if cleaned == text and name and " " not in text and REMOVED in self._redact(f"{name}={text}"):
            cleaned = REMOVED
        self.removed += cleaned != text
        return cleaned
