"""All remembered decisions, newest first, each to be taken back."""

from functools import partial

from app.protocol.grants import Grant, GrantListParams, GrantRevokeParams
from app.protocol.wire import GRANT_LIST, GRANT_REVOKE
from app.window.theme.theme import Theme
from app.window.views.settings.calls import Calls
from app.window.views.settings.grant_row import GrantRow
from app.window.views.settings.page import SettingsPage, hairline
from app.window.widgets.empty_state import EmptyState

_TEXT = "What you allowed from now on. It runs without asking, exactly as it stands here and nowhere else."
_NOTHING = "When an approval is allowed for a conversation or a workspace, it is listed here and can be taken back."


class GrantsPage(SettingsPage):
    def __init__(self, theme: Theme, calls: Calls) -> None:
        super().__init__(theme, "Permissions", _TEXT)
        self._calls = calls

    def load(self) -> None:
        self._calls.spawn(self._load(), self.tell_failure)

    async def _load(self) -> None:
        grants = (await self._calls.call(GRANT_LIST, GrantListParams())).grants
        self._show(tuple(sorted(grants, key=lambda grant: grant.created_at, reverse=True)))

    async def _revoke(self, grant_id: str) -> None:
        await self._calls.call(GRANT_REVOKE, GrantRevokeParams(grant_id=grant_id))
        await self._load()

    def _show(self, grants: tuple[Grant, ...]) -> None:
        self.clear_rows()
        if not grants:
            self.rows.addWidget(EmptyState(self.theme, "shield-question-mark", "Nothing is remembered", _NOTHING))
        for grant in grants:
            row = GrantRow(self.theme, grant)
            row.revoked.connect(partial(self._on_revoked, grant.id))
            if self.rows.count():
                self.rows.addWidget(hairline())
            self.rows.addWidget(row)

    def _on_revoked(self, grant_id: str) -> None:
        self._calls.spawn(self._revoke(grant_id), self.tell_failure)
