"""`errand search`: full-text search in all conversations."""

from typing import Annotated

from errand.cli.arguments import UsageError
from errand.cli.command import Command
from errand.cli.options import Argument, CommandOptions, Option
from errand.cli.output import CommandOutput
from errand.cli.terminal.style import Style
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
    limit: Annotated[int, Option("--limit", "show at most N (default: 20)")] = 20


async def search(options: SearchOptions, paths: Paths, output: CommandOutput) -> int:
    async with await connect(paths, "errand search") as connection:
        params = ConversationSearchParams(text=options.text, limit=options.limit)
        results = await connection.call(CONVERSATION_SEARCH, params)
    if results.advice:
        raise UsageError(results.advice)
    empty = tr("No results for {text!r}.").format(text=options.text)
    output.each(results.hits, lambda hit: [hit_lines(hit, output.style, output.width)], empty=empty)
    return 0


SEARCH = Command(SearchOptions, search, epilog=_OPERATORS)


def hit_lines(hit: SearchHit, style: Style, width: int) -> str:
    """Return the conversation with its id, position and day; below it the snippet, then the adjacent messages."""
    day = hit.created_at.astimezone().strftime("%Y-%m-%d %H:%M")
    position = tr("{place:,} of {of:,}").format(place=hit.place, of=hit.of)
    head = f"{short_id(hit.conversation_id)}  {style.bold(one_line(hit.conversation_title, 40))}"
    snippet = wrapped(highlight_hits(hit.snippet, style), width - 2).split("\n")
    around = [style.dim(f"  {word}: {one_line(text, width - 12)}") for word, text in _around(hit) if text]
    return "\n".join([f"{head}  {style.dim(style.join(position, day))}", *(f"  {row}" for row in snippet), *around])


def _around(hit: SearchHit) -> tuple[tuple[str, str], ...]:
    return ((tr("before"), hit.before), (tr("after"), hit.after))


def highlight_hits(snippet: str, style: Style) -> str:
    """Return a snippet with its marked words colored; the marks themselves are left out."""
    parts: list[str] = []
    for part in snippet.split(_START):
        word, mark, rest = part.partition(_END)
        plain_word = one_line(word, 200)
        parts.append(f"{style.paint('1;33', plain_word)}{_spaced(rest)}" if mark else _spaced(word))
    return "".join(parts)


def _spaced(text: str) -> str:
    """Return the text on one line, with the blanks at its ends."""
    short = one_line(text, 400)
    lead = " " if text[:1].isspace() else ""
    return f"{lead}{short}{' ' if short and text[-1:].isspace() else ''}"
