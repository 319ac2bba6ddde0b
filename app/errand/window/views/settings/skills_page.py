"""Skills: what agents can read up on, where each comes from, switched on and off, shown, installed and removed."""

from functools import partial
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.client.texts.skills import origin_text
from errand.protocol.skills import (
    SKILL_ENABLE,
    SKILL_LIST,
    SKILL_PREVIEW,
    SKILL_REMOVE,
    SKILL_RESTORE,
    SKILL_TRUST,
    Skill,
    SkillEnableParams,
    SkillListParams,
    SkillListResult,
    SkillPreviewParams,
    SkillRemoveParams,
    SkillRestoreParams,
    SkillTrustParams,
)
from errand.text.translation import tr
from errand.window.theme.style import check_box, push_button
from errand.window.theme.theme import Theme
from errand.window.views.settings.folder_choice import FolderChoiceView
from errand.window.views.settings.page import EngineCalls, SettingsPageView, open_in_place
from errand.window.views.settings.skill_preview import SkillInstallView, SkillPreviewView
from errand.window.widgets.boxes import STRETCH, hbox, set_vbox, vbox
from errand.window.widgets.containers import clear_layout
from errand.window.widgets.empty_state import EmptyStateView
from errand.window.widgets.forms.confirmation import ConfirmationView
from errand.window.widgets.labels import TextLabel
from errand.window.widgets.list_column import ListColumn

_TEXT = tr("Instructions and scripts for specific kinds of work. You're asked before a script runs.")
_TRUST = tr("Tell agents of the skills that this folder brings? You will be asked again if one changes.")
_NOTHING = tr("A skill is a folder with a SKILL.md. Install one, or put it in .agents/skills of a project.")


class SkillRowView(QWidget):
    """`switched` gives whether it is to be on; `show_requested` asks for its text, `removed` follows a confirmation."""

    switched = Signal(bool)
    show_requested = Signal()
    removed = Signal()

    def __init__(self, theme: Theme, skill: Skill) -> None:
        super().__init__()
        self._theme = theme
        self._skill = skill
        name = escape_hidden_line(skill.name)
        self._switch = check_box(tr("On"), name=tr("Use {name}").format(name=name))
        self._description = TextLabel(theme, wrap=True)
        self._origin = TextLabel(theme, tone="muted", wrap=True)
        self._show_button, self._remove = (
            push_button(tr("Show"), "quiet", name=tr("Show {name}").format(name=name)),
            push_button(tr("Remove…"), name=tr("Remove {name}").format(name=name)),
        )
        self._remove.setVisible(skill.origin == "installed")
        confirm = push_button(tr("Remove"), "danger", name=tr("Confirm: remove {name}").format(name=name))
        keep = push_button(tr("Cancel"), name=tr("Cancel: keep {name}").format(name=name))
        self._question = ConfirmationView(theme, confirm, cancel=keep)
        self._place = QVBoxLayout()
        self._lay_out(name)
        self._switch.clicked.connect(self.switched)
        self._show_button.clicked.connect(self._on_show_clicked)
        self._remove.clicked.connect(self._on_remove_clicked)
        confirm.clicked.connect(self.removed)
        self.show_skill(skill)

    def show_skill(self, skill: Skill) -> None:
        """The same skill as it is now; an open question and what is shown of it stay."""
        self._skill = skill
        self._switch.setChecked(skill.is_enabled)
        self._description.setText(escape_hidden_line(skill.description))
        self._origin.setText(origin_text(skill))

    def show_contents(self, view: QWidget) -> None:
        self._place.addWidget(view)
        self._show_button.setText(tr("Hide"))

    def _lay_out(self, name: str) -> None:
        tokens = self._theme.tokens
        head = hbox(
            TextLabel(self._theme, name, bold=True),
            STRETCH,
            self._switch,
            self._show_button,
            self._remove,
            spacing=tokens.space_close,
        )
        set_vbox(
            self,
            head,
            self._description,
            self._origin,
            TextLabel(self._theme, escape_hidden_line(self._skill.file), tone="muted", mono=True, wrap=True),
            self._question,
            self._place,
            spacing=tokens.space_tight,
        )

    def _on_show_clicked(self) -> None:
        item = self._place.takeAt(0)
        if item is None:
            self.show_requested.emit()
            return
        widget = item.widget()
        if widget is not None:
            widget.hide()
            widget.deleteLater()
        self._show_button.setText(tr("Show"))

    def _on_remove_clicked(self) -> None:
        folder = escape_hidden_line(str(Path(self._skill.file).parent))
        text = (
            tr("Remove {folder}? Files in it were changed since it was installed.")
            if self._skill.is_changed
            else tr("Remove {folder}?")
        )
        self._question.ask(text.format(folder=folder))


class SkillsPageView(SettingsPageView):
    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme, tr("Skills"), _TEXT)
        self._calls = calls
        self._folder = FolderChoiceView(theme, calls, tr("No folder"), tr("Also show skills from this folder"))
        self._new = push_button(tr("Install skill…"))
        self._form = SkillInstallView(theme, calls)
        self._trust, self._distrust = (
            push_button(tr("Trust these skills…")),
            push_button(tr("Don't trust these skills")),
        )
        head = hbox(self._new, self._trust, self._distrust, STRETCH, self._folder, spacing=theme.tokens.space_close)
        self.top.addLayout(head)
        confirm = push_button(tr("Trust"), "primary", name=tr("Confirm trust in the skills of this folder"))
        self._question = ConfirmationView(theme, confirm, cancel=push_button(tr("Not now")))
        self.top.addWidget(self._question)
        self._trust.clicked.connect(partial(self._question.ask, _TRUST))
        self._distrust.clicked.connect(lambda: self._decide(is_trusted=False))
        confirm.clicked.connect(lambda: self._decide(is_trusted=True))
        self._fingerprint = ""
        self._column = ListColumn(theme.tokens.space_normal, self._row, update=SkillRowView.show_skill)
        self._below = vbox(spacing=theme.tokens.space_normal)
        self.rows.addWidget(self._form)
        self.rows.addLayout(self._column)
        self.rows.addLayout(self._below)
        open_in_place(self._new, self._form.open_form, self._form.closed)
        self._new.clicked.connect(lambda: self.bring_into_view(self._form))
        self._form.installed.connect(self._on_installed)
        self._folder.folder_chosen.connect(self.load)
        self.banner.action_clicked.connect(self._on_undo_clicked)
        self._trust.hide()  # until it is known that there is something to decide
        self._distrust.hide()
        self._removed = ""  # the last one
        self._lists = 0

    def load(self) -> None:
        self._calls.spawn(self._load(), self.show_failure)

    async def _load(self) -> None:
        await self._folder.load()
        await self._list()

    async def _list(self) -> None:
        """Show the skills, unless they were asked for again meanwhile: answers can come in another order."""
        self._lists += 1
        number = self._lists
        listed = await self._calls.call(SKILL_LIST, SkillListParams(workspace=self._folder.folder))
        if number == self._lists:
            self._show(listed)

    def _decide(self, *, is_trusted: bool) -> None:
        folder = self._folder.folder
        if folder is not None:
            params = SkillTrustParams(workspace=folder, fingerprint=self._fingerprint, trusted=is_trusted)
            self._calls.spawn(self._send_decision(params), self._on_failed)

    async def _send_decision(self, params: SkillTrustParams) -> None:
        await self._calls.call(SKILL_TRUST, params)
        await self._list()

    def _show_trust(self, found: SkillListResult) -> None:
        """The decision about all skills that the folder brings."""
        if found.fingerprint != self._fingerprint:
            self._fingerprint = found.fingerprint
            self._question.hide()  # it was about other skills
        self._trust.setVisible(bool(found.fingerprint) and found.trust != "trusted")
        self._distrust.setVisible(bool(found.fingerprint) and found.trust != "declined")

    def _show(self, found: SkillListResult) -> None:
        self._show_trust(found)
        self._column.show_items({skill.file: skill for skill in found.skills})
        clear_layout(self._below)
        for file in found.broken:
            text = tr("{file} is left out: it has no name and description at its top.").format(
                file=escape_hidden_line(file)
            )
            self._below.addWidget(TextLabel(self.theme, text, tone="waiting", wrap=True))
        if not found.skills:
            self._below.addWidget(EmptyStateView(self.theme, "file-text", tr("No skills"), _NOTHING))

    def _row(self, skill: Skill) -> SkillRowView:
        row = SkillRowView(self.theme, skill)
        row.switched.connect(partial(self._on_switched, skill.file))
        row.show_requested.connect(partial(self._on_shown, skill.file))
        row.removed.connect(partial(self._on_removed, skill.file, skill.name))
        return row

    async def _switch(self, file: str, is_on: bool) -> None:
        await self._calls.call(SKILL_ENABLE, SkillEnableParams(file=file, is_enabled=is_on))
        await self._list()

    async def _preview(self, file: str) -> None:
        result = await self._calls.call(SKILL_PREVIEW, SkillPreviewParams(source=str(Path(file).parent)))
        row = self._column.rows.get(file)
        if row is not None and result.preview is not None:
            row.show_contents(SkillPreviewView(self.theme, result.preview))

    async def _remove(self, file: str, name: str) -> None:
        await self._calls.call(SKILL_REMOVE, SkillRemoveParams(file=file))
        self._removed = file
        self.banner.show_message(tr("Removed {name}.").format(name=escape_hidden_line(name)), "done", tr("Undo"))
        await self._list()

    async def _restore(self, file: str) -> None:
        skill = (await self._calls.call(SKILL_RESTORE, SkillRestoreParams(file=file))).skill
        self.banner.show_message(tr("Restored {name}.").format(name=escape_hidden_line(skill.name)), "done")
        await self._list()

    def _on_installed(self, name: str) -> None:
        self.banner.show_message(tr("Installed {name}.").format(name=escape_hidden_line(name)), "done")
        self.load()

    def _on_switched(self, file: str, is_on: bool) -> None:
        self._calls.spawn(self._switch(file, is_on), self._on_failed)

    def _on_shown(self, file: str) -> None:
        self._calls.spawn(self._preview(file), self.show_failure)

    def _on_removed(self, file: str, name: str) -> None:
        self._calls.spawn(self._remove(file, name), self._on_failed)

    def _on_undo_clicked(self) -> None:
        self._calls.spawn(self._restore(self._removed), self._on_failed)

    def _on_failed(self, text: str) -> None:
        """The rows show what the engine has, not what was clicked."""
        self.show_failure(text)
        self.load()
