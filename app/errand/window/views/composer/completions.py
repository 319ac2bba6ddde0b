"""What can be completed in the composer: agents after an @, prompts of MCP servers after a /."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from errand.protocol.agents import Agent
from errand.window.stores.tools import ToolStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.composer import ComposerView

if TYPE_CHECKING:
    from errand.window.views.composer.completion_list import MentionListView
    from errand.window.views.composer.server_prompts import ServerPromptListView


class CompletionLists(QObject):
    """The lists, each made when it is first needed. Emits `failed` with a reason.

    `mentionable` returns the agents that a message can mention, `folder` the folder of the next task.
    """

    failed = Signal(str)

    def __init__(
        self,
        composer: ComposerView,
        tools: ToolStore,
        mentionable: Callable[[], tuple[Agent, ...]],
        folder: Callable[[], str | None],
        theme: Theme,
    ) -> None:
        super().__init__(composer)
        self.mentions: MentionListView | None = None
        self.prompts: ServerPromptListView | None = None
        self._composer = composer
        self._tools = tools
        self._mentionable = mentionable
        self._folder = folder
        self._theme = theme
        composer.edited.connect(self._on_edited)

    def close(self) -> bool:
        """Close the list that is open; False if there is none."""
        return any(completions.dismiss() for completions in (self.mentions, self.prompts) if completions is not None)

    def offer_mentions(self) -> None:
        """Complete names of agents from now on: there are several."""
        if self.mentions is None:
            from errand.window.views.composer.completion_list import MentionListView  # most conversations have one

            self.mentions = MentionListView(self._composer.field, self._mentionable, self._theme)

    def _on_edited(self, text: str) -> None:
        if text == "/" and self.prompts is None:
            from errand.window.views.composer.server_prompts import ServerPromptListView  # few messages begin so

            self.prompts = ServerPromptListView(self._composer.field, self._tools, self._folder, self._theme)
            self.prompts.filled.connect(self._on_prompt_filled)
            self.prompts.failed.connect(self.failed)
            self.prompts.update_items()

    def _on_prompt_filled(self, text: str) -> None:
        """Replace the / with the text of a server's prompt, for the person to read and send."""
        typed = self._composer.text
        self._composer.set_text(text if typed.startswith("/") and "\n" not in typed else f"{typed}\n\n{text}".strip())
        self._composer.setFocus()
