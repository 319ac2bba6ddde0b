"""A text cut to one line, for where a card is folded."""

from app.client.characters import output_text


def one_line(text: str, most: int) -> str:
    """Of at most `most` characters, with an ellipsis where it was cut."""
    line = " ".join(output_text(text[: most * 4]).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
