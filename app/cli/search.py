"""`errand search`."""

import msgspec

from app.cli.options import Options
from app.cli.plain import one_line
from app.cli.run import UsageError
from app.cli.style import Style
from app.cli.terminal import Terminal
from app.client.launch import connect
from app.paths import Paths
from app.protocol.conversations import ConversationSearchParams, SearchHit
from app.protocol.wire import CONVERSATION_SEARCH

_START, _END = "\u2068", "\u2069"


async def search(options: Options, paths: Paths, terminal: Terminal) -> int:
    connection = await connect(paths, "errand search")
    try:
        found = await connection.call(
            CONVERSATION_SEARCH, ConversationSearchParams(text=options.text, limit=options.limit)
        )
    finally:
        await connection.close()
    if found.advice:
        raise UsageError(found.advice)
    if not found.hits and not options.json:
        terminal.note(f"errand: nothing was found for {options.text!r}")
    for hit in found.hits:
        terminal.line(msgspec.json.encode(hit).decode() if options.json else hit_lines(hit, terminal.style))
    return 0


def hit_lines(hit: SearchHit, style: Style) -> str:
    """Day, conversation, place and snippet, with the words that matched in bold; then what stands around it."""
    day = hit.created_at.astimezone().strftime("%Y-%m-%d %H:%M")
    title, place = one_line(hit.conversation_title, 40), style.dim(f"{hit.place:,} of {hit.of:,}")
    lines = [style.join(f"{style.dim(day)}  {style.bold(title)}  {place}", marked(hit.snippet, style))]
    around = (("before", hit.before), ("after", hit.after))
    lines += [style.dim(f"    {word}: {one_line(text, 100)}") for word, text in around if text]
    return "\n".join(lines)


def marked(snippet: str, style: Style) -> str:
    """A snippet with its marked words painted; the marks themselves are never shown."""
    shown: list[str] = []
    for part in snippet.split(_START):
        word, mark, rest = part.partition(_END)
        plain_word = one_line(word, 200)
        shown.append(f"{style.paint('1;33', plain_word)}{_spaced(rest)}" if mark else _spaced(word))
    return "".join(shown)


def _spaced(text: str) -> str:
    """On one line, but with the blanks that part it from its neighbours."""
    short = one_line(text, 400)
    lead = " " if text[:1].isspace() else ""
    return f"{lead}{short}{' ' if short and text[-1:].isspace() else ''}"
