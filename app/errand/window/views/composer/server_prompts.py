"""Prompts of MCP servers in the composer: a list after a / at its beginning, and the dialog for their arguments."""

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QLineEdit, QListWidgetItem, QWidget
from shiboken6 import isValid

from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.protocol.servers import (
    McpPromptArgument,
    McpPromptListParams,
    McpPromptListResult,
    McpPromptParams,
    McpServerPrompt,
)
from errand.text.translation import tr
from errand.window.stores.tools import ToolStore
from errand.window.theme.theme import Theme
from errand.window.views.composer.completion_list import CompletionListView
from errand.window.views.composer.prompt_edit import PromptEditView
from errand.window.widgets.forms.form import FormDialog, form, line_edit
from errand.window.widgets.labels import TextLabel, one_line

_MAX_SHOWN = 8
_MAX_PROBLEMS = 2
_MAX_LINE_LENGTH = 90
_MAX_NAME_LENGTH = 60
_MAX_VALUE_LENGTH = 10_000
_ROLE = Qt.ItemDataRole.UserRole
_START = -1


class ServerPromptListView(CompletionListView):
    """Lists the prompts of connected servers; the others are started if the person wants that.

    `filled` gives the text of the one that was chosen, `failed` why there is none. `workspace` returns the folder of
    the conversation, None for a new one.
    """

    filled = Signal(str)
    failed = Signal(str)

    def __init__(
        self, field: PromptEditView, tools: ToolStore, workspace: Callable[[], str | None], theme: Theme
    ) -> None:
        self._tools = tools
        self._workspace = workspace
        self._result = McpPromptListResult()
        self._is_starting = False
        self._is_open = False
        super().__init__(field, tr("Server prompts"), theme)

    def start(self) -> int:
        """0 while the text is a / and part of a name."""
        text = self.field.document().firstBlock().text()
        is_name = text.startswith("/") and " " not in text and self.field.document().blockCount() == 1
        return 0 if is_name and self.field.textCursor().position() == len(text) else -1

    def items(self, start: int) -> list[QListWidgetItem]:
        typed = self.field.document().firstBlock().text()[1:].casefold()
        result = self._result
        indexes = [index for index, prompt in enumerate(result.prompts) if _begins(prompt, typed)][:_MAX_SHOWN]
        items = [self._item(_line(result.prompts[index]), index) for index in indexes]
        if result.idle and not typed:
            names = ", ".join(map(escape_hidden_line, result.idle))
            items.append(
                self._item(
                    one_line(tr("Start {names} to see more prompts").format(names=names), _MAX_LINE_LENGTH), _START
                )
            )
        if not typed:
            items += [self._note(problem) for problem in result.problems[:_MAX_PROBLEMS]]
        return items

    def update_items(self) -> None:
        """Ask for the prompts anew each time that a / is typed."""
        text = self.field.document().firstBlock().text()
        if text == "/" and not self._is_open:
            self._load(start=False)
        self._is_open = text.startswith("/")
        super().update_items()

    def choose(self, item: QListWidgetItem | None) -> None:
        index: object = item.data(_ROLE) if item is not None else None
        if not isinstance(index, int):
            return
        if index == _START:
            self._load(start=True)
            return
        self.hide()
        self._fill(self._result.prompts[index])

    def _fill(self, chosen: McpServerPrompt) -> None:
        if not chosen.prompt.arguments:
            params = prompt_params(chosen, self._workspace(), {})
            self._tools.fill_prompt(params, self._on_filled, self.failed.emit)
            return
        dialog = PromptArgumentsDialog(self.theme, self._tools, chosen, self._workspace(), self.field.window())
        dialog.filled.connect(self.filled)
        dialog.open()

    def _on_filled(self, text: str) -> None:
        if isValid(self):  # else the conversation was closed meanwhile
            self.filled.emit(text)

    def _load(self, *, start: bool) -> None:
        if self._is_starting:
            return
        self._is_starting = start
        if start:
            self._result = McpPromptListResult(prompts=self._result.prompts, problems=(tr("Starting…"),))
            self.update_items()
        params = McpPromptListParams(workspace=self._workspace(), start=start)
        self._tools.load_prompts(params, partial(self._on_loaded, start), self._on_failed)

    def _on_loaded(self, was_start: bool, result: McpPromptListResult) -> None:
        if not isValid(self) or (self._is_starting and not was_start):
            return
        self._is_starting, self._result = False, result
        super().update_items()

    def _on_failed(self, reason: str) -> None:
        self._on_loaded(True, McpPromptListResult(problems=(reason,)))

    def _item(self, text: str, index: int) -> QListWidgetItem:
        item = QListWidgetItem(text)
        item.setData(_ROLE, index)
        return item

    def _note(self, text: str) -> QListWidgetItem:
        item = QListWidgetItem(one_line(escape_hidden(text), _MAX_LINE_LENGTH))
        item.setFlags(Qt.ItemFlag.NoItemFlags)
        item.setForeground(QColor(self.theme.tokens.muted))
        return item


def _begins(one: McpServerPrompt, typed: str) -> bool:
    return _name(one).casefold().startswith(typed) or one.prompt.name.casefold().startswith(typed)


def _name(one: McpServerPrompt) -> str:
    return f"{one.server}/{one.prompt.name}"


def _line(one: McpServerPrompt) -> str:
    name = one_line(escape_hidden_line(f"/{_name(one)}"), _MAX_NAME_LENGTH)
    about = escape_hidden_line(one.prompt.description)
    return one_line(f"{name}   {about}" if about else name, _MAX_LINE_LENGTH)


class PromptArgumentsDialog(FormDialog):
    """The values of a prompt's arguments. `filled` gives the text that the server made of them."""

    filled = Signal(str)

    def __init__(
        self, theme: Theme, tools: ToolStore, chosen: McpServerPrompt, workspace: str | None, parent: QWidget
    ) -> None:
        super().__init__(theme, one_line(escape_hidden_line(_name(chosen)), _MAX_NAME_LENGTH), tr("Insert"), parent)
        self._tools = tools
        self._chosen = chosen
        self._workspace = workspace
        self._fields: dict[str, QLineEdit] = {}
        self._problem = TextLabel(theme, tone="failed", wrap=True)
        self._problem.hide()
        self._lay_out()
        self.confirm.clicked.connect(self._on_insert)
        self._on_edited()

    def _lay_out(self) -> None:
        fields = form(self.theme, *(self._field(argument) for argument in self._chosen.prompt.arguments))
        about = escape_hidden(self._chosen.prompt.description)
        heading = (TextLabel(self.theme, about, tone="muted", wrap=True),) if about else ()
        self.lay_out(*heading, fields, self._problem)

    def _field(self, argument: McpPromptArgument) -> tuple[str, QLineEdit]:
        name = one_line(escape_hidden_line(argument.name), _MAX_NAME_LENGTH)
        about = escape_hidden_line(argument.description)
        hint = about if argument.required else tr("{about} (optional)").format(about=about).strip()
        field = self._fields[argument.name] = line_edit(name, hint, max_length=_MAX_VALUE_LENGTH)
        field.textChanged.connect(self._on_edited)
        field.returnPressed.connect(self._on_insert)
        return name, field

    def _on_edited(self) -> None:
        self._problem.hide()
        needed = [argument.name for argument in self._chosen.prompt.arguments if argument.required]
        self.confirm.setEnabled(all(self._fields[name].text().strip() for name in needed))

    def _on_insert(self) -> None:
        if not self.confirm.isEnabled():
            return
        self.confirm.setEnabled(False)
        arguments = {name: field.text() for name, field in self._fields.items() if field.text().strip()}
        params = prompt_params(self._chosen, self._workspace, arguments)
        self._tools.fill_prompt(params, self._on_filled, self._on_failed)

    def _on_filled(self, text: str) -> None:
        if not isValid(self):
            return  # cancelled meanwhile
        self.filled.emit(text)
        self.accept()

    def _on_failed(self, reason: str) -> None:
        if not isValid(self):
            return
        self._on_edited()
        self._problem.setText(escape_hidden(reason))
        self._problem.show()


def prompt_params(chosen: McpServerPrompt, workspace: str | None, given: dict[str, str]) -> McpPromptParams:
    return McpPromptParams(name=chosen.server, prompt=chosen.prompt.name, arguments=given, workspace=workspace)
