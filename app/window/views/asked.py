"""What an ask is about, in one line: the command where there is one, else its question."""

from app.client.characters import exact, plain
from app.protocol.asks import Ask


def asked_line(ask: Ask) -> str:
    asked = ask.approval or ask.unknown
    command = asked.command if asked is not None else None
    return plain(ask.text) if command is None else exact(command)
