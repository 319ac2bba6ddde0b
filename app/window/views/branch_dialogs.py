"""The dialogs of a conversation: two branches side by side, one for a file, several models, an imported folder.

Each is loaded when it is opened: most conversations have one branch.
"""

from functools import partial

from PySide6.QtGui import QClipboard
from PySide6.QtWidgets import QWidget

from app.window.models import ModelStore
from app.window.stores.compared import Compared
from app.window.stores.conversation import ConversationStore
from app.window.stores.requests import WorkspaceQuestion
from app.window.stores.stores import Stores
from app.window.theme.theme import Theme
from app.window.views.foot import FootView


class BranchDialogs:
    """Of one conversation; they stand over `parent`."""

    def __init__(
        self,
        store: ConversationStore,
        stores: Stores,
        models: ModelStore,
        foot: FootView,
        theme: Theme,
        clipboard: QClipboard,
        parent: QWidget,
    ) -> None:
        self._store = store
        self._stores = stores
        self._models = models
        self._foot = foot
        self._theme = theme
        self._clipboard = clipboard
        self._parent = parent

    def compare(self, left: Compared, right: Compared) -> None:
        """Show two branches side by side."""
        from app.window.stores.comparison import ComparisonStore
        from app.window.views.compare_dialog import CompareDialog

        comparison = ComparisonStore(self._store, self._stores.session, left, right)
        CompareDialog(comparison, self._models, self._theme, self._clipboard, self._parent).show()

    def export(self, leaf_id: str) -> None:
        """Ask where a branch is written to, and as what."""
        from app.window.views.export_dialog import ExportDialog

        if self._store.conversation_id is not None:
            dialog = ExportDialog(self._store.title, self._parent, of_branch=True)
            export = partial(self._stores.conversations.export, self._store.conversation_id, leaf_id=leaf_id)
            dialog.chosen.connect(export)
            dialog.open()

    def ask_for_workspace(self, question: WorkspaceQuestion) -> None:
        """Ask whether an imported conversation is to work in the folder that its file names."""
        from app.window.views.workspace_dialog import WorkspaceDialog

        WorkspaceDialog(question, self._parent).open()

    def ask_models(self) -> None:
        """Ask which models are to answer what stands in the input."""
        from app.window.views.ask_models_dialog import AskModelsDialog

        model, text = self._foot.choices.model, self._foot.composer.text
        dialog = AskModelsDialog(self._theme, self._models.ready, model, text, self._parent)
        dialog.asked.connect(self._foot.ask_models)
        dialog.open()
