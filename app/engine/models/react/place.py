"""Where in a Markdown text one stands: in a fenced block, in inline code, at the beginning of a line."""

_FENCE = "```"


class Place:
    """Told of each piece of text, cut anywhere."""

    def __init__(self) -> None:
        self._in_fence = False
        self._head = ""  # the first signs of the present line, as many as tell a fence
        self._ticks = 0

    @property
    def in_fence(self) -> bool:
        return self._in_fence

    @property
    def in_code(self) -> bool:
        """Between the marks of inline code: an odd number of them stands before in the line."""
        return self._ticks % 2 == 1 and not self._in_fence and self._head != _FENCE

    @property
    def at_line_start(self) -> bool:
        return not self._head

    def move(self, text: str) -> None:
        first, *others = text.split("\n")
        self._extend(first)
        for line in others:
            self._in_fence ^= self._head == _FENCE
            self._head, self._ticks = "", 0
            self._extend(line)

    def _extend(self, text: str) -> None:
        if len(self._head) < len(_FENCE):
            self._head = (self._head + text).lstrip()[: len(_FENCE)]
        self._ticks += text.count("`")
