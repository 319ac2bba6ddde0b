"""A form for a rule of a person: what always runs without asking, and what never does."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Literal

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QLineEdit

from errand.client.texts.rules import covered_line, covered_summary, rule_words
from errand.protocol.asks import (
    GRANT_ADD,
    GRANT_COVERED,
    GrantAddParams,
    GrantCoveredParams,
    GrantDecision,
    GrantDraft,
    GrantedCall,
)
from errand.text.translation import tr
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls
from errand.window.widgets.boxes import set_vbox
from errand.window.widgets.code_excerpt import CodeExcerptView
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.forms.in_place_form import InPlaceFormView
from errand.window.widgets.labels import TextLabel

_MAX_LINES = 10
_About = Literal["words", "folder", "host", "service", "code"]


@dataclass(frozen=True, slots=True)
class _RuleKind:
    """`about` says what is typed; `operation` is that of a rule about the files of a folder."""

    decision: GrantDecision
    tool: str
    about: _About = "words"
    operation: str = ""


_KINDS = {
    tr("Never run commands starting with"): _RuleKind("deny", ""),
    tr("Always run commands starting with"): _RuleKind("allow", "shell"),
    tr("Never change files in"): _RuleKind("deny", "", "folder", "write"),
    tr("Never read or change files in"): _RuleKind("deny", "", "folder", "read"),
    tr("Always change files in"): _RuleKind("allow", "code", "folder", "edit"),
    tr("Always open pages of"): _RuleKind("allow", "", "host"),
    tr("Never open pages of"): _RuleKind("deny", "", "host"),
    tr("Always call the server tool"): _RuleKind("allow", "", "service"),
    tr("Never call the server tool"): _RuleKind("deny", "", "service"),
    tr("Always run code in the sandbox"): _RuleKind("allow", "python", "code"),
    tr("Never run code"): _RuleKind("deny", "", "code"),
}
# What is typed for each: an example, and its name for screen readers.
_TYPED: dict[_About, tuple[str, str]] = {
    "words": ("git push", tr("Start of the command")),
    "host": (tr("example.org, or *.example.org for subdomains"), tr("Host")),
    "service": (tr("server/tool, or server/* for all its tools"), tr("Server tool")),
}


class RuleFormView(InPlaceFormView):
    """Hidden until `open_form`. `added` is emitted once the engine has the rule."""

    added = Signal()

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme)
        self._calls = calls
        self._kind = ComboBox(tuple(_KINDS), name=tr("Rule type"))
        self._text, self._folder = QLineEdit(), QLineEdit()
        self._folder_name = TextLabel(theme)
        self._choose = push_button(tr("Choose…"), name=tr("Choose folder"))
        self._add = push_button(tr("Add rule"), "primary")
        self._check = push_button(tr("Check the last 100 calls"))
        self._cancel = push_button(tr("Cancel"), "quiet")
        self._result = TextLabel(theme, wrap=True)
        self._covered = CodeExcerptView(theme, tr("Matching calls"), most_lines=_MAX_LINES)
        self._lay_out()
        self._kind.currentIndexChanged.connect(self._on_kind_chosen)
        self._text.textChanged.connect(self._on_edited)
        self._folder.textChanged.connect(self._on_edited)
        self._text.returnPressed.connect(self._on_add_clicked)
        self._folder.returnPressed.connect(self._on_add_clicked)
        self._choose.clicked.connect(self._on_choose_clicked)
        self._add.clicked.connect(self._on_add_clicked)
        self._check.clicked.connect(self._on_check_clicked)
        self._cancel.clicked.connect(self.close_form)
        self._on_kind_chosen()

    def open_form(self) -> None:
        self._text.clear()
        self._folder.clear()
        self._on_edited()
        self.show()
        self._kind.setFocus()

    def _lay_out(self) -> None:
        set_vbox(
            self,
            self._kind,
            self._text,
            self.row(self._folder_name, self._folder, self._choose, stretch=self._folder),
            self._result,
            self._covered,
            self.row(self._add, self._check, self._cancel),
            spacing=self.theme.tokens.space_close,
        )

    def _rule(self) -> GrantDraft:
        """Return the rule as it was typed. Raises ValueError with what is wrong."""
        kind, text, folder = _KINDS[self._kind.currentText()], self._text.text().strip(), self._folder.text().strip()
        match kind.about:
            case "folder":
                call = GrantedCall(operation=kind.operation, folder=folder)
                return GrantDraft(decision=kind.decision, tool=kind.tool, call=call, scope="user")
            case "words":
                call = GrantedCall(operation="run" if kind.decision == "allow" else "", prefix=rule_words(text))
            case "host":
                call = GrantedCall(host=text)
            case "service":
                call = GrantedCall(service=text)
            case "code":
                call = GrantedCall(operation="code")
        scope = "workspace" if folder else "user"
        return GrantDraft(decision=kind.decision, tool=kind.tool, call=call, scope=scope, scope_id=folder)

    async def _send(self, rule: GrantDraft) -> None:
        await self._calls.call(GRANT_ADD, GrantAddParams(rules=(rule,)))
        self.close_form()
        self.added.emit()

    async def _judge(self, rule: GrantDraft) -> None:
        covered = await self._calls.call(GRANT_COVERED, GrantCoveredParams(rule=rule))
        self._result.show_text(covered_summary(covered))
        self._covered.set_text("\n".join(map(covered_line, covered.calls)))
        self._covered.setVisible(bool(covered.calls))

    def _on_kind_chosen(self) -> None:
        about = _KINDS[self._kind.currentText()].about
        is_folder = about == "folder"
        self._text.setVisible(about in _TYPED)
        placeholder, name = _TYPED.get(about, ("", ""))
        self._text.setPlaceholderText(placeholder)
        self._text.setAccessibleName(name)
        self._folder_name.setText(tr("Folder") if is_folder else tr("In folder"))
        self._folder.setPlaceholderText("" if is_folder else tr("Everywhere if empty"))
        self._folder.setAccessibleName(tr("Folder") if is_folder else tr("Folder the rule applies to"))
        self._on_edited()

    def _on_edited(self) -> None:
        self._result.show_text("")
        self._covered.hide()
        about = _KINDS[self._kind.currentText()].about
        needed = "code" if about == "code" else self._folder.text() if about == "folder" else self._text.text()
        for button in (self._add, self._check):
            button.setEnabled(bool(needed.strip()))

    def _on_choose_clicked(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Choose folder"))
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
            self._result.show_text(str(error))
            return
        self._calls.spawn(do(rule), self._result.show_text)
