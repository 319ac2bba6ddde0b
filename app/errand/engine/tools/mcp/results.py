"""Results of servers as results of tools: texts, pictures, files, structured content. Bounded, whatever comes."""

import base64
import binascii
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from errand.engine.core.messages import Image, Text, UserContent
from errand.engine.tools.plain_text import clean_output, without_hidden
from errand.engine.tools.results import ToolResult
from errand.protocol.base import JsonObject, JsonValue

_MAX_TEXT_LENGTH = 60_000
_HEAD = 40_000
_TAIL = 15_000
_MAX_BLOCKS = 500
_MAX_IMAGES = 10
_MAX_IMAGE_BYTES = 5 * 1024 * 1024
_MAX_TOTAL_IMAGE_BYTES = 12 * 1024 * 1024
_PICTURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
_SUFFIXES = {"audio/wav": ".wav", "audio/mpeg": ".mp3", "application/pdf": ".pdf", "image/svg+xml": ".svg"}
_MAX_STRUCTURED_BYTES = 20_000
_NO_CONTENT = frozenset({"content", "isError", "_meta"})
_ALPHABET_OF_ADDRESSES = str.maketrans("-_", "+/")
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(slots=True)
class ContentReader:
    """Turns the blocks of an answer into content. What is no text and no picture goes into files of the `folder`."""

    folder: Path
    call_id: str
    texts: list[str] = field(default_factory=list[str])
    images: list[Image] = field(default_factory=list[Image])
    _image_bytes: int = 0
    _files: int = 0

    def add(self, block: JsonObject) -> None:
        match block.get("type") or _likely_type(block):
            case "text":
                self.texts.append(_text_of(block.get("text")))
            case "image":
                self._picture(block)
            case "audio":
                self._file(block.get("data"), _word(block.get("mimeType")), "a sound")
            case "resource":
                resource = block.get("resource")
                self.resource(resource if isinstance(resource, dict) else {})
            case "resource_link":
                about = _clean(block.get("description"))
                self.texts.append(f"[resource {_clean(block.get('uri'))[:2_000]}{f': {about}' if about else ''}]")
            case kind:
                self.texts.append(f"[content of an unknown kind: {_word(kind)}]\n{_text_of(block)}")

    def resource(self, resource: JsonObject) -> None:
        """The content of a resource."""
        uri, kind = _clean(resource.get("uri"))[:2_000], _word(resource.get("mimeType"))
        if resource.get("text") is not None:
            self.texts.append(f"[{uri}]\n{_text_of(resource.get('text'))}")
        elif kind.startswith("image/"):
            self._picture({"data": resource.get("blob"), "mimeType": kind})
        else:
            self._file(resource.get("blob"), kind, uri or "a resource")

    def content(self) -> tuple[UserContent, ...]:
        joined = "\n".join(text for text in self.texts if text)
        excerpt = joined if len(joined) <= _MAX_TEXT_LENGTH else self._cut(joined)
        return (*((Text(excerpt),) if excerpt or not self.images else ()), *self.images)

    def _picture(self, block: JsonObject) -> None:
        data = _decoded(block.get("data"))
        kind = next((name for head, name in _PICTURES.items() if data is not None and data.startswith(head)), "")
        if data is not None and data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            kind = "image/webp"
        size = len(data) if data is not None else 0
        fits = size <= _MAX_IMAGE_BYTES and self._image_bytes + size <= _MAX_TOTAL_IMAGE_BYTES
        if data is None or not kind:
            self.texts.append(f"[a picture that cannot be read: {_word(block.get('mimeType'))}]")
        elif not fits or len(self.images) >= _MAX_IMAGES:
            self._file(block.get("data"), kind, "a picture that is too large to show")
        else:
            self._image_bytes += size
            self.images.append(Image(kind, base64.b64encode(data).decode()))

    def _file(self, encoded: JsonValue, kind: str, what: str) -> None:
        data = _decoded(encoded)
        if data is None:
            self.texts.append(f"[{what} that cannot be read]")
            return
        suffix = _SUFFIXES.get(kind, f".{kind.partition('/')[2]}" if kind.startswith("image/") else ".bin")
        file = self._write(data, suffix)
        self.texts.append(f"[{what}, {kind or 'of an unknown kind'}, {len(data):,} bytes: {file}]")

    def _cut(self, text: str) -> str:
        file = self._write(text.encode(), ".txt")
        left_out = len(text) - _HEAD - _TAIL
        remark = f"[{left_out:,} characters left out; the full text is in {file}]"
        return f"{text[:_HEAD]}\n{remark}\n{text[-_TAIL:]}"

    def _write(self, data: bytes, suffix: str) -> str:
        """Write a new file; returns its path, or why there is none."""
        self._files += 1
        name = _UNSAFE.sub("_", self.call_id)[-60:] or "call"
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for number in range(self._files, self._files + 1_000):
                path = self.folder / f"{name}-{number}.{_UNSAFE.sub('_', suffix.lstrip('.'))[:10]}"
                try:
                    with open(path, "xb", opener=_private) as file:
                        file.write(data)
                except FileExistsError:
                    continue
                self._files = number
                return str(path)
        except OSError as error:
            return f"not kept ({error.strerror})"
        return "not kept"


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def result_of(answer: JsonObject, reader: ContentReader) -> ToolResult:
    """Return the result of a call; works on files. An answer without content shows its structured content."""
    blocks = _blocks(answer.get("content"))
    for block in blocks[:_MAX_BLOCKS]:
        reader.add(block)
    if len(blocks) > _MAX_BLOCKS:
        reader.texts.append(f"[{len(blocks) - _MAX_BLOCKS:,} more parts are left out]")
    if not any(reader.texts) and not reader.images:
        reader.texts.append(_text_of(_structured(answer)))
    content = reader.content()
    is_error = answer.get("isError") in (True, "true", "True", 1)
    first = next((part.text for part in content if isinstance(part, Text)), "")
    summary = _line(first) if is_error else _summary(content)
    if content == (Text(""),):
        content = (Text("(no output)"),)
    return ToolResult(content, _details(answer), summary, is_error)


def _blocks(content: JsonValue) -> list[JsonObject]:
    """Return the parts of a result; a bare value stands for a text."""
    parts = content if isinstance(content, list) else [content]
    return [
        part if isinstance(part, dict) and (part.get("type") or _likely_type(part)) else {"type": "text", "text": part}
        for part in parts
        if part is not None
    ]


def _likely_type(block: JsonObject) -> str:
    """Return the type of a part that does not name it; empty if nothing tells."""
    if "text" in block and "uri" not in block:
        return "text"
    if isinstance(block.get("resource"), dict):
        return "resource"
    return "image" if isinstance(block.get("data"), str) and _word(block.get("mimeType")).startswith("image/") else ""


def _structured(answer: JsonObject) -> JsonValue:
    """Return the structured content, or what else an answer without content has."""
    if (structured := answer.get("structuredContent")) is not None:
        return structured
    return {name: value for name, value in answer.items() if name not in _NO_CONTENT} or None


def _details(answer: JsonObject) -> JsonObject | None:
    structured = answer.get("structuredContent")
    is_short = isinstance(structured, dict) and len(msgspec.json.encode(structured)) < _MAX_STRUCTURED_BYTES
    return {"structured": structured} if is_short else None


def _summary(content: tuple[UserContent, ...]) -> str:
    texts = [part.text for part in content if isinstance(part, Text)]
    images = len(content) - len(texts)
    lines = sum(text.count("\n") + 1 for text in texts if text)
    parts = [f"{lines} line{'s' if lines != 1 else ''}"] if lines else []
    parts += [f"{images} picture{'s' if images != 1 else ''}"] if images else []
    return ", ".join(parts) or "no output"


def _line(text: str) -> str:
    return " ".join(text[:400].split())[:120] or "failed"


def _decoded(value: JsonValue) -> bytes | None:
    """Return the bytes of a base64 text: with line breaks, as a data address, or in the alphabet of addresses too."""
    if not isinstance(value, str) or not value:
        return None
    encoded = value.partition(",")[2] if value.startswith("data:") else value
    encoded = "".join(encoded.split()).translate(_ALPHABET_OF_ADDRESSES).rstrip("=")
    try:
        return base64.b64decode(f"{encoded}{'=' * (-len(encoded) % 4)}", validate=True) or None
    except (binascii.Error, ValueError):
        return None


def _text_of(value: JsonValue) -> str:
    """Return a value as text for the model; anything but a text as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return _clean(value)
    return without_hidden(msgspec.json.format(msgspec.json.encode(value), indent=1).decode())


def _clean(value: JsonValue) -> str:
    return without_hidden(clean_output(value.encode("utf-8", "replace"))) if isinstance(value, str) else ""


def _word(value: JsonValue) -> str:
    return re.sub(r"[^\w/+.;=-]", "", value)[:80] if isinstance(value, str) else ""
