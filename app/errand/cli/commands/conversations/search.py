"""`errand search`: full-text search in all conversations."""

from typing import Annotated

import msgspec

from errand.cli.arguments import UsageError
from errand.cli.command import Command
from errand.cli.options import Argument, CommandOptions, Flag, Option
from errand.cli.terminal.style import Style
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import one_line, short_id, wrapped
from errand.client.launch import connect
from errand.protocol.conversations import CONVERSATION_SEARCH, ConversationSearchParams, SearchHit
from errand.system.paths import Paths
from errand.text.translation import tr

_START, _END = "\u2068", "\u2069"
_OPERATORS = tr(
    "Narrow a search with from:user, from:agent or from:NAME, in:TITLE or in:ID, "
    "tool:shell, after:2026-11-01 and before:2026-12 (days, months or years), with or "
    "without words. Put values with spaces in quotes."
)


class SearchOptions(CommandOptions, frozen=True, kw_only=True):
    text: Annotated[str, Argument("TEXT", 'words, a "phrase", or the beginning of a word (at least 3 letters)')]
    json: Annotated[bool, Flag("--json", "print JSON lines")] = False
    limit: Annotated[int, Option("--limit", "show at most N (default: 20)")] = 20


async def search(options: SearchOptions, paths: Paths, terminal: Terminal) -> int:
    async with await connect(paths, "errand search") as connection:
        found = await connection.call(
            CONVERSATION_SEARCH, ConversationSearchParams(text=options.text, limit=options.limit)
        )
    if found.advice:
        raise UsageError(found.advice)
    if not found.hits and not options.json:
        terminal.note(tr("No results for {text!r}.").format(text=options.text))
    for hit in found.hits:
        terminal.line(
            msgspec.json.encode(hit).decode() if options.json else hit_lines(hit, terminal.style, terminal.width)
        )
    return 0


SEARCH = Command(SearchOptions, search, epilog=_OPERATORS)


def hit_lines(hit: SearchHit, style: Style, width: int) -> str:
    """The conversation with its id, position and day; below it the snippet, then the adjacent messages."""
    day = hit.created_at.astimezone().strftime("%Y-%m-%d %H:%M")
    place = tr("{place:,} of {of:,}").format(place=hit.place, of=hit.of)
    head = f"{short_id(hit.conversation_id)}  {style.bold(one_line(hit.conversation_title, 40))}"
    snippet = wrapped(highlight_hits(hit.snippet, style), width - 2).split("\n")
    around = [style.dim(f"  {word}: {one_line(text, width - 12)}") for word, text in _around(hit) if text]
    return "\n".join([f"{head}  {style.dim(style.join(place, day))}", *(f"  {row}" for row in snippet), *around])


def _around(hit: SearchHit) -> tuple[tuple[str, str], ...]:
    return ((tr("before"), hit.before), (tr("after"), hit.after))


def highlight_hits(snippet: str, style: Style) -> str:
    """A snippet with its marked words colored; the marks themselves are never shown."""
    shown: list[str] = []
    for part in snippet.split(_START):
        word, mark, rest = part.partition(_END)
        plain_word = one_line(word, 200)
        shown.append(f"{style.paint('1;33', plain_word)}{_spaced(rest)}" if mark else _spaced(word))
    return "".join(shown)


def _spaced(text: str) -> str:
    """The text on one line, with the blanks at its ends."""
    short = one_line(text, 400)
    lead = " " if text[:1].isspace() else ""
    return f"{lead}{short}{' ' if short and text[-1:].isspace() else ''}"
