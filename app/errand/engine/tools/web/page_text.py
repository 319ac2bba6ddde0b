"""The text of a response: a page as Markdown, other text as it is."""

import asyncio
import codecs
import os
import re
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from errand.engine.core.ids import new_id
from errand.engine.sandbox.launch import prepare_launch
from errand.engine.tools.base import ToolError
from errand.engine.tools.processes import marks, spawn
from errand.engine.tools.processes.termination import ProcessSweep
from errand.engine.tools.web import markdown_child
from errand.environment import without_secrets

_LIMIT_S = 20.0
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_TEXTS = re.compile(
    r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-ndjson|jsonl|sql|x-sh|"
    r"x-javascript|graphql|rtf)|image/svg\+xml|message/.+"
)
_PAGES = ("text/html", "application/xhtml+xml")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    text: str


def is_text(content_type: str) -> bool:
    """True for a type that can be read as text; also for none, of which the content tells."""
    return not content_type or _TEXTS.fullmatch(content_type) is not None or content_type in _PAGES


def is_page(content_type: str, text: str) -> bool:
    if content_type:
        return content_type in _PAGES
    return text[:1_000].lstrip().lower().startswith(("<!doctype html", "<html", "<head", "<body"))


def decoded(body: bytes, charset: str) -> str:
    """The text, in the encoding that its first bytes, the header or the page name, else UTF-8 or windows-1252."""
    marked = next((name for mark, name in _MARKS if body.startswith(mark)), "")
    found = _META.search(body[:4_096])
    for name in (marked, charset, found[1].decode() if found else "", "utf-8"):
        with suppress(LookupError, UnicodeError, ValueError):
            return _decode(body, name)
    is_mostly_utf8 = body.decode("utf-8", "replace").count("\ufffd") <= len(body) // 1_000
    return body.decode("utf-8" if is_mostly_utf8 else "windows-1252", "replace")


def _decode(body: bytes, name: str) -> str:
    """Raises LookupError if this is no encoding of text. A character that is cut at the end is left out."""
    "x".encode(name)
    known = codecs.lookup(name).name
    decoder = codecs.getincrementaldecoder("windows-1252" if known in ("iso8859-1", "ascii") else known)
    return decoder().decode(body)  # the two names mean windows-1252, as browsers read them


async def to_markdown(html: str, url: str) -> Page:
    """The main content of a page, with absolute links. Raises `ToolError` if it cannot be converted in time."""
    owner = new_id("page")
    mark, sweep, output = marks.new_mark(owner), ProcessSweep(owner), bytearray()
    with tempfile.TemporaryFile() as file:
        file.write(html.encode("utf-8", "replace"))
        file.flush()
        command = [*_command(), str(file.fileno()), url]
        launch = await prepare_launch(command, Path(tempfile.gettempdir()), without_secrets(os.environ), None)
        launch.descriptors.append(file.fileno())
        try:
            child = spawn.start(launch, mark, output.extend, _ignore)
        except OSError as error:
            marks.forget((mark,))
            raise ToolError(f"The page could not be converted: {error.strerror}. Use raw.") from error
        finally:
            launch.descriptors.clear()  # the file is closed with its block
    try:
        async with asyncio.timeout(_LIMIT_S):
            code = await child.exit
            await child.stdout.ended
    except TimeoutError as error:
        raise ToolError("The page is too complicated to be converted in time. Use raw.", "not converted") from error
    finally:
        child.stdout.discard()
        child.stderr.discard()
        await sweep.end()
    if code != 0:
        raise ToolError("The page cannot be converted: it is too large or too deep. Use raw.", "not converted")
    title, text = (msgspec.json.decode(line, type=str) for line in bytes(output).splitlines())
    return Page(title, text)


def _command() -> list[str]:
    """An installed bundle's executable is errand itself."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "page-markdown"]
    return [sys.executable, "-I", markdown_child.__file__]


def _ignore(data: bytes) -> None:
    pass
