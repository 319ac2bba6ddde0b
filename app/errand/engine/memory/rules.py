"""The rules which conversations are remembered, which ones recall entries, and of which folder each is."""

import os
from pathlib import Path

from errand.engine.core.setting_lists import folders_of
from errand.engine.core.settings import Settings
from errand.protocol.conversations import Conversation


class MemoryRules:
    """The switches of each conversation, and the folders that the settings leave out."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._folders: dict[str, frozenset[Path]] = {}

    def remembers(self, conversation: Conversation) -> bool:
        folder = folder_of(conversation)
        return conversation.remembers and not self._is_below(folder, self._settings.values.not_remembered_folders)

    def may_recall(self, conversation: Conversation) -> bool:
        folder = folder_of(conversation)
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


def folder_of(conversation: Conversation) -> str:
    """Return the folder that a conversation is about.

    Of an imported one that is the folder named in its file, until a person chooses: its workspace is an empty folder of
    its own until then, as if it were about none.
    """
    if conversation.proposed_workspace:
        return os.path.normpath(conversation.proposed_workspace)
    return conversation.workspace


def _folders(setting: str) -> frozenset[Path]:
    """Return the folders as they are written, and without links: workspaces are stored without links."""
    written = folders_of(setting)
    return frozenset((*written, *(Path(os.path.realpath(folder)) for folder in written)))
