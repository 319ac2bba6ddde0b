"""The choice of a project's folder, for pages that also list what files of a project bring."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from errand.client.safe_text import escape_hidden_line
from errand.protocol.conversations import CONVERSATION_LIST, ConversationListParams
from errand.text.translation import tr
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls
from errand.window.widgets.boxes import set_hbox
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.labels import TextLabel

_CONVERSATIONS = 50
_CHARACTERS = 24


class FolderChoiceView(QWidget):
    """The folders of the newest conversations. `folder_chosen` says that a person chose another one."""

    folder_chosen = Signal()

    def __init__(self, theme: Theme, calls: EngineCalls, none: str, name: str) -> None:
        """`none` stands for no folder, `name` is read by screen readers."""
        super().__init__()
        self._calls = calls
        self._choice = ComboBox((none,), name=name)
        self._choice.setMinimumContentsLength(_CHARACTERS)
        self._choice.setSizeAdjustPolicy(ComboBox.SizeAdjustPolicy.AdjustToMinimumContentsLengthWithIcon)
        self._choice.view().setTextElideMode(Qt.TextElideMode.ElideMiddle)
        set_hbox(self, TextLabel(theme, tr("Folder"), tone="muted"), self._choice, spacing=theme.tokens.space_close)
        self._choice.activated.connect(self.folder_chosen)

    @property
    def folder(self) -> str | None:
        """None without a folder."""
        chosen: object = self._choice.currentData()
        return chosen if isinstance(chosen, str) else None

    async def load(self) -> None:
        """Ask the engine for folders that are new; the choice stays."""
        newest = await self._calls.call(CONVERSATION_LIST, ConversationListParams(limit=_CONVERSATIONS))
        listed_folders: set[object] = {self._choice.itemData(index) for index in range(self._choice.count())}
        for folder in dict.fromkeys(
            conversation.workspace for conversation in newest.conversations if conversation.workspace
        ):
            if folder not in listed_folders:
                self._choice.addItem(escape_hidden_line(folder), folder)
