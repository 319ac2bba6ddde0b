"""One remembered decision: exactly what is allowed, where, since when, last used, and the way to take it back."""

from datetime import datetime

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from app.client.characters import exact, exact_line
from app.protocol.grants import Grant
from app.window.theme.look import push_button
from app.window.theme.theme import Theme
from app.window.widgets.code_excerpt import CodeExcerpt
from app.window.widgets.text_label import TextLabel

_LINES = 6


class GrantRow(QWidget):
    """`revoked` comes after a person was asked: there is no way to give a grant back but to be asked again."""

    revoked = Signal()

    def __init__(self, theme: Theme, grant: Grant) -> None:
        super().__init__()
        text = CodeExcerpt(theme, f"What {exact_line(grant.tool)} may do", most_lines=_LINES)
        text.set_text(exact(grant.exact))
        self._revoke = push_button("Revoke …")
        self._revoke.setAccessibleName(f"Revoke {exact(grant.exact)}")
        self._sure = push_button("Revoke", "danger")
        self._sure.setAccessibleName(f"Yes, revoke {exact(grant.exact)}")
        self._keep = push_button("Keep")
        self._keep.setAccessibleName(f"Keep {exact(grant.exact)}")
        self._revoke.clicked.connect(self._on_asked)
        self._sure.clicked.connect(self._on_revoked)
        self._keep.clicked.connect(self._on_kept)
        self._show_question(False)
        below = QHBoxLayout()
        below.setSpacing(theme.tokens.space_normal)
        self._words = TextLabel(theme, grant_words(grant), tone="muted", wrap=True)
        below.addWidget(self._words, 1)
        for button in (self._revoke, self._sure, self._keep):
            below.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(theme.tokens.space_close)
        column.addWidget(text)
        column.addLayout(below)

    def show_grant(self, grant: Grant) -> None:
        """The same grant, used meanwhile."""
        self._words.setText(grant_words(grant))

    def _show_question(self, asked: bool) -> None:
        self._revoke.setVisible(not asked)
        self._sure.setVisible(asked)
        self._keep.setVisible(asked)

    def _on_asked(self) -> None:
        self._show_question(True)
        self._keep.setFocus()

    def _on_kept(self) -> None:
        self._show_question(False)
        self._revoke.setFocus()

    def _on_revoked(self) -> None:
        self._sure.setEnabled(False)
        self.revoked.emit()


def grant_words(grant: Grant) -> str:
    """Where it holds, since when, by whom, and when it was last used."""
    where = f"In {exact_line(grant.scope_id)}" if grant.scope == "workspace" else "In one conversation"
    by = f" by {exact_line(grant.created_by)}" if grant.created_by else ""
    used = f"last used {_moment(grant.last_used_at)}" if grant.last_used_at else "not used yet"
    return f"{where} · {exact_line(grant.tool)} · given {_moment(grant.created_at)}{by} · {used}"


def _moment(moment: datetime) -> str:
    local = moment.astimezone()
    return f"{local.day} {local:%b %Y, %H:%M}"
