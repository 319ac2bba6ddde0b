"""Output of programs as text that a person or a model can read: no escape codes, no progress bars' former states."""

import codecs
import os
import re

# ECMA-48: CSI sequences, OSC sequences up to BEL or ST, and two-character escapes.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~])")
_HALF_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[ -/]*)\Z")
_OVERWRITTEN = re.compile(r"^[^\n]*\r(?=[^\r\n])", re.MULTILINE)
_decoder = codecs.getincrementaldecoder("utf-8")
_CONTROLS = {code: "\ufffd" for code in (*range(32), 127) if chr(code) not in "\t\n"}
_NO_PART_OF_A_LINE = {code: "\ufffd" for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}


def is_clean(data: bytes) -> bool:
    """True if the bytes are UTF-8 text without NUL: nothing is lost when they are shown."""
    if b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def is_text(name: str) -> bool:
    """False for a file's name with bytes that are no UTF-8: neither JSON nor the database takes it."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def clean_name(name: str) -> str:
    """A file's name as text in one line: line breaks, escape codes and bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace").translate(_NO_PART_OF_A_LINE)


def clean_output(data: bytes, *, goes_on: bool = False) -> str:
    """Bytes as text; what is no UTF-8 and no printable character becomes U+FFFD.

    Where more is to come (`goes_on`), half a character or escape code at the end is left out.
    """
    text = _decoder("replace").decode(data, final=not goes_on)
    if "\x1b" in text:
        text = _ESCAPES.sub("", _HALF_ESCAPE.sub("", text) if goes_on else text)
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text.replace("\r\n", "\n")).replace("\r", "")
    return text.translate(_CONTROLS)
