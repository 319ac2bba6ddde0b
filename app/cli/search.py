"""`errand search`."""

import msgspec

from app.cli.options import Options
from app.cli.plain import one_line
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
        params = ConversationSearchParams(text=options.text, limit=options.limit)
        hits = (await connection.call(CONVERSATION_SEARCH, params)).hits
    finally:
        await connection.close()
    if not hits and not options.json:
        terminal.note(f"errand: nothing was found for {options.text!r}")
    for hit in hits:
        terminal.line(msgspec.json.encode(hit).decode() if options.json else hit_line(hit, terminal.style))
    return 0


def hit_line(hit: SearchHit, style: Style) -> str:
    """Day, conversation and snippet, with the words that matched in bold."""
    day = hit.created_at.astimezone().strftime("%Y-%m-%d %H:%M")
    title = one_line(hit.conversation_title, 40)
    return style.join(f"{style.dim(day)}  {style.bold(title)}", marked(hit.snippet, style))


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
