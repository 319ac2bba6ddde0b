"""Passwords in addresses of settings: nothing prints, stores or copies them but the settings themselves."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from errand.client.errors import CallError
from errand.protocol.settings import SETTINGS_GET, SETTINGS_SET, SettingsGetParams, SettingsSetParams
from errand.text.url_secrets import without_url_secrets
from tests.attacks.test_planted_secrets import holders
from tests.support.command_line import Errand, connected

# Words, so that no format and no digit tells them.
PASSWORD, OTHER = "correcthorse", "batterystaple"
ADDRESSES = (
    f"postgresql://me:{PASSWORD}@127.0.0.1:1/shop",
    f"postgresql+asyncpg://me:{PASSWORD}@127.0.0.1:1/shop?sslmode=require&sslpassword={OTHER}",
    f"postgresql://me@127.0.0.1:1/shop?password={PASSWORD}",
    f"postgresql://me@127.0.0.1:1/shop?sslpassword={PASSWORD}&sslmode=require",
    f"postgresql://me:{PASSWORD}/{OTHER}@127.0.0.1:1/shop",
    f"postgresql://me:{PASSWORD}@{OTHER}@127.0.0.1:1/shop",
    f"postgresql://me:{PASSWORD}?x#{OTHER}@127.0.0.1:1/shop",
    f"postgresql://:{PASSWORD}@127.0.0.1:1/shop",
    f"postgresql://me:{PASSWORD}@/shop?host=/nowhere",
)


def leaks(text: str) -> bool:
    return PASSWORD in text or OTHER in text


@pytest.mark.parametrize("address", ADDRESSES)
async def test_the_password_of_a_database_is_in_its_setting_alone(own_errand: Errand, address: str) -> None:
    runs = [
        await own_errand.run(*arguments)
        for arguments in (
            ("settings", "set", "database_url", address),
            ("settings", "set", "max_turns", "7"),
            ("settings", "get", "database_url"),
            ("settings", "get", "database_url", "--json"),
            ("settings",),
            ("settings", "--json"),
            ("doctor",),
            ("data",),
            ("backup",),
        )
    ]
    async with connected(own_errand) as client:
        settings = (await client.call(SETTINGS_GET, SettingsGetParams())).settings
        value = next(setting.value for setting in settings if setting.name == "database_url")
    assert value == without_url_secrets(address) and "***" in str(value)
    assert (await own_errand.run("engine", "--stop")).code == 0
    runs.append(await own_errand.run("list"))  # the next engine cannot reach the server
    assert not any(leaks(done.out + done.err) for done in runs), runs
    occurrences = [*holders(own_errand.home, PASSWORD), *holders(own_errand.home, OTHER)]
    assert {holder.partition(" in ")[2] for holder in occurrences} == {"settings.json"}


async def test_an_address_that_is_sent_back_as_it_is_shown_keeps_its_password(own_errand: Errand) -> None:
    async def set_to(value: str) -> None:
        await client.call(SETTINGS_SET, SettingsSetParams(name="database_url", value=value))

    file = own_errand.home / "settings.json"
    await own_errand.run("settings", "set", "database_url", ADDRESSES[1])
    async with connected(own_errand) as client:
        await set_to(without_url_secrets(ADDRESSES[1]))
        assert ADDRESSES[1] in file.read_text()
        for moved in ("postgresql://me:***@elsewhere/shop", "postgresql://me@elsewhere/shop?sslpassword=***"):
            with pytest.raises(CallError, match="write the password in place of"):
                await set_to(moved)
        await set_to("")
    assert not leaks(file.read_text())


async def test_a_backup_has_no_password_of_an_address(own_errand: Errand, tmp_path: Path) -> None:
    address = f"https://127.0.0.1:1/mcp?api_key={PASSWORD}&tenant=5"
    await own_errand.run("settings", "set", "database_url", ADDRESSES[1])
    await own_errand.run("settings", "set", "database_url", "")
    added = await own_errand.run("mcp", "add", "far", "--url", address)
    assert added.code == 0 and not leaks(added.out + added.err)
    listing = await own_errand.run("mcp")
    assert "tenant=5" in listing.out and not leaks(listing.out + (await own_errand.run("mcp", "log", "far")).out)
    target = tmp_path / "backups"
    target.mkdir()
    done = await own_errand.run("backup", "--to", str(target / "errand.tar"))
    assert done.code == 0, done.err
    assert [*holders(target, PASSWORD), *holders(target, OTHER)] == []
    restored = await own_errand.run("restore", str(target / "errand.tar"), "--force")
    assert restored.code == 0, restored.err
    replaced = list(own_errand.home.rglob("settings-replaced-*.json"))
    assert len(replaced) == 1 and not leaks(replaced[0].read_text())


async def test_an_answer_that_an_earlier_version_stored_loses_its_password(own_errand: Errand) -> None:
    await own_errand.run("settings", "set", "max_turns", "7")
    assert (await own_errand.run("engine", "--stop")).code == 0
    database = own_errand.home / "errand.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        result = f'{{"settings":[{{"name":"database_url","value":"{ADDRESSES[0]}"}}]}}'
        row = ("client", "'old'", "settings/set", result, "2999-01-01T00:00:00.000000+00:00")
        connection.execute(
            "INSERT INTO commands (client_id, command_id, method, result, at) VALUES (?, ?, ?, ?, ?)", row
        )
    copied = await own_errand.run("backup", "--to", str(own_errand.home / "copies" / "one.tar"))
    assert copied.code == 0, copied.err
    assert list(holders(own_errand.home / "copies", PASSWORD)) == []
    assert (await own_errand.run("list")).code == 0
    assert (await own_errand.run("engine", "--stop")).code == 0
    assert list(holders(own_errand.home, PASSWORD)) == []
