"""The page of facts: proposed ones to accept or decline, pinned ones to change and remove."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from errand.client.safe_text import escape_hidden
from errand.protocol.memory import Fact, MemoryPinParams
from errand.text.translation import tr, trn
from errand.window.stores.memory.facts import FactStore
from errand.window.theme.style import check_box, push_button, set_style, set_tool_tip
from errand.window.theme.theme import Theme
from errand.window.views.memory.fact_form import FactFormView
from errand.window.views.memory.texts import origin_text
from errand.window.widgets.boxes import STRETCH, at_top, fill, hbox, set_at_top, set_hbox, set_vbox, vbox
from errand.window.widgets.containers import vertical_scroll_area
from errand.window.widgets.empty_state import EmptyStateView
from errand.window.widgets.labels import TextLabel
from errand.window.widgets.list_column import ListColumn

_TEXT = tr(
    "Agents get the pinned facts at the start of every task. Facts proposed by agents aren't used "
    "until you accept them."
)
_ACCEPTED = tr("Accepted. Applies to new tasks.")
_REMOVED = tr("Removed. Applies to new tasks.")
_NOTHING = tr(
    "Pin what agents should always know: how you like answers, what you work on, what to watch out for in a folder."
)


class FactRowView(QWidget):
    """`accepted`, `edit_requested`, `removed` (or declined) and `source_requested` are what a person asks for.

    `chosen` says that its `choice` has changed: pinned facts can be chosen, to be merged.
    """

    chosen = Signal()
    accepted = Signal()
    edit_requested = Signal()
    removed = Signal()
    source_requested = Signal()

    def __init__(self, theme: Theme, fact: Fact) -> None:
        super().__init__()
        self._theme = theme
        text = escape_hidden(fact.text)
        self.choice = check_box("")
        self.choice.setAccessibleName(tr("Select: {text}").format(text=text))
        set_tool_tip(self.choice, tr("Select, to merge it with others"))
        if fact.status != "pinned":
            self.choice.hide()
        self.choice.toggled.connect(self.chosen)
        row = QHBoxLayout()
        row.setSpacing(theme.tokens.space_close)
        row.addWidget(TextLabel(theme, origin_text(fact), size=theme.tokens.size_small, tone="muted", wrap=True), 1)
        if fact.status == "proposed":
            row.addWidget(self._button(tr("Accept"), text, self.accepted.emit, primary=True))
        if fact.node_id:
            row.addWidget(self._button(tr("Go to source"), text, self.source_requested.emit))
        self.edit_button = self._button(tr("Edit…"), text, self.edit_requested.emit)
        row.addWidget(self.edit_button)
        row.addWidget(
            self._button(tr("Decline") if fact.status == "proposed" else tr("Remove"), text, self.removed.emit)
        )
        inside = vbox(TextLabel(theme, text, wrap=True), row, spacing=theme.tokens.space_tight)
        set_hbox(self, at_top(self.choice), fill(inside), spacing=theme.tokens.space_close)

    def _button(self, name: str, text: str, do: Callable[[], None], *, primary: bool = False) -> QPushButton:
        button = push_button(name, "primary" if primary else "plain", name=f"{name.rstrip('… ')}: {text}")
        button.clicked.connect(lambda _=False: do())
        return button


class FactsPageView(QWidget):
    """Emits `source_requested` with a conversation and a node.

    `notified` gives what was done, as a sentence, and whether `undo` can take it back.
    """

    source_requested = Signal(str, str)
    notified = Signal(str, bool)

    def __init__(self, theme: Theme, facts: FactStore) -> None:
        super().__init__()
        self._theme = theme
        self._facts = facts
        self._shown: tuple[Fact, ...] | None = None
        self._undo: tuple[MemoryPinParams, ...] = ()
        self._edited = ""  # the id of the fact in the form; "" for a new one
        self._new, self._merge = push_button(tr("Add fact…")), push_button("")
        self._merge.hide()
        self._form = FactFormView(theme, facts)
        self._empty = EmptyStateView(theme, "pin", tr("No facts yet"), _NOTHING)
        self._sections = tuple(
            (TextLabel(theme, heading, bold=True), ListColumn(theme.tokens.space_normal, self._row))
            for heading in (tr("Proposed by agents"), tr("Pinned"))
        )
        self._lay_out()
        self._new.clicked.connect(self._on_new_clicked)
        self._merge.clicked.connect(self._on_merge_clicked)
        self._form.closed.connect(self._on_form_closed)
        self._form.done.connect(self._on_done)
        self._form.merged.connect(self._on_merged)
        facts.changed.connect(self._show)

    def open(self) -> None:
        self._show()
        self._facts.load()

    def undo(self) -> None:
        """Take back the last removal, change or merge."""
        changes, self._undo = self._undo, ()
        for params in changes:
            self._facts.pin(params, lambda _: self._notify(tr("Restored.")), self._facts.failed.emit)

    def _lay_out(self) -> None:
        tokens = self._theme.tokens
        inside = QWidget()
        set_style(inside, "look", "page")
        parts = (part for section in self._sections for part in section)
        rows = vbox(self._empty, *parts, spacing=tokens.space_normal)
        set_at_top(inside, rows, margins=(0, 0, tokens.space_close, 0))
        for view in (self._empty, *(heading for heading, _ in self._sections)):
            view.hide()
        set_vbox(
            self,
            TextLabel(self._theme, _TEXT, tone="muted", wrap=True),
            hbox(self._new, self._merge, STRETCH, spacing=tokens.space_close),
            self._form,
            fill(vertical_scroll_area(inside)),
            spacing=tokens.space_normal,
        )

    def _show(self) -> None:
        proposed, pinned = self._facts.proposed, self._facts.pinned
        facts_in_order = (*proposed, *pinned)
        if not self._facts.is_loaded or facts_in_order == self._shown:
            return  # rows with the focus keep it
        self._shown = facts_in_order
        focused = next((fact_id for fact_id, view in self._views.items() if _has_focus(view)), None)
        chosen_ids = {fact.id for fact in self._chosen}
        self._empty.setVisible(not facts_in_order)
        for (heading, column), facts in zip(self._sections, (proposed, pinned), strict=True):
            heading.setVisible(bool(facts))
            column.show_items({fact.id: fact for fact in facts})
        for fact_id in chosen_ids & self._views.keys():
            self._views[fact_id].choice.setChecked(True)
        self._on_chosen()
        if focused is not None:
            self._focus(focused)

    @property
    def _chosen(self) -> tuple[Fact, ...]:
        views = self._views
        return tuple(fact for fact in self._facts.pinned if fact.id in views and views[fact.id].choice.isChecked())

    @property
    def _views(self) -> dict[str, FactRowView]:
        return {fact_id: view for _, column in self._sections for fact_id, view in column.rows.items()}

    def _focus(self, fact_id: str) -> None:
        """Focus the row of a fact; for a fact that is gone, the button above the list."""
        if (view := self._views.get(fact_id)) is not None:
            view.edit_button.setFocus()
        else:
            self._new.setFocus()

    def _row(self, fact: Fact) -> FactRowView:
        row = FactRowView(self._theme, fact)
        row.chosen.connect(self._on_chosen)
        row.accepted.connect(partial(self._on_accepted, fact))
        row.edit_requested.connect(partial(self._on_edit_requested, fact))
        row.removed.connect(partial(self._on_removed, fact))
        row.source_requested.connect(partial(self.source_requested.emit, fact.conversation_id, fact.node_id))
        return row

    def _on_chosen(self) -> None:
        count = len(self._chosen)
        text = trn("Merge {n} fact…", "Merge {n} facts…", count)
        self._merge.setText(text)
        self._merge.setAccessibleName(text)
        self._merge.setVisible(count > 1 and self._form.isHidden())

    def _on_new_clicked(self) -> None:
        self._edited = ""
        self._form.open_new()
        self._hide_openers()

    def _on_merge_clicked(self) -> None:
        facts = self._chosen
        self._edited = facts[0].id
        self._form.open_merge(facts)
        self._hide_openers()

    def _on_edit_requested(self, fact: Fact) -> None:
        self._edited = fact.id
        self._form.open_fact(fact)
        self._hide_openers()

    def _hide_openers(self) -> None:
        self._new.hide()
        self._merge.hide()

    def _on_form_closed(self) -> None:
        self._new.show()
        self._on_chosen()
        self._focus(self._edited)

    def _on_merged(self, before: tuple[Fact, ...], fact: Fact) -> None:
        """`before` begins with the fact that stands for all now."""
        first, *others = before
        back = (_changed_back(first), *map(_pinned_again, others))
        self._notify(tr("Merged. Applies to new tasks."), *back)

    def _on_done(self, before: Fact | None, fact: Fact) -> None:
        if before is None:
            self._notify(tr("Pinned. Applies to new tasks."))
        elif before.status == "proposed":
            self._notify(_ACCEPTED)
        else:
            self._notify(tr("Saved."), _changed_back(before))

    def _on_accepted(self, fact: Fact) -> None:
        self._facts.pin(MemoryPinParams(id=fact.id), lambda _: self._notify(_ACCEPTED), self._facts.failed.emit)

    def _on_removed(self, fact: Fact) -> None:
        if fact.status == "proposed":
            self._facts.remove(fact.id, lambda: self._notify(tr("Declined.")))
        else:
            self._facts.remove(fact.id, lambda: self._notify(_REMOVED, _pinned_again(fact)))

    def _notify(self, text: str, *undo: MemoryPinParams) -> None:
        self._undo = undo
        self.notified.emit(text, bool(undo))


def _has_focus(view: QWidget) -> bool:
    focused = view.focusWidget()
    return focused is not None and focused.hasFocus()  # pyright: ignore[reportUnnecessaryComparison] -- nothing has the focus at first


def _changed_back(fact: Fact) -> MemoryPinParams:
    return MemoryPinParams(id=fact.id, text=fact.text, scope=fact.scope, folder=_folder(fact))


def _pinned_again(fact: Fact) -> MemoryPinParams:
    return MemoryPinParams(
        text=fact.text,
        scope=fact.scope,
        folder=_folder(fact),
        conversation_id=fact.conversation_id,
        node_id=fact.node_id,
    )


def _folder(fact: Fact) -> str | None:
    return fact.folder if fact.scope == "folder" else None
