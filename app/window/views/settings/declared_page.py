"""The settings that the engine declares, with a search over them."""

import asyncio
from functools import partial

from app.protocol.json import JsonValue
from app.protocol.settings import Setting, SettingsGetParams, SettingsSetParams
from app.protocol.wire import SETTINGS_GET, SETTINGS_SET
from app.window.theme.theme import Theme
from app.window.views.settings.calls import Calls
from app.window.views.settings.page import SettingsPage
from app.window.views.settings.setting_field import SettingField
from app.window.widgets.search_field import SearchField
from app.window.widgets.text_label import TextLabel


class DeclaredPage(SettingsPage):
    """Shows only what the engine says is in force; a value is sent when its field is left or Enter is pressed."""

    def __init__(self, theme: Theme, calls: Calls) -> None:
        super().__init__(theme, "General", "How tasks run. A change holds for the tasks that start after it.")
        self._calls = calls
        self._wanted = ""
        self._fields: dict[str, SettingField] = {}
        self._one_by_one = asyncio.Lock()  # the engine may take two changes that are under way in either order
        self._search = SearchField(theme, "Search settings")
        self._nothing = TextLabel(theme, "No setting has these words.", tone="muted")
        self._nothing.hide()
        self.top.addWidget(self._search)
        self.rows.addWidget(self._nothing)
        self._search.searched.connect(self._on_searched)

    def load(self) -> None:
        self._calls.spawn(self._load(), self.tell_failure)

    def go_to(self, name: str) -> None:
        """Bring a setting into view and the keyboard into it, now or as soon as it is there."""
        self._search.clear()
        self._on_searched("")
        field = self._fields.get(name)
        self._wanted = name if field is None else ""
        if field is not None:
            self.bring_into_view(field)
            field.take_focus()

    async def _load(self) -> None:
        self._show((await self._calls.call(SETTINGS_GET, SettingsGetParams())).settings)

    def _show(self, settings: tuple[Setting, ...]) -> None:
        for setting in settings:
            field = self._fields.get(setting.name)
            if field is None:
                self._add(setting)
            else:
                field.show_setting(setting)
        if self._wanted:
            self.go_to(self._wanted)

    def _add(self, setting: Setting) -> None:
        field = SettingField(self.theme, setting)
        field.changed.connect(partial(self._on_changed, setting.name))
        self._fields[setting.name] = field
        self.rows.addWidget(field)

    async def _set(self, name: str, value: JsonValue) -> None:
        async with self._one_by_one:
            result = await self._calls.call(SETTINGS_SET, SettingsSetParams(name=name, value=value))
        for setting in result.settings:
            if setting.name == name:  # the others may hold what is being typed
                self._fields[name].show_setting(setting)

    def _on_changed(self, name: str, value: JsonValue) -> None:
        self._calls.spawn(self._set(name, value), self._fields[name].tell_problem)

    def _on_searched(self, text: str) -> None:
        for field in self._fields.values():
            field.setVisible(field.matches(text))
        self._nothing.setVisible(not any(field.matches(text) for field in self._fields.values()))
