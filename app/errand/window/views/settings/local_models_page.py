"""Models that run on this machine: what there is, with download, progress, cancel and removal."""

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from errand.client.number_format import file_size
from errand.client.texts.local_models import facts_text, is_under_way, program_text, state_text
from errand.protocol.local_models import LocalModel, LocalModelListResult
from errand.text.translation import tr
from errand.window.stores.local_models import LocalModelStore
from errand.window.theme.style import Tone, push_button, set_style
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import SettingsPageView
from errand.window.widgets.boxes import STRETCH, hbox, set_vbox
from errand.window.widgets.forms.confirmation import ConfirmationView
from errand.window.widgets.labels import ElidedLabel, TextLabel
from errand.window.widgets.list_column import ListColumn
from errand.window.widgets.progress import ProgressView

_TEXT = tr(
    "Models that work without a key and without a network. Nothing that you write leaves this computer. "
    "The larger the model, the better it works, and the more memory and time it needs."
)


class LocalModelsPageView(SettingsPageView):
    """The models of the engine's machine, the recommended one marked."""

    def __init__(self, theme: Theme, store: LocalModelStore) -> None:
        super().__init__(theme, tr("Run a model on this machine"), _TEXT)
        self._store = store
        self._program = TextLabel(theme, tone="muted", wrap=True)
        self._models: ListColumn[LocalModel, LocalModelRowView] = ListColumn(
            theme.tokens.space_normal, self._row, update=LocalModelRowView.show_model
        )
        self.rows.addLayout(self._models)
        self.rows.addWidget(self._program)
        store.changed.connect(self._show)

    def load(self) -> None:
        self._store.load()

    def take_focus(self) -> None:
        """Focus the recommended model, once the list is there."""
        recommended = self._store.recommended
        row = self._models.rows.get(recommended.id) if recommended is not None else None
        if row is not None:
            row.take_focus()
            self.bring_into_view(row)

    def _show(self) -> None:
        listing = self._store.listing
        if listing is None:
            return
        had_rows = bool(self._models.rows)
        self._models.show_items({model.id: model for model in listing.models})
        self._program.setText(_machine_text(listing))
        if not had_rows and self.isVisible():
            self.take_focus()

    def _row(self, model: LocalModel) -> "LocalModelRowView":
        row = LocalModelRowView(self.theme, model)
        row.install_requested.connect(partial(self._store.install, model.id, self._on_failed))
        row.cancel_requested.connect(partial(self._store.cancel, model.id, self._on_failed))
        row.remove_requested.connect(partial(self._store.remove, model.id, self._on_failed))
        return row

    def _on_failed(self, text: str) -> None:
        """Show why, and enable the buttons again: no change of the model follows that would do it."""
        self.show_failure(text)
        self._show()


class LocalModelRowView(QWidget):
    """One model, with what can be done with it. `remove_requested` is emitted after a confirmation."""

    install_requested = Signal()
    cancel_requested = Signal()
    remove_requested = Signal()

    def __init__(self, theme: Theme, model: LocalModel) -> None:
        super().__init__()
        self._model = model
        self._title = ElidedLabel(theme, model.title, bold=True)
        self._mark = TextLabel(theme, tr("Recommended for this machine"), tone="done")
        self._good_for = TextLabel(theme, tr(model.good_for) if model.good_for else "", wrap=True)
        self._facts = TextLabel(theme, tone="muted", wrap=True)
        self._state = TextLabel(theme, wrap=True)
        self._progress = ProgressView(theme, tr("Download of {name}").format(name=model.title))
        self._install = push_button(tr("Download"), name=tr("Download {name}").format(name=model.title))
        self._cancel = push_button(tr("Cancel"), name=tr("Cancel the download of {name}").format(name=model.title))
        self._remove = push_button(tr("Remove…"), name=tr("Remove {name}").format(name=model.title))
        confirm, keep = push_button(tr("Remove"), "danger"), push_button(tr("Cancel"))
        self._question = ConfirmationView(theme, keep, confirm, cancel=keep, opener=self._remove)
        head = hbox(
            self._title,
            self._mark,
            STRETCH,
            self._install,
            self._cancel,
            self._remove,
            spacing=theme.tokens.space_close,
        )
        set_vbox(
            self,
            head,
            self._good_for,
            self._facts,
            self._state,
            self._progress,
            self._question,
            spacing=theme.tokens.space_tight,
        )
        self._good_for.setVisible(bool(model.good_for))
        self._install.clicked.connect(self._on_install_clicked)
        self._cancel.clicked.connect(self._on_cancel_clicked)
        self._remove.clicked.connect(self._on_remove_clicked)
        confirm.clicked.connect(self.remove_requested)
        self.show_model(model)

    def show_model(self, model: LocalModel) -> None:
        """Show the state of the model; a button that goes away gives the focus to the one in its place."""
        buttons = (self._install, self._cancel, self._remove)
        had_focus = any(button.hasFocus() for button in buttons)
        self._model = model
        is_ours = model.source == "catalogue"
        self._mark.setVisible(model.recommended)
        self._facts.setText(facts_text(model))
        self._show_state(model)
        self._install.setText(_install_text(model))
        self._install.setVisible(model.state in ("available", "failed"))
        set_style(self._install, "look", "primary" if model.recommended else "plain")
        self._cancel.setVisible(is_under_way(model))
        self._remove.setVisible(is_ours and model.state == "installed")
        for button in buttons:
            button.setEnabled(True)
        if had_focus:
            self.take_focus()

    def take_focus(self) -> None:
        """Focus what can be done now."""
        button = next(
            (control for control in (self._install, self._cancel, self._remove) if not control.isHidden()), None
        )
        if button is not None:
            button.setFocus(Qt.FocusReason.OtherFocusReason)

    def _show_state(self, model: LocalModel) -> None:
        has_progress = is_under_way(model)
        self._progress.setVisible(has_progress)
        text = state_text(model)
        if has_progress:
            is_known = model.state == "downloading"
            self._progress.show_progress(text, model.received_bytes, model.size_bytes if is_known else 0)
        self._state.setVisible(bool(text) and not has_progress)
        self._state.setText(text)
        self._state.set_tone(_tone(model))

    def _on_install_clicked(self) -> None:
        self._install.setEnabled(False)  # until the engine has answered
        self.install_requested.emit()

    def _on_cancel_clicked(self) -> None:
        self._cancel.setEnabled(False)
        self.cancel_requested.emit()

    def _on_remove_clicked(self) -> None:
        text = tr("Remove {name}? That frees {size}. Conversations with it stay.")
        self._question.ask(text.format(name=self._model.title, size=file_size(self._model.size_bytes)))


def _tone(model: LocalModel) -> Tone:
    match model.state:
        case "failed":
            return "failed"
        case "installed":
            return "done"
        case _:
            return "muted" if model.fits else "waiting"


def _install_text(model: LocalModel) -> str:
    if model.state == "failed":
        return tr("Try again")
    return tr("Continue") if 0 < model.received_bytes < model.size_bytes else tr("Download")


def _machine_text(listing: LocalModelListResult) -> str:
    """Return what the machine has, and what runs the models."""
    free = tr("{memory} of memory and {disk} on the disk are free now.").format(
        memory=file_size(listing.memory_bytes), disk=file_size(listing.disk_bytes)
    )
    return f"{free} {program_text(listing)}"
