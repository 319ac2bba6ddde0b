"""What a search finds in the transcript, and how a hit comes into view. The marks themselves `reader` paints."""

import re
from collections.abc import Callable, Sequence

from PySide6.QtWidgets import QWidget

from app.window.transcript.marks import Sought, current, found_in
from app.window.transcript.reader import Reader
from app.window.transcript.stage import Stage


class Hits:
    """`bring` brings a row into view, `scroll` goes down by pixels; `pad` is how near to an edge a hit may stand."""

    def __init__(
        self,
        stage: Stage,
        reader: Reader,
        viewport: QWidget,
        *,
        pad: int,
        bring: Callable[[int], None],
        scroll: Callable[[int], None],
    ) -> None:
        self._stage = stage
        self._reader = reader
        self._viewport = viewport
        self._pad = pad
        self._bring = bring
        self._scroll = scroll

    def mark(self, sought: Sought | None) -> None:
        """Mark what is searched for wherever it is seen; None marks nothing."""
        self._reader.seek(sought)

    def mark_words(self, words: Sequence[str]) -> None:
        """Mark each of these words, whatever its case, until something else is marked or a person clicks."""
        known = [re.escape(word) for word in sorted(words, key=len, reverse=True) if word.strip()]
        self.mark(Sought(re.compile("|".join(known), re.IGNORECASE)) if known else None)

    def show(self, index: int, sought: Sought) -> None:
        """Bring a hit of this row into view, opening the card that hides it, and mark all."""
        if sought.counts.get(sought.key, 0) > len(found_in(self._stage.block(index), sought.pattern)):
            self._stage.open(index)
        self._reader.seek(sought)
        self._bring(index)
        self._reveal(index, sought)

    def _reveal(self, index: int, sought: Sought) -> None:
        """As little as needed, but never at the very edge."""
        block = self._stage.block(index)
        hit = current(found_in(block, sought.pattern), sought.key, sought)
        place = hit.view.reveal(hit.start, hit.end) if hit is not None else block.rect()
        near = hit.view.viewport() if hit is not None else block
        top = near.mapTo(self._viewport, place.topLeft()).y()
        room = self._viewport.height()
        if top < self._pad or top + place.height() > room - self._pad:
            self._scroll(top - room // 3)
