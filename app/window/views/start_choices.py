"""The choices of a conversation that has not begun: the folder to work in and the model. Afterwards it shows them."""

from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QWidget

from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.views.picker import Choice, PickerDialog

_SCRATCH = "New folder"
_LONGEST_FOLDER, _LONGEST_MODEL = 13, 22


class StartChoices(QWidget):
    """`workspace` "" is a new folder of Errand's own; `model` "" is the default model."""

    changed = Signal()
    providers_asked = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.workspace = ""
        self.model = ""
        self._default = ""
        self._models: tuple[str, ...] = ()
        self.folder_button = push_button(_SCRATCH, "quiet")
        self.model_button = push_button("Set up a model", "quiet")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(theme.tokens.space_tight)
        row.addWidget(self.folder_button)
        row.addWidget(self.model_button)
        row.addStretch(1)
        self.model_button.setMinimumWidth(theme.tokens.column // 8)  # it gives way in a narrow window
        self.folder_button.clicked.connect(self._on_folder_clicked)
        self.model_button.clicked.connect(self._on_model_clicked)
        theme.changed.connect(self._show)
        self._show()

    def choose(self, workspace: str, model: str) -> None:
        self.workspace, self.model = workspace, model
        self._show()

    def offer(self, models: tuple[str, ...], default: str) -> None:
        """What can be chosen, and what "" stands for."""
        self._models, self._default = models, default
        self._show()

    def show_begun(self, workspace: str, model: str) -> None:
        """A conversation keeps its folder; the next task takes the model of the one before unless another is chosen."""
        self.workspace = workspace
        self.folder_button.setEnabled(False)
        if not self.model and model != self._default:
            self.model = model
        self._show()

    def _show(self) -> None:
        folder = Path(self.workspace).name if self.workspace else _SCRATCH
        self.folder_button.setText(_short(folder, _LONGEST_FOLDER))
        self.folder_button.setAccessibleName(f"Folder to work in: {folder}")
        self.folder_button.setToolTip(self.workspace or "Errand makes a new folder for this conversation")
        self.folder_button.setIcon(self._theme.icon("folder", "muted"))
        model = self.model or self._default
        self.model_button.setText(_short(model, _LONGEST_MODEL) or "Set up a model")
        self.model_button.setAccessibleName(f"Model: {model}" if model else "Set up a model")
        self.model_button.setToolTip(f"The model that works on this: {model}" if model else "No model is set up")
        self.model_button.setIcon(self._theme.icon("brain", "muted"))

    def _on_folder_clicked(self) -> None:
        dialog = QFileDialog(self, "Folder to work in", self.workspace or str(Path.home()))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self._on_folder_chosen)
        dialog.open()
        dialog.finished.connect(dialog.deleteLater)

    def _on_folder_chosen(self, folder: str) -> None:
        self.choose(folder, self.model)
        self.changed.emit()

    def _on_model_clicked(self) -> None:
        if not self._models:
            self.providers_asked.emit()
            return
        choices = tuple(Choice(name, name, "default" if name == self._default else "") for name in self._models)
        picker = PickerDialog(self._theme, "Choose a model", choices, self)
        picker.chosen.connect(self._on_model_chosen)
        picker.open_above(self.model_button)

    def _on_model_chosen(self, model: str) -> None:
        self.choose(self.workspace, "" if model == self._default else model)
        self.changed.emit()


def _short(name: str, longest: int) -> str:
    """Of a long name its two ends: the tool tip has the whole. A button as long as its text would widen the window."""
    if len(name) <= longest:
        return name
    half = (longest - 1) // 2
    return f"{name[:half]}…{name[-half:]}"
