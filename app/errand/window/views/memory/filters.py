"""The filters of the entries: kind, place (a conversation or a folder) and time."""

from datetime import UTC, datetime, timedelta

import msgspec
from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.protocol.blocks import MemoryRole
from errand.protocol.memory import MemoryFilter
from errand.text.translation import tr
from errand.window.theme.theme import Theme
from errand.window.views.memory.texts import KINDS
from errand.window.widgets.forms.combo_box import ComboBox

_PERIODS: dict[str, timedelta | None] = {
    tr("Any time"): None,
    tr("Last 24 hours"): timedelta(days=1),
    tr("Last 7 days"): timedelta(days=7),
    tr("Last 30 days"): timedelta(days=30),
    tr("Last 90 days"): timedelta(days=90),
    tr("Last year"): timedelta(days=365),
}
_EVERYWHERE = tr("Everywhere")
_PLACE_CHARACTERS = 18
_PLACE_PADDING, _MAX_PLACE_WIDTH_PX = 40, 480  # pixels, in the open list


class MemoryFilterView(QWidget):
    """`changed` says that a person chose another kind, place or time."""

    changed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._kind = ComboBox((tr("All types"), *(many for _, many in KINDS.values())), name=tr("Type"))
        self._places = [MemoryFilter()]  # as they are offered
        self._place = ComboBox((_EVERYWHERE,), name=tr("Location"))
        self._place.setMinimumContentsLength(_PLACE_CHARACTERS)
        self._place.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._place.view().setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self._period = ComboBox(tuple(_PERIODS), name=tr("Time"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.tokens.space_close)
        for box in (self._kind, self._place, self._period):
            row.addWidget(box)
            box.activated.connect(self.changed)

    @property
    def where(self) -> MemoryFilter:
        """Folders are compared as they are, without those below them."""
        kinds: tuple[MemoryRole, ...] = tuple(KINDS)
        age = _PERIODS[self._period.currentText()]
        kind = self._kind.currentIndex()
        return msgspec.structs.replace(
            self._places[self._place.currentIndex()],
            roles=(kinds[kind - 1],) if kind else (),
            after=datetime.now(UTC) - age if age is not None else None,
        )

    def show_places(self, conversation_id: str, here: str, others: tuple[str, ...]) -> None:
        """Offer the conversation in front, its folder and other folders; the choice stays if it is offered again."""
        chosen = self._places[self._place.currentIndex()]
        names_by_filter = {MemoryFilter(): _EVERYWHERE}
        if conversation_id:
            names_by_filter[MemoryFilter(conversation_ids=(conversation_id,))] = tr("This conversation")
        for folder in filter(None, (here, *others)):
            name = escape_hidden_line(folder)
            names_by_filter.setdefault(
                MemoryFilter(folders=(folder,)), tr("This folder: {name}").format(name=name) if folder == here else name
            )
        self._places = list(names_by_filter)
        self._place.clear()
        self._place.addItems(list(names_by_filter.values()))
        self._place.setCurrentIndex(self._places.index(chosen) if chosen in names_by_filter else 0)
        names = self._place.fontMetrics()
        widest = max(map(names.horizontalAdvance, names_by_filter.values())) + _PLACE_PADDING
        self._place.view().setMinimumWidth(min(widest, _MAX_PLACE_WIDTH_PX))

    def clear(self) -> None:
        for box in (self._kind, self._place, self._period):
            box.setCurrentIndex(0)
