"""Remembered permission decisions, newest first; each can be revoked."""

from functools import partial

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.client.display_text import grant_text
from app.client.safe_text import escape_hidden, escape_hidden_line
from app.protocol.asks import Grant
from app.protocol.base import EmptyParams
from app.protocol.engine import ENGINE_STATUS
from app.window.stores.asks import GrantStore
from app.window.theme.style import push_button
from app.window.theme.theme import Theme
from app.window.views.settings.page import EngineCalls, SettingsPageView, hairline
from app.window.widgets.code_excerpt import CodeExcerptView
from app.window.widgets.empty_state import EmptyStateView
from app.window.widgets.labels import TextLabel

_LINES = 6

_TEXT = "What you allowed from now on. It runs without asking, exactly as it stands here and nowhere else."
_NOTHING = "When an approval is allowed for a conversation or a workspace, it is listed here and can be taken back."


class GrantRowView(QWidget):
    """`revoked` is emitted after a confirmation: a revoked grant returns only when the engine asks again."""

    revoked = Signal()

    def __init__(self, theme: Theme, grant: Grant) -> None:
        super().__init__()
        text = CodeExcerptView(theme, f"What {escape_hidden_line(grant.tool)} may do", most_lines=_LINES)
        text.set_text(escape_hidden(grant.exact))
        self._revoke = push_button("Revoke …")
        self._revoke.setAccessibleName(f"Revoke {escape_hidden(grant.exact)}")
        self._confirm = push_button("Revoke", "danger")
        self._confirm.setAccessibleName(f"Yes, revoke {escape_hidden(grant.exact)}")
        self._keep = push_button("Keep")
        self._keep.setAccessibleName(f"Keep {escape_hidden(grant.exact)}")
        self._revoke.clicked.connect(self._on_revoke_clicked)
        self._confirm.clicked.connect(self._on_revoked)
        self._keep.clicked.connect(self._on_keep_clicked)
        self._show_question(False)
        below = QHBoxLayout()
        below.setSpacing(theme.tokens.space_normal)
        self._label = TextLabel(theme, grant_text(grant), tone="muted", wrap=True)
        below.addWidget(self._label, 1)
        for button in (self._revoke, self._confirm, self._keep):
            below.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        column.addWidget(text)
        column.addLayout(below)

    def show_grant(self, grant: Grant) -> None:
        """The same grant, used since then."""
        self._label.setText(grant_text(grant))

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
        super().__init__(theme, "Permissions", _TEXT)
        self._grants = grants
        self._calls = calls
        self._sandbox = TextLabel(theme, wrap=True)
        self._sandbox.setAccessibleName("Sandbox")
        self._sandbox.hide()
        self.top.addWidget(self._sandbox)
        self._shown: dict[str, GrantRowView] = {}
        grants.changed.connect(self._show)
        grants.failed.connect(self.show_failure)

    def load(self) -> None:
        self._show()
        self._calls.spawn(self._load_sandbox(), self.show_failure)

    async def _load_sandbox(self) -> None:
        sandbox = (await self._calls.call(ENGINE_STATUS, EmptyParams())).sandbox
        self._sandbox.setText(f"{sandbox.text} {sandbox.advice}".strip())
        self._sandbox.show()

    def _show(self) -> None:
        grants = self._grants.all
        if self._shown and [grant.id for grant in grants] == list(self._shown):
            for grant in grants:
                self._shown[grant.id].show_grant(grant)  # a row with an open confirmation keeps it
            return
        self.clear_rows()
        self._shown = {}
        if not grants:
            self.rows.addWidget(EmptyStateView(self.theme, "shield-question-mark", "Nothing is remembered", _NOTHING))
        for grant in grants:
            row = self._shown[grant.id] = GrantRowView(self.theme, grant)
            row.revoked.connect(partial(self._grants.revoke, grant.id))
            if self.rows.count():
                self.rows.addWidget(hairline())
            self.rows.addWidget(row)
