"""A model server of one's own in the list: where it is, whether it answers, and what can be done with it."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QVBoxLayout

from app.protocol.models import Provider
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.views.settings.provider_row import TriedRow
from app.window.views.settings.question import QuestionView


class ServerRow(TriedRow):
    """`edit_asked` to change it, `remove_asked` once a person has confirmed that it goes."""

    edit_asked = Signal()
    remove_asked = Signal()

    def __init__(self, theme: Theme, provider: Provider, models: int) -> None:
        super().__init__(theme, provider, models)
        self._provider = provider
        edit, self._remove = push_button("Edit …"), push_button("Remove …")
        edit.setAccessibleName(f"Edit {provider.title}")
        self._remove.setAccessibleName(f"Remove {provider.title}")
        self._yes, self._no = push_button("Remove it", "danger"), push_button("Keep it")
        self._question = QuestionView(theme, self._no, self._yes)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        column.addLayout(self.head(theme, edit, self._remove))
        column.addWidget(self._question)
        edit.clicked.connect(self.edit_asked)
        self._remove.clicked.connect(self._on_remove_clicked)
        self._yes.clicked.connect(self.remove_asked)
        self._no.clicked.connect(self._on_kept)

    def take_focus(self) -> None:
        """The keyboard comes to what is done most."""
        (self._test if self._test.isVisibleTo(self) else self._remove).setFocus(Qt.FocusReason.OtherFocusReason)

    def _on_remove_clicked(self) -> None:
        has_key = self._provider.key_source in ("keyring", "file")
        key = " and its key" if has_key else ""
        self._question.ask(f"Remove {self._provider.title}{key}? Conversations with its models stay.", self._no)

    def _on_kept(self) -> None:
        self._question.hide()
        self._remove.setFocus()
