"""What an ask is about, in one line: the command where there is one, else its question."""

from app.client.characters import exact_line, plain
from app.protocol.asks import Ask


def asked_line(ask: Ask) -> str:
    asked = ask.approval or ask.unknown
    return plain(ask.text) if asked is None else exact_line(asked.command or asked.text)
