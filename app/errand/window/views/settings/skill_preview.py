"""All of a skill to look at, and the form that installs one after it was shown."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFileDialog, QVBoxLayout, QWidget

from errand.client.safe_text import escape_hidden_line
from errand.client.texts.skills import file_lines, source_text, text_parts
from errand.protocol.skills import (
    SKILL_INSTALL,
    SKILL_PREVIEW,
    SkillInstallParams,
    SkillPreview,
    SkillPreviewParams,
    SkillPreviewResult,
)
from errand.text.translation import tr
from errand.window.theme.style import push_button
from errand.window.theme.theme import Theme
from errand.window.views.settings.page import EngineCalls
from errand.window.widgets.boxes import BoxItem, hbox, set_vbox
from errand.window.widgets.code_excerpt import CodeExcerptView
from errand.window.widgets.containers import clear_layout
from errand.window.widgets.forms.combo_box import ComboBox
from errand.window.widgets.forms.form import line_edit
from errand.window.widgets.forms.in_place_form import InPlaceFormView
from errand.window.widgets.labels import TextLabel

_MAX_LINES = 12
_INSTALL_TEXT = tr("Agents can use it once it's installed. Its scripts only run if you allow them.")


class SkillPreviewView(QWidget):
    """Name, source, files and texts of a skill; each long text has a button that shows all of it."""

    def __init__(self, theme: Theme, preview: SkillPreview) -> None:
        super().__init__()
        space = theme.tokens.space_tight
        parts: list[BoxItem] = [
            TextLabel(theme, escape_hidden_line(preview.name), bold=True, wrap=True),
            TextLabel(theme, escape_hidden_line(preview.description), wrap=True),
            TextLabel(theme, source_text(preview), tone="muted", wrap=True),
        ]
        for name, text in ((tr("Files"), "\n".join(file_lines(preview))), *text_parts(preview)):
            parts += [space, TextLabel(theme, name, tone="muted", wrap=True)]
            if text:
                excerpt = CodeExcerptView(theme, name, most_lines=_MAX_LINES)
                excerpt.set_text(text)
                parts.append(excerpt)
        set_vbox(self, *parts, spacing=space)


class SkillInstallView(InPlaceFormView):
    """Hidden until `open_form`. `installed` gives the name of a skill that the engine has installed."""

    installed = Signal(str)

    def __init__(self, theme: Theme, calls: EngineCalls) -> None:
        super().__init__(theme)
        self._calls = calls
        self._shown: SkillPreview | None = None
        self._is_reading = False
        self._source = line_edit(tr("Folder or address"), tr("Folder or https:// address of a Git repository"))
        self._path = line_edit(tr("Subfolder"), tr("Subfolder (optional)"))
        self._ref = line_edit(tr("Branch or tag"), tr("Branch or tag (optional)"))
        for field in (self._source, self._path, self._ref):
            field.textEdited.connect(self._on_edited)
            field.returnPressed.connect(self._on_show_clicked)
        self._choices = ComboBox((), name=tr("Skills"))
        self._choose, self._show_button = (
            push_button(tr("Choose…"), name=tr("Choose skill folder")),
            push_button(tr("Preview")),
        )
        self._install, self._cancel = push_button(tr("Install"), "primary"), push_button(tr("Cancel"), "quiet")
        self._result = TextLabel(theme, wrap=True)
        self._place = QVBoxLayout()
        self._lay_out()
        self._choices.textActivated.connect(self._on_chosen)
        self._choose.clicked.connect(self._on_choose_clicked)
        self._show_button.clicked.connect(self._on_show_clicked)
        self._install.clicked.connect(self._on_install_clicked)
        self._cancel.clicked.connect(self.close_form)

    def open_form(self) -> None:
        for field in (self._source, self._path, self._ref):
            field.clear()
        self._on_edited()
        self.show()
        self._source.setFocus()

    def close_form(self) -> None:
        self._clear()
        super().close_form()

    def _lay_out(self) -> None:
        close = self.theme.tokens.space_close
        set_vbox(
            self,
            hbox(self._source, self._choose, spacing=close),
            hbox(self._path, self._ref, spacing=close),
            self._choices,
            self._place,
            self._result,
            self.row(self._show_button, self._install, self._cancel),
            spacing=close,
        )

    def _clear(self) -> None:
        """Nothing is shown, so nothing can be installed."""
        self._shown = None
        clear_layout(self._place)
        self._install.hide()
        self._choices.hide()
        self._result.show_text("")

    async def _preview(self, params: SkillPreviewParams) -> None:
        try:
            preview = await self._calls.call(SKILL_PREVIEW, params)
        finally:
            self._is_reading = False
        self._clear()
        self._show(preview)

    def _show(self, found: SkillPreviewResult) -> None:
        if found.preview is None:
            self._choices.clear()
            self._choices.addItems([tr("Choose a skill…"), *found.choices])
            self._choices.show()
            self._choices.setFocus()
            return
        self._shown = found.preview
        self._place.addWidget(SkillPreviewView(self.theme, found.preview))
        self._install.setVisible(not found.preview.problem)
        self._install.setAccessibleName(tr("Install {name}").format(name=escape_hidden_line(found.preview.name)))
        self._result.show_text(found.preview.problem or _INSTALL_TEXT)

    async def _send(self, params: SkillInstallParams) -> None:
        try:
            skill = (await self._calls.call(SKILL_INSTALL, params)).skill
        finally:
            self._install.setEnabled(True)
        self.close_form()
        self.installed.emit(skill.name)

    def _on_edited(self) -> None:
        self._clear()
        self._show_button.setEnabled(bool(self._source.text().strip()))

    def _on_chosen(self, choice: str) -> None:
        if self._choices.currentIndex() > 0:
            self._path.setText(choice)
            self._show_button.setFocus()  # the choice is about to be hidden
            self._on_show_clicked()

    def _on_choose_clicked(self) -> None:
        folder = QFileDialog.getExistingDirectory(self, tr("Skill folder"))
        if folder:
            self._source.setText(folder)
            self._on_edited()

    def _on_show_clicked(self) -> None:
        source = self._source.text().strip()
        if not source or self._is_reading:
            return
        self._clear()
        self._is_reading = True  # the button stays enabled: disabling it would lose the focus
        self._result.show_text(tr("Downloading…") if "://" in source else tr("Loading…"))
        params = SkillPreviewParams(source=source, path=self._path.text().strip(), ref=self._ref.text().strip())
        self._calls.spawn(self._preview(params), self._result.show_text)

    def _on_install_clicked(self) -> None:
        preview = self._shown
        if preview is None or not self._install.isEnabled():
            return
        self._install.setEnabled(False)
        params = SkillInstallParams(
            source=preview.source, path=preview.path, ref=preview.ref, fingerprint=preview.fingerprint
        )
        self._calls.spawn(self._send(params), self._result.show_text)
