"""All remembered decisions, newest first, each to be taken back; it follows what other windows do."""

from functools import partial

from app.window.stores.grants import GrantStore
from app.window.theme.theme import Theme
from app.window.views.settings.grant_row import GrantRow
from app.window.views.settings.page import SettingsPage, hairline
from app.window.widgets.empty_state import EmptyState

_TEXT = "What you allowed from now on. It runs without asking, exactly as it stands here and nowhere else."
_NOTHING = "When an approval is allowed for a conversation or a workspace, it is listed here and can be taken back."


class GrantsPage(SettingsPage):
    def __init__(self, theme: Theme, grants: GrantStore) -> None:
        super().__init__(theme, "Permissions", _TEXT)
        self._grants = grants
        self._shown: dict[str, GrantRow] = {}
        grants.changed.connect(self._on_changed)
        grants.failed.connect(self.tell_failure)

    def load(self) -> None:
        self._grants.load()

    def _on_changed(self) -> None:
        grants = self._grants.all
        if self._shown and [grant.id for grant in grants] == list(self._shown):
            for grant in grants:
                self._shown[grant.id].show_grant(grant)  # a row that asks a person goes on asking
            return
        self.clear_rows()
        self._shown = {}
        if not grants:
            self.rows.addWidget(EmptyState(self.theme, "shield-question-mark", "Nothing is remembered", _NOTHING))
        for grant in grants:
            row = self._shown[grant.id] = GrantRow(self.theme, grant)
            row.revoked.connect(partial(self._grants.revoke, grant.id))
            if self.rows.count():
                self.rows.addWidget(hairline())
            self.rows.addWidget(row)
