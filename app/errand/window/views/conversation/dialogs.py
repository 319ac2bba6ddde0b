"""Dialogs of one conversation: compare branches, export a branch, ask several models, confirm a workspace."""

from functools import partial

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from errand.client.conversation.branch import ComparedBranch
from errand.client.safe_text import escape_hidden
from errand.text.translation import tr
from errand.window.stores.conversation.commands import WorkspaceQuestion
from errand.window.stores.conversation.store import ConversationStore
from errand.window.stores.task_options import TaskOptionDefaults
from errand.window.views.composer.input_panel import InputPanelView
from errand.window.views.conversation.services import ViewServices
from errand.window.widgets.dialogs import QuestionDialog


class ConversationDialogs:
    """Opens the dialogs of one conversation with `parent` as their parent widget."""

    def __init__(
        self, store: ConversationStore, services: ViewServices, input_panel: InputPanelView, parent: QWidget
    ) -> None:
        self._store = store
        self._services = services
        self._input_panel = input_panel
        self._parent = parent

    def compare(self, branches: tuple[ComparedBranch, ...]) -> None:
        """Show two to four branches side by side."""
        from errand.window.stores.conversation.comparison import ComparisonStore
        from errand.window.views.branches.comparison import ComparisonDialog

        comparison = ComparisonStore(self._store, self._services.stores.session, self._services.stores.tasks, branches)
        comparison.chosen.connect(self._input_panel.go_on_as_shown)
        ComparisonDialog(
            comparison, self._services.models, self._services.theme, self._services.clipboard, self._parent
        ).show()

    def export(self, leaf_id: str = "") -> None:
        """Ask for the file and the format; without `leaf_id` all branches are exported."""
        from errand.window.views.shared.export_dialog import ExportDialog

        if self._store.conversation_id is not None:
            dialog = ExportDialog(self._store.title, self._parent, of_branch=bool(leaf_id))
            conversations, conversation_id = self._services.stores.conversations, self._store.conversation_id
            dialog.chosen.connect(partial(conversations.export, conversation_id, leaf_id=leaf_id or None))
            dialog.open()

    def ask_for_workspace(self, question: WorkspaceQuestion) -> None:
        """Ask whether an imported conversation may use the folder named in its file."""
        WorkspaceDialog(question, self._parent).open()

    def ask_models(self) -> None:
        """Ask which models should answer the text in the composer."""
        from errand.window.views.conversation.ask_models_dialog import AskModelsDialog

        models = self._services.models
        defaults = TaskOptionDefaults(
            models=models.offered, providers=models.providers, favourites=models.favourites, recent=models.recent
        )
        ticked = models.compared or (self._input_panel.task_options.model,)
        dialog = AskModelsDialog(self._services.theme, defaults, ticked, self._input_panel.composer.text, self._parent)
        dialog.asked.connect(self._on_models_asked)
        dialog.list.favourite_changed.connect(models.set_favourite)
        dialog.open()

    def _on_models_asked(self, text: str, asked: tuple[str, ...]) -> None:
        self._services.models.set_compared(asked)
        self._input_panel.ask_models(text, asked)


class WorkspaceDialog(QuestionDialog):
    """Shows the full path. Esc and Enter cancel."""

    def __init__(self, question: WorkspaceQuestion, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("Working folder"))
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setText(tr("Work in {folder}?").format(folder=escape_hidden(question.proposed)))
        self.setInformativeText(
            tr(
                "This conversation was imported and names this folder. Its agents can read the files there "
                "without asking, and change them when you allow it."
            )
        )
        self._question = question
        self._proposed_button = self.addButton(tr("Use this folder"), QMessageBox.ButtonRole.AcceptRole)
        self._own_button = self.addButton(tr("Use a new folder"), QMessageBox.ButtonRole.ActionRole)
        cancel = self.addButton(QMessageBox.StandardButton.Cancel)
        self.set_default(cancel)
        self.setEscapeButton(cancel)
        self.finished.connect(self._on_finished)

    def _on_finished(self) -> None:
        pressed = self.clickedButton()
        if pressed is self._proposed_button:
            self._question.answer(self._question.proposed)
        else:
            self._question.answer(self._question.own if pressed is self._own_button else None)
