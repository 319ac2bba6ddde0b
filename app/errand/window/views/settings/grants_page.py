"""Rules: what runs without asking and what never does, newest first. Each can be checked and revoked."""

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QWidget

from errand.client.safe_text import escape_hidden, escape_hidden_line
from errand.client.texts.rules import covered_line, covered_summary, grant_text
from errand.client.texts.task_options import sandbox_text
from errand.protocol.asks import GRANT_COVERED, Grant, GrantCoveredParams
from errand.protocol.base import EmptyParams
from errand.protocol.engine import ENGINE_STATUS
from errand.text.translation import tr
from errand.window.stores.asks import GrantStore
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls, SettingsPageView, open_in_place
from errand.window.views.settings.rule_form import RuleFormView
from errand.window.widgets.boxes import fill, hbox, set_vbox
from errand.window.widgets.code_excerpt import CodeExcerptView
from errand.window.widgets.empty_state import EmptyStateView
from errand.window.widgets.labels import TextLabel
from errand.window.widgets.list_column import ListColumn

_LINES = 6
_MAX_CALLS = 10

_TEXT = tr("What agents may do without asking, and what they may never do. Read-only actions need no permission.")
_NOTHING = tr("Permissions you grant with “Always allow…” appear here. You can also add your own rules.")


class GrantRowView(QWidget):
    """`revoked` is emitted after a confirmation: a revoked grant returns only when the engine asks again.

    `check_requested` asks which recorded calls the grant decides.
    """

    revoked = Signal()
    check_requested = Signal()

    def __init__(self, theme: Theme, grant: Grant) -> None:
        super().__init__()
        self._is_denial = grant.decision == "deny"
        tool = escape_hidden_line(grant.tool) or tr("every tool")
        name = tr("What {tool} may never do") if self._is_denial else tr("What {tool} may do")
        text = CodeExcerptView(theme, name.format(tool=tool), most_lines=_LINES)
        text.set_text(escape_hidden(grant.exact))
        heading = TextLabel(
            theme,
            tr("Never allow") if self._is_denial else tr("Always allow"),
            bold=True,
            tone="failed" if self._is_denial else "done",
        )
        self._check = push_button(
            tr("Check…"), "quiet", name=tr("Check recent calls: {rule}").format(rule=escape_hidden(grant.exact))
        )
        self._check.clicked.connect(self.check_requested)
        self._covered = CodeExcerptView(theme, tr("Matching calls"), most_lines=_MAX_CALLS)
        self._covered.hide()
        self._revoke = push_button(tr("Revoke…"), name=tr("Revoke {rule}").format(rule=escape_hidden(grant.exact)))
        self._confirm = push_button(
            tr("Revoke"), "danger", name=tr("Confirm: revoke {rule}").format(rule=escape_hidden(grant.exact))
        )
        self._keep = push_button(tr("Cancel"), name=tr("Cancel: keep {rule}").format(rule=escape_hidden(grant.exact)))
        self._revoke.clicked.connect(self._on_revoke_clicked)
        self._confirm.clicked.connect(self._on_revoked)
        self._keep.clicked.connect(self._on_keep_clicked)
        self._show_question(False)
        self._label = TextLabel(theme, grant_text(grant), tone="muted", wrap=True)
        below = hbox(
            fill(self._label), self._check, self._revoke, self._confirm, self._keep, spacing=theme.tokens.space_normal
        )
        set_vbox(self, heading, text, below, self._covered, spacing=theme.tokens.space_close)

    def show_grant(self, grant: Grant) -> None:
        """The same grant, used since then."""
        self._label.setText(grant_text(grant))

    def show_covered(self, text: str) -> None:
        self._covered.set_text(text)
        self._covered.show()

    def _show_question(self, asked: bool) -> None:
        self._revoke.setVisible(not asked)
        self._confirm.setVisible(asked)
        self._keep.setVisible(asked)

    def _on_revoke_clicked(self) -> None:
        self._show_question(True)
        self._keep.setFocus()

    def _on_keep_clicked(self) -> None:
        self._show_question(False)
        self._revoke.setFocus()

    def _on_revoked(self) -> None:
        self._confirm.setEnabled(False)
        self.revoked.emit()


class GrantsPageView(SettingsPageView):
    def __init__(self, theme: Theme, grants: GrantStore, calls: EngineCalls) -> None:
        super().__init__(theme, tr("Permissions"), _TEXT)
        self._grants = grants
        self._calls = calls
        self._sandbox = TextLabel(theme, wrap=True)
        self._sandbox.setAccessibleName(tr("Sandbox"))
        self._sandbox.hide()
        self.top.addWidget(self._sandbox)
        self._new = push_button(tr("Add rule…"))
        self._form = RuleFormView(theme, calls)
        self.top.addWidget(self._new, 0, Qt.AlignmentFlag.AlignLeft)
        self.top.addWidget(self._form)
        open_in_place(self._new, self._form.open_form, self._form.closed)
        self._column = ListColumn(
            theme.tokens.space_normal, self._row, update=GrantRowView.show_grant, make_empty=self._empty
        )
        self.rows.addLayout(self._column)
        grants.changed.connect(self._show)
        grants.failed.connect(self.show_failure)

    def load(self) -> None:
        self._show()
        self._calls.spawn(self._load_sandbox(), self.show_failure)

    async def _load_sandbox(self) -> None:
        sandbox = (await self._calls.call(ENGINE_STATUS, EmptyParams())).sandbox
        self._sandbox.setText(f"{sandbox_text(sandbox)} {sandbox.advice}".strip())
        self._sandbox.show()

    async def _check(self, grant_id: str) -> None:
        covered = await self._calls.call(GRANT_COVERED, GrantCoveredParams(grant_id=grant_id))
        if grant_id in self._column.rows:
            lines = (covered_summary(covered), *map(covered_line, covered.calls))
            self._column.rows[grant_id].show_covered("\n".join(lines))

    def _show(self) -> None:
        self._column.show_items({grant.id: grant for grant in self._grants.all})

    def _row(self, grant: Grant) -> GrantRowView:
        row = GrantRowView(self.theme, grant)
        row.revoked.connect(partial(self._grants.revoke, grant.id))
        row.check_requested.connect(partial(self._on_check_requested, grant.id))
        return row

    def _empty(self) -> EmptyStateView:
        return EmptyStateView(self.theme, "shield-question-mark", tr("No saved permissions"), _NOTHING)

    def _on_check_requested(self, grant_id: str) -> None:
        self._calls.spawn(self._check(grant_id), self.show_failure)
