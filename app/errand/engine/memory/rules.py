"""The rules which conversations are remembered, which ones recall entries, and of which folder each entry is."""

import os
from pathlib import Path

from errand.engine.core.setting_lists import folders_of
from errand.engine.core.settings import Settings
from errand.protocol.conversations import Conversation


class MemoryRules:
    """The switches of each conversation, and the folders that the settings leave out.

    `own_workspaces` has the folders of conversations for which a person chose none.
    """

    def __init__(self, settings: Settings, own_workspaces: Path) -> None:
        self._settings = settings
        self._own_workspaces = own_workspaces
        self._folders: dict[str, frozenset[Path]] = {}

    def remembers(self, conversation: Conversation) -> bool:
        """Return False if nothing of a conversation is remembered; what was said in other folders may not be either."""
        return conversation.remembers and self.remembers_folder(_present_folder(conversation))

    def remembers_folder(self, folder: str) -> bool:
        return not self._is_below(folder, self._settings.values.not_remembered_folders)

    def folder_of(self, conversation: Conversation, workspace: str) -> str:
        """Return the folder that an entry is about: where it was said. It stays there if the conversation is moved.

        `workspace` is the folder of the entry's task, empty without one. What was imported is of the folder that its
        file names, whether that is on this machine or not.
        """
        imported = conversation.imported_folder or conversation.proposed_workspace
        if imported and (not workspace or Path(workspace).is_relative_to(self._own_workspaces)):
            return os.path.normpath(imported)
        return workspace or conversation.workspace

    def may_recall(self, conversation: Conversation) -> bool:
        folder = _present_folder(conversation)
        return conversation.recalls and not self._is_below(folder, self._settings.values.not_recalled_folders)

    def changed(self) -> None:
        """Resolve the folders again: one of the same name may be a link now."""
        self._folders.clear()

    def _is_below(self, workspace: str, setting: str) -> bool:
        if not workspace or not setting:
            return False
        if setting not in self._folders:
            self._folders[setting] = _folders(setting)
        return any(Path(workspace).is_relative_to(folder) for folder in self._folders[setting])


def _present_folder(conversation: Conversation) -> str:
    """Return the folder that a conversation is in; of an imported one the proposed folder, until one is chosen."""
    if conversation.proposed_workspace:
        return os.path.normpath(conversation.proposed_workspace)
    return conversation.workspace


def _folders(setting: str) -> frozenset[Path]:
    """Return the folders as they are written, and without links: workspaces are stored without links."""
    written = folders_of(setting)
    return frozenset((*written, *(Path(os.path.realpath(folder)) for folder in written)))
