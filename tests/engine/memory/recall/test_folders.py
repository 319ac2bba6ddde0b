"""What agents in one folder are given of others."""

import sys
from pathlib import Path

import pytest

from errand.engine.core.errors import InvalidParams
from errand.engine.core.setting_values import FolderPair
from errand.engine.core.settings import Settings
from errand.engine.memory.recall.folders import FolderSharing


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(tmp_path / "settings.json")


@pytest.fixture
def clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    clients = tmp_path / "clients"
    for name in ("zwolle/drafts", "utrecht", "shop/.git", "shop/api", "shop/web"):
        (clients / name).mkdir(parents=True)
    return clients


@pytest.fixture
def linked_home(clients: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of clients is the home folder, which is a repository, but by a link."""
    link = clients.parent / "link"
    link.symlink_to(clients)
    monkeypatch.setenv("HOME", str(link))
    (clients / ".git").mkdir()
    return clients.resolve()


def _sharing(settings: Settings) -> FolderSharing:
    return FolderSharing(settings, Path("/srv/errand/workspaces"))


async def test_conversations_without_a_folder_are_given_everywhere_and_ask_as_one(
    settings: Settings, clients: Path
) -> None:
    sharing, zwolle = _sharing(settings), str(clients / "zwolle")
    assert (await sharing.seen_from(zwolle)).may_give("/srv/errand/workspaces/conv_1")
    view = await sharing.seen_from("/srv/errand/workspaces/conv_2")
    assert view.may_give("/srv/errand/workspaces/conv_1")
    assert not view.may_give(zwolle) and view.is_undecided(zwolle)
    sharing.note_asked(view.folder, (zwolle,))
    view = await sharing.seen_from("/srv/errand/workspaces/conv_3")
    assert not view.may_give(zwolle) and not view.is_undecided(zwolle)
    sharing.decide("", zwolle, "share")
    assert (await sharing.seen_from("/srv/errand/workspaces/conv_4")).may_give(zwolle)


async def test_what_is_kept_apart_from_conversations_without_a_folder_stays_so_in_both_directions(
    settings: Settings, clients: Path
) -> None:
    sharing, zwolle = _sharing(settings), str(clients / "zwolle")
    sharing.note_asked("", (zwolle,))
    assert (await sharing.seen_from(zwolle)).may_give("/srv/errand/workspaces/conv_1")  # not decided by the person
    sharing.decide("", zwolle, "apart")
    for folder in (zwolle, f"{zwolle}/drafts"):
        view = await sharing.seen_from(folder)
        assert not view.may_give("/srv/errand/workspaces/conv_1") and not view.may_give("")
        assert not (await sharing.seen_from("/srv/errand/workspaces/conv_2")).may_give(folder)
    assert not (await sharing.seen_from(zwolle)).is_undecided("/srv/errand/workspaces/conv_1")
    view = await sharing.seen_from(str(clients / "utrecht"))
    assert view.may_give("/srv/errand/workspaces/conv_1") and view.may_give("")
    sharing.decide("", zwolle, "share")
    assert (await sharing.seen_from(zwolle)).may_give("/srv/errand/workspaces/conv_1")


async def test_a_folder_of_another_machine_is_shared_as_one_of_this(settings: Settings, clients: Path) -> None:
    sharing, zwolle = _sharing(settings), str(clients / "zwolle")
    for elsewhere in ("C:\\clients\\zwolle", "/Users/ann/zwolle"):
        view = await sharing.seen_from(zwolle)
        assert not view.may_give(elsewhere) and view.is_undecided(elsewhere)
        sharing.decide(zwolle, elsewhere, "share")
        assert (await sharing.seen_from(zwolle)).may_give(elsewhere)


async def test_a_folder_gets_its_own_and_what_is_inside_it_or_around_it(settings: Settings, clients: Path) -> None:
    view = await _sharing(settings).seen_from(str(clients / "zwolle"))
    assert view.may_give(str(clients / "zwolle"))
    assert view.may_give(str(clients / "zwolle" / "drafts"))
    assert view.may_give(str(clients))
    assert view.may_give("")
    assert not view.may_give(str(clients / "utrecht"))
    assert not view.may_give(str(clients / "zwolle-2"))


async def test_folders_of_one_repository_are_one(settings: Settings, clients: Path) -> None:
    view = await _sharing(settings).seen_from(str(clients / "shop" / "api"))
    assert view.may_give(str(clients / "shop" / "web"))
    assert not view.may_give(str(clients / "utrecht"))


async def test_the_home_folder_is_not_around_everything(settings: Settings, clients: Path) -> None:
    sharing, home = _sharing(settings), clients.parent
    (home / ".git").mkdir()  # of someone who keeps the files of the shell there
    assert not (await sharing.seen_from(str(clients / "utrecht"))).may_give(str(home))
    assert not (await sharing.seen_from(str(home))).may_give(str(clients / "utrecht"))
    assert not (await sharing.seen_from(str(clients / "utrecht"))).may_give(str(clients / "zwolle"))


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right of their own")
async def test_a_home_folder_that_is_a_link_is_not_around_everything(settings: Settings, linked_home: Path) -> None:
    sharing, home = _sharing(settings), linked_home
    assert not (await sharing.seen_from(str(home))).may_give(str(home / "utrecht"))
    assert not (await sharing.seen_from(str(home / "utrecht"))).may_give(str(home / "zwolle"))


async def test_what_was_decided_holds_for_both_and_over_restarts(settings: Settings, clients: Path) -> None:
    zwolle, utrecht, shop = (str(clients / name) for name in ("zwolle", "utrecht", "shop"))
    sharing = _sharing(settings)
    assert (await sharing.seen_from(zwolle)).is_undecided(utrecht)
    sharing.note_asked(zwolle, (utrecht, shop))
    sharing.decide(utrecht, zwolle, "share")
    again = _sharing(Settings(clients.parent / "settings.json"))
    view = await again.seen_from(utrecht)
    assert view.may_give(zwolle) and not view.is_undecided(zwolle)
    view = await again.seen_from(zwolle)
    assert view.may_give(utrecht) and not view.may_give(shop) and not view.is_undecided(shop)
    again.decide(zwolle, utrecht, "apart")
    assert not (await again.seen_from(zwolle)).may_give(utrecht)


async def test_what_is_kept_apart_stays_so_inside_of_a_folder_and_of_a_repository(
    settings: Settings, clients: Path
) -> None:
    outer, zwolle, drafts = str(clients), str(clients / "zwolle"), str(clients / "zwolle" / "drafts")
    sharing = _sharing(settings)
    sharing.decide(outer, zwolle, "apart")
    view = await sharing.seen_from(outer)
    assert not view.may_give(zwolle) and not view.may_give(drafts) and view.may_give(str(clients / "utrecht"))
    view = await sharing.seen_from(drafts)
    assert view.may_give(zwolle) and not view.may_give(outer)
    sharing.decide(outer, drafts, "share")
    assert (await sharing.seen_from(outer)).may_give(drafts)
    api, web = str(clients / "shop" / "api"), str(clients / "shop" / "web")
    sharing.decide(api, web, "apart")
    assert not (await sharing.seen_from(web)).may_give(api)
    assert (await sharing.seen_from(web)).may_give(str(clients / "shop"))


async def test_what_is_kept_apart_stays_so_where_all_others_share(settings: Settings, clients: Path) -> None:
    zwolle, utrecht, shop = (str(clients / name) for name in ("zwolle", "utrecht", "shop"))
    sharing = _sharing(settings)
    sharing.note_asked(zwolle, (shop,))
    sharing.decide(zwolle, utrecht, "apart")
    sharing.decide(zwolle, shop, "share_all")
    view = await _sharing(Settings(clients.parent / "settings.json")).seen_from(zwolle)
    assert not view.may_give(utrecht)
    assert view.may_give(shop)


async def test_all_may_be_shared_or_kept_apart_without_being_asked(settings: Settings, clients: Path) -> None:
    zwolle, utrecht = str(clients / "zwolle"), str(clients / "utrecht")
    sharing = _sharing(settings)
    sharing.decide("", "", "share_all")
    assert (await sharing.seen_from(zwolle)).may_give(utrecht)
    settings.set("other_folders", "apart")
    view = await sharing.seen_from(zwolle)
    assert not view.may_give(utrecht) and not view.is_undecided(utrecht)


@pytest.mark.parametrize("pair", [("", ""), ("a", "/b"), ("/a", "/a")])
def test_only_two_folders_can_share(settings: Settings, pair: tuple[str, str]) -> None:
    with pytest.raises(InvalidParams):
        _sharing(settings).decide(*pair, "share")
    assert settings.values.folder_pairs == tuple[FolderPair, ...]()
