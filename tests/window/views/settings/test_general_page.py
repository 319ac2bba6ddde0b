"""The page of the settings that the engine declares."""

from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QComboBox,
    QLabel,
    QLineEdit,
    QPushButton,
)

from tests.support.engine_server import EngineServer
from tests.support.model_server import ModelServer
from tests.support.window import until
from tests.window.views.settings.conftest import Settings

_ORDERED = ("Max turns", "Default base URL", "Undo history", "Database")


async def test_every_declared_setting_is_there_with_its_help(settings: Settings, engine: EngineServer) -> None:
    await settings.see("Model calls of a task before it asks to continue.")
    assert "Database" not in settings.fields()
    settings.buttons()["Advanced"].click()
    titles = {setting.title for setting in engine.services.settings.all() if setting.name != "own_models"}

    def missing() -> set[str]:
        boxes = {box.accessibleName() for box in settings.dialog.findChildren(QComboBox) if box.isVisible()}
        buttons = {name.partition(": ")[0] for name in settings.buttons()}
        return titles - (settings.fields().keys() | buttons | boxes)

    await until(lambda: not missing())  # those that cannot be seen are made when there is time


async def test_a_value_is_stored_on_enter_and_can_be_reset(settings: Settings, engine: EngineServer) -> None:
    await until(lambda: "Max turns" in settings.fields())
    settings.type("Max turns", "7")
    await until(lambda: engine.services.settings.values.max_turns == 7)
    back = "Reset “Max turns” to its default"
    await until(lambda: back in settings.buttons())
    settings.buttons()[back].click()
    await until(lambda: engine.services.settings.values.max_turns == 50)
    await until(lambda: back not in settings.buttons() and settings.fields()["Max turns"].text() == "50")


async def test_text_in_a_number_field_is_refused_and_stays(settings: Settings) -> None:
    await until(lambda: "Max minutes" in settings.fields())
    settings.type("Max minutes", "a while")
    await settings.see("Enter a number, such as 30.")
    assert settings.fields()["Max minutes"].text() == "a while"


async def test_a_number_below_its_minimum_is_refused(settings: Settings, engine: EngineServer) -> None:
    await until(lambda: "Max turns" in settings.fields())
    settings.type("Max turns", "0")
    await settings.see("Must be at least 1.")
    assert settings.fields()["Max turns"].property("state") == "wrong"
    assert engine.services.settings.values.max_turns == 50


async def test_a_value_refused_by_the_engine_shows_the_reason_at_its_field(
    settings: Settings, engine: EngineServer
) -> None:
    await until(lambda: "Max turns" in settings.fields())
    settings.type("Max turns", "9" * 40)
    await settings.see("Setting max_turns: Expected int <= 1000000.")
    assert engine.services.settings.values.max_turns == 50


async def test_a_setting_with_choices_has_a_combo_box(settings: Settings, engine: EngineServer) -> None:
    await until(lambda: "Max turns" in settings.fields())
    box = next(box for box in settings.dialog.findChildren(QComboBox) if box.isVisible())
    assert (box.accessibleName(), box.currentText()) == ("Thinking level", "off")
    QTest.keyClick(box, Qt.Key.Key_Down)
    QTest.keyClick(box, Qt.Key.Key_Down)
    await until(lambda: engine.services.settings.values.thinking_level == "low")


async def test_the_default_model_is_chosen_in_the_picker_typed_and_reset(
    settings: Settings, engine: EngineServer
) -> None:
    async with ModelServer(models=("first-model", "second-model")) as server:
        engine.services.keys.add_environment({"OPENAI_API_KEY": "sk-test", "OPENAI_BASE_URL": server.url})
        settings.dialog.open_page("providers")
        await until(lambda: "Refresh models" in settings.buttons())
        settings.buttons()["Refresh models"].click()
        await settings.see("2 models, listed on")
    await until(lambda: "openai/second-model" in settings.models.ready)
    settings.dialog.open_page("general")
    await settings.press("Default model: Automatic: ")
    assert {"first-model", "second-model"} <= set(settings.picker.shown)
    settings.type_in_picker("second")
    await until(lambda: engine.services.settings.values.default_model == "openai/second-model")
    await settings.press("Default model: second-model")
    assert settings.picker.selected == "openai/second-model"
    settings.type_in_picker("openai/not-listed")
    await until(lambda: engine.services.settings.values.default_model == "openai/not-listed")
    await settings.press("Default model: not-listed")
    settings.picker.close()
    await settings.press("Reset “Default model” to its default")
    await until(lambda: engine.services.settings.values.default_model == "")
    await until(lambda: any(name.startswith("Default model: Automatic: ") for name in settings.buttons()))


async def test_a_default_model_can_be_typed_or_set_up_where_there_is_none(
    settings: Settings, engine: EngineServer
) -> None:
    await settings.press("Default model: Choose a model")
    assert settings.picker.shown == ()
    QTest.keyClicks(settings.picker.findChildren(QLineEdit)[0], "openai/own")
    QTest.keyClick(settings.picker.findChildren(QLineEdit)[0], Qt.Key.Key_Return)
    await until(lambda: engine.services.settings.values.default_model == "openai/own")
    await settings.press("Default model: own")
    manage = next(
        candidate for candidate in settings.picker.findChildren(QPushButton) if candidate.text() == "Manage models…"
    )
    manage.click()
    await settings.see("No provider set up yet.")


async def test_the_model_for_titles_has_no_model_until_one_is_chosen(settings: Settings, engine: EngineServer) -> None:
    await settings.press("Model for titles: None")
    settings.type_in_picker("lab/small")
    await until(lambda: engine.services.settings.values.title_model == "lab/small")
    await settings.press("Reset “Model for titles” to its default")
    await until(lambda: engine.services.settings.values.title_model == "")
    await until(lambda: "Model for titles: None" in settings.buttons())


async def test_fallback_models_are_picked_put_in_order_and_removed(settings: Settings, engine: EngineServer) -> None:
    def shown() -> str:
        names = [name for name in settings.buttons() if name.startswith("Fallback models ")]
        return ", ".join(name.partition(": ")[2] for name in sorted(names))

    async def until_stored(*names: str) -> None:
        value = ", ".join(f"lab/{name}" for name in names)
        await until(lambda: engine.services.settings.values.fallback_models == value and shown() == ", ".join(names))

    await until(lambda: "Advanced" in settings.buttons())
    settings.buttons()["Advanced"].click()
    for model, expected in (("lab/a", "a"), ("lab/b", "ab"), ("lab/a", "ab")):
        await settings.press("Fallback models: Add model")
        settings.type_in_picker(model)
        await until_stored(*expected)
    settings.buttons()["Move b up"].setFocus()
    QTest.keyClick(settings.buttons()["Move b up"], Qt.Key.Key_Space)
    await until_stored("b", "a")
    assert settings.dialog.focusWidget().accessibleName() == "Fallback models 1: b"
    await settings.press("Fallback models 2: a")
    settings.type_in_picker("lab/c")
    await until_stored("b", "c")
    settings.buttons()["Remove b"].setFocus()
    QTest.keyClick(settings.buttons()["Remove b"], Qt.Key.Key_Space)
    await until_stored("c")
    assert settings.dialog.focusWidget().accessibleName() == "Fallback models 1: c"
    await settings.press("Reset “Fallback models” to its default")
    await until_stored()


async def test_an_advanced_search_makes_the_fields_that_match(settings: Settings) -> None:
    await until(lambda: "Max turns" in settings.fields())
    settings.type("Search settings", "postgresql")
    await until(lambda: "Database" in settings.fields())
    settings.type("Search settings", "undo history")
    await until(lambda: "Undo history" in settings.fields() and "Database" not in settings.fields())
    settings.buttons()["Clear"].click()
    settings.buttons()["Advanced"].click()
    await until(lambda: {"Database", "Undo history", "Default base URL"} <= settings.fields().keys())
    tops = [settings.fields()[name].mapTo(settings.dialog, QPoint(0, 0)).y() for name in _ORDERED]
    assert tops == sorted(tops), "in the order of the engine, whichever was made first"


async def test_the_search_shows_settings_that_contain_all_words(settings: Settings) -> None:
    await until(lambda: "Budget" in settings.fields())
    settings.type("Search settings", "dollars day")
    await until(lambda: "Max turns" not in settings.fields())
    assert set(settings.fields()) == {"Search settings", "Daily budget"}
    settings.type("Search settings", "no such words")
    await settings.see("No results")


async def test_a_search_finds_advanced_settings_keeps_rows_whole_and_is_cleared_when_reopened(
    settings: Settings,
) -> None:
    await until(lambda: "Max turns" in settings.fields())
    settings.type("Search settings", "postgresql")
    await until(lambda: "Database" in settings.fields())
    field = settings.fields()["Database"]
    (label,) = (
        widget for widget in settings.dialog.findChildren(QLabel) if widget.isVisible() and widget.text() == "Database"
    )
    tops = [widget.mapTo(settings.dialog, widget.rect().topLeft()).y() for widget in (field, label)]
    assert abs(tops[0] - tops[1]) < field.height(), tops
    settings.dialog.close()
    settings.dialog.open_page("general")
    assert settings.fields()["Search settings"].text() == ""
    await until(lambda: "Database" not in settings.fields() and "Max turns" in settings.fields())


async def test_without_an_engine_typed_values_stay_and_nothing_is_stored(
    settings: Settings, engine: EngineServer
) -> None:
    await until(lambda: "Max turns" in settings.fields())
    await engine.server.close()
    settings.type("Max turns", "9")
    assert settings.fields()["Max turns"].text() == "9"
    assert engine.services.settings.values.max_turns == 50


async def test_opening_a_setting_by_name_focuses_its_field(settings: Settings, engine: EngineServer) -> None:
    setting = next(setting for setting in reversed(engine.services.settings.all()) if setting.kind == "integer")
    settings.dialog.open_setting(setting.name)
    await until(lambda: setting.title in settings.fields())
    await until(lambda: settings.dialog.focusWidget() is settings.fields()[setting.title])
