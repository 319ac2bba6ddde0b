"""A text file in memory: its text with plain newlines, and what is needed to write it back as it was."""

import codecs
from dataclasses import dataclass

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class TextFile:
    """`text` has \\n where the file has its `newline`; mixed newlines are left as they are."""

    text: str
    encoding: str = "utf-8"
    bom: bytes = b""
    newline: str = "\n"

    def encode(self, text: str) -> bytes:
        """Another text in this file's form. UnicodeEncodeError if its encoding has no such character."""
        if self.newline == "\r\n":
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")
        return self.bom + text.encode(self.encoding)


def decode(data: bytes) -> TextFile | None:
    """The file's text, or None if it is binary. What is neither UTF-8 nor marked is read as Latin-1, which fits all."""
    bom, encoding = next(((bom, name) for bom, name in _BOMS if data.startswith(bom)), (b"", "utf-8"))
    if b"\0" in data and not encoding.startswith("utf-16"):
        return None
    try:
        text = data[len(bom) :].decode(encoding)
    except UnicodeDecodeError:
        bom, encoding, text = b"", "latin-1", data.decode("latin-1")
    windows = text.count("\r\n")
    if windows and windows == text.count("\n"):
        return TextFile(text.replace("\r\n", "\n"), encoding, bom, "\r\n")
    return TextFile(text, encoding, bom)
