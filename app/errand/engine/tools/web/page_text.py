"""The text of a response: a page as Markdown, other text as it is."""

import asyncio
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from errand.engine.core.ids import new_id
from errand.engine.sandbox.launch import prepare_launch
from errand.engine.tools.plain_text import clean_output, without_hidden
from errand.engine.tools.processes import marks, spawn
from errand.engine.tools.processes.termination import ProcessSweep
from errand.engine.tools.results import ToolError
from errand.engine.tools.web import markdown_child
from errand.system.environment import without_secrets

_LIMIT_S = 20.0
_MAX_LABEL_LENGTH = 100
_TEXTS = re.compile(
    r"text/.+|application/(?:.+\+)?(?:json|xml|yaml|x-yaml|toml|javascript|ecmascript|x-ndjson|jsonl|sql|x-sh|"
    r"x-javascript|graphql|rtf)|image/svg\+xml|message/.+"
)
_PAGES = ("text/html", "application/xhtml+xml")


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    text: str


def is_text(content_type: str) -> bool:
    """Return True for a type that can be read as text; also for none, of which the content tells."""
    return not content_type or _TEXTS.fullmatch(content_type) is not None or content_type in _PAGES


async def read_page(body: bytes, charset: str, content_type: str, url: str, *, raw: bool) -> Page:
    """Return the text of a response: of a page its main content as Markdown, with absolute links, else as it is.

    It is decoded and converted by a process that can be ended. Raises `ToolError` if it cannot be done in time.
    """
    is_page = content_type in _PAGES
    kind = "text" if raw or (content_type and not is_page) else "page" if is_page else "unknown"
    page = await _in_process(body, (url, charset[:_MAX_LABEL_LENGTH], kind), "" if raw else " Use raw.")
    return await asyncio.to_thread(lambda: Page(_clean(page.title), _clean(page.text)))


async def _in_process(body: bytes, arguments: Sequence[str], advice: str) -> Page:
    owner = new_id("page")
    mark, sweep, output = marks.new_mark(owner), ProcessSweep(owner), bytearray()
    with tempfile.TemporaryFile() as file:
        file.write(body)
        file.flush()
        command = [*_command(), str(file.fileno()), *arguments]
        launch = await prepare_launch(command, Path(tempfile.gettempdir()), without_secrets(os.environ), None)
        launch.descriptors.append(file.fileno())
        try:
            child = spawn.start(launch, mark, output.extend, _ignore)
        except OSError as error:
            marks.forget((mark,))
            raise ToolError(f"The page could not be read: {error.strerror or error}.") from error
        finally:
            launch.descriptors.clear()  # the file is closed with its block
    try:
        async with asyncio.timeout(_LIMIT_S):
            code = await child.exit
            await child.stdout.ended
    except TimeoutError as error:
        raise ToolError(f"The page is too complicated to be converted in time.{advice}", "not converted") from error
    finally:
        child.stdout.discard()
        child.stderr.discard()
        await sweep.end()
    if code != 0:
        raise ToolError(f"The page cannot be converted: it is too large or too deep.{advice}", "not converted")
    title, text = (msgspec.json.decode(line, type=str) for line in bytes(output).splitlines())
    return Page(title, text)


def _clean(text: str) -> str:
    """Characters may have been written as numbers, such as &#8203;."""
    return without_hidden(clean_output(text.encode("utf-8", "replace")))


def _command() -> list[str]:
    """An installed bundle's executable is errand itself."""
    if getattr(sys, "frozen", False):
        return [sys.executable, "page-markdown"]
    return [sys.executable, "-I", markdown_child.__file__]


def _ignore(data: bytes) -> None:
    pass
