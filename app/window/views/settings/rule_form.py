"""A form for a rule of a person: what always runs without asking, and what never does."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from app.client.rule_text import covered_line, covered_summary, rule_words
from app.protocol.asks import (
    GRANT_ADD,
    GRANT_COVERED,
    GrantAddParams,
    GrantCoveredParams,
    GrantDecision,
    GrantDraft,
    GrantedCall,
)
from app.window.theme.style import push_button
from app.window.theme.theme import Theme
from app.window.views.settings.page import EngineCalls
from app.window.widgets.code_excerpt import CodeExcerptView
from app.window.widgets.combo_box import ComboBox
from app.window.widgets.labels import TextLabel

_MOST_LINES = 10


@dataclass(frozen=True, slots=True)
class _RuleKind:
    """`operation` of None is a rule about commands; else it is about the files of a folder."""

    decision: GrantDecision
    tool: str
    operation: str | None = None


_KINDS = {
    "Never run commands that begin with": _RuleKind("deny", ""),
    "Run without asking commands that begin with": _RuleKind("allow", "shell"),
    "Never change files in": _RuleKind("deny", "", "write"),
    "Never read or change files in": _RuleKind("deny", "", "read"),
    "Change without asking files in": _RuleKind("allow", "code", "edit"),
}


class RuleFormView(QWidget):
    """Hidden until `open_form`. `added` is emitted once the engine has the rule."""

    added = Signal()

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__()
        self._calls = calls
        self._kind = ComboBox(tuple(_KINDS))
        self._kind.setAccessibleName("Kind of rule")
        self._text, self._folder = QLineEdit(), QLineEdit()
        self._text.setPlaceholderText("git push")
        self._text.setAccessibleName("Words that commands begin with")
        self._folder_name = TextLabel(theme)
        self._choose = push_button("Choose …")
        self._choose.setAccessibleName("Choose a folder")
        self._add = push_button("Add rule", "primary")
        self._check = push_button("Check the last 100 calls")
        self._cancel = push_button("Cancel", "quiet")
        self._result = TextLabel(theme, wrap=True)
        self._covered = CodeExcerptView(theme, "Calls that the rule decides", most_lines=_MOST_LINES)
        self._lay_out(theme)
        self._kind.currentIndexChanged.connect(self._on_kind_chosen)
        self._text.textChanged.connect(self._on_edited)
        self._folder.textChanged.connect(self._on_edited)
        self._text.returnPressed.connect(self._on_add_clicked)
        self._folder.returnPressed.connect(self._on_add_clicked)
        self._choose.clicked.connect(self._on_choose_clicked)
        self._add.clicked.connect(self._on_add_clicked)
        self._check.clicked.connect(self._on_check_clicked)
        self._cancel.clicked.connect(self.hide)
        self._on_kind_chosen()
        self.hide()

    def open_form(self) -> None:
        self._text.clear()
        self._folder.clear()
        self._on_edited()
        self.show()
        self._kind.setFocus()

    def show_result(self, text: str) -> None:
        self._result.setText(text)
        self._result.setVisible(bool(text))

    def _lay_out(self, theme: Theme) -> None:
        close = theme.tokens.space_close
        folder = QHBoxLayout()
        folder.setSpacing(close)
        folder.addWidget(self._folder_name)
        folder.addWidget(self._folder, 1)
        folder.addWidget(self._choose)
        buttons = QHBoxLayout()
        buttons.setSpacing(close)
        for button in (self._add, self._check, self._cancel):
            buttons.addWidget(button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(close)
        column.addWidget(self._kind)
        column.addWidget(self._text)
        column.addLayout(folder)
        column.addWidget(self._result)
        column.addWidget(self._covered)
        column.addLayout(buttons)

    def _rule(self) -> GrantDraft:
        """The rule as it was typed. Raises ValueError with what is wrong."""
        kind, text, folder = _KINDS[self._kind.currentText()], self._text.text().strip(), self._folder.text().strip()
        if kind.operation is not None:
            call = GrantedCall(operation=kind.operation, folder=folder)
            return GrantDraft(decision=kind.decision, tool=kind.tool, call=call, scope="user")
        call = GrantedCall(operation="run" if kind.decision == "allow" else "", prefix=rule_words(text))
        scope = "workspace" if folder else "user"
        return GrantDraft(decision=kind.decision, tool=kind.tool, call=call, scope=scope, scope_id=folder)

    async def _send(self, rule: GrantDraft) -> None:
        await self._calls.call(GRANT_ADD, GrantAddParams(rules=(rule,)))
        self.hide()
        self.added.emit()

    async def _judge(self, rule: GrantDraft) -> None:
        found = await self._calls.call(GRANT_COVERED, GrantCoveredParams(rule=rule))
        self.show_result(covered_summary(found))
        self._covered.set_text("\n".join(map(covered_line, found.calls)))
        self._covered.setVisible(bool(found.calls))

    def _on_kind_chosen(self) -> None:
        is_folder = _KINDS[self._kind.currentText()].operation is not None
        self._text.setVisible(not is_folder)
        self._folder_name.setText("Folder" if is_folder else "In the folder")
        self._folder.setPlaceholderText("" if is_folder else "Empty: everywhere")
        self._folder.setAccessibleName("Folder" if is_folder else "Folder in which the rule holds")
        self._on_edited()

    def _on_edited(self) -> None:
        self.show_result("")
        self._covered.hide()
        needed = self._text if _KINDS[self._kind.currentText()].operation is None else self._folder
        for button in (self._add, self._check):
            button.setEnabled(bool(needed.text().strip()))

    def _on_choose_clicked(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, "Folder of the rule")
        if folder:
            self._folder.setText(folder)

    def _on_add_clicked(self) -> None:
        if self._add.isEnabled():
            self._with_rule(self._send)

    def _on_check_clicked(self) -> None:
        self._with_rule(self._judge)

    def _with_rule(self, do: Callable[[GrantDraft], Coroutine[None, None, None]]) -> None:
        try:
            rule = self._rule()
        except ValueError as error:
            self.show_result(str(error))
            return
        self._calls.spawn(do(rule), self.show_result)
