"""The targets that links in a conversation may open."""

from pathlib import Path
from urllib.parse import quote

import pytest
from PySide6.QtCore import QObject, QUrl, Slot
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QApplication

from errand.window.rows.reply import ReplyView
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.views.shared.row_actions import LinkTarget, TargetKind, link_target
from tests.support.window import until, view_fixture


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a file, a program and a link that leads out of it."""
    folder = tmp_path.resolve() / "work"
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "basket.md").write_text("x", encoding="utf-8")
    (folder / "run").write_text("x", encoding="utf-8")
    (folder / "run").chmod(0o755)
    (folder / "start.desktop").write_text("x", encoding="utf-8")
    (tmp_path / "private.txt").write_text("x", encoding="utf-8")
    (folder / "out").symlink_to(tmp_path / "private.txt")
    return folder


@pytest.mark.parametrize(
    "url", ["http://example.org", "https://example.org/a?b#c", "HTTPS://example.org", "mailto:anna@example.org"]
)
def test_web_and_mail_links_are_opened(url: str) -> None:
    assert link_target(url, "") == LinkTarget("web")


@pytest.mark.parametrize(
    ("url", "kind", "opened"),
    [
        ("shop/basket.md", "inside", "shop/basket.md"),
        ("shop/basket.md:24", "inside", "shop/basket.md"),
        ("basket.md:24:7", "refused", None),
        ("shop/basket.md#L3", "inside", "shop/basket.md"),
        ("{work}/shop", "inside", "shop"),
        ("file://{work}/shop/basket.md", "inside", "shop/basket.md"),
        ("../private.txt", "outside", "../private.txt"),
        ("out", "outside", "../private.txt"),
        ("shop/no%20such%20file", "refused", None),
    ],
)
def test_a_file_is_opened_but_outside_the_workspace_only_after_a_confirmation(
    workspace: Path, url: str, kind: TargetKind, opened: str | None
) -> None:
    target = link_target(url.format(work=workspace), str(workspace))
    assert (target.kind, target.path) == (kind, (workspace / opened).resolve() if opened else None)


@pytest.mark.parametrize("url", ["run", "start.desktop"])
def test_for_a_program_only_its_folder_is_opened(workspace: Path, url: str) -> None:
    assert link_target(url, str(workspace)) == LinkTarget("inside", workspace)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "a.hta",
            "a.HTA",
            "a.py",
            "a.pyw",
            "a.terminal",
            "a.inetloc",
            "a.webloc",
            "a.fileloc",
            "a.scpt",
            "a.osascript",
        ),
        *("a.desktop", "a.AppImage", "a.exe", "a.com", "a.scr", "a.cpl", "a.msc", "a.chm", "a.gadget", "a.application"),
        *(
            "a.xbap",
            "a.settingcontent-ms",
            "a.appref-ms",
            "a.diagcab",
            "a.library-ms",
            "a.search-ms",
            "a.rdp",
            "a.theme",
        ),
        *(
            "a.docm",
            "a.xlsm",
            "a.pptm",
            "a.doc",
            "a.xls",
            "a.odt",
            "a.iso",
            "a.img",
            "a.dmg",
            "a.pkg",
            "a.deb",
            "a.rpm",
        ),
        *(
            "a.jar",
            "a.jnlp",
            "a.js",
            "a.vbs",
            "a.ps1",
            "a.sh",
            "a.rb",
            "a.pl",
            "a.lua",
            "a.tcl",
            "a.run",
            "a.flatpakref",
        ),
        *(
            "a.url",
            "a.lnk",
            "a.reg",
            "a.inf",
            "a.zip",
            "a.mobileconfig",
            "a.workflow",
            "a.shortcut",
            "a.xml",
            "a.ipynb",
        ),
        *(
            "bill.pdf.hta",
            "bill.pdf ",
            "bill.pdf.",
            "bill.pdf. .",
            "bill.txt\u200b",
            "noSuffix",
            ".bashrc",
            "a.hta:b.txt",
        ),
    ],
)
def test_a_file_of_any_kind_that_is_not_only_looked_at_shows_its_folder(workspace: Path, name: str) -> None:
    (workspace / "shop" / name).write_text("x", encoding="utf-8")
    assert link_target(f"shop/{quote(name)}", str(workspace)) == LinkTarget("inside", workspace / "shop")


@pytest.mark.parametrize(
    "name", ["a.txt", "a.MD", "a.csv", "a.html", "a.png", "a.Jpeg", "a.pdf", "a.docx", "a.mp4", "a.json"]
)
def test_a_file_of_a_kind_that_is_only_looked_at_is_opened(workspace: Path, name: str) -> None:
    path = workspace / name
    path.write_text("x", encoding="utf-8")
    assert link_target(name, str(workspace)) == LinkTarget("inside", path)
    path.chmod(0o755)
    assert link_target(name, str(workspace)) == LinkTarget("inside", workspace), "it may be executed"


def test_a_link_in_the_folder_is_of_the_kind_of_its_target(workspace: Path) -> None:
    (workspace / "shop" / "evil.hta").write_text("x", encoding="utf-8")
    (workspace / "notes.txt").symlink_to(workspace / "shop" / "evil.hta")
    assert link_target("notes.txt", str(workspace)) == LinkTarget("inside", workspace / "shop")


@pytest.mark.parametrize("bundle", ["Evil.app", "Evil.APP", "a.{645FF040-5081-101B-9F08-00AA002F954E}", "x.workflow"])
def test_a_folder_that_a_desktop_may_start_shows_the_folder_around_it(workspace: Path, bundle: str) -> None:
    (workspace / bundle).mkdir()
    (workspace / bundle / "run.hta").write_text("x", encoding="utf-8")
    (workspace / "release-1.2").mkdir()
    assert link_target(quote(bundle), str(workspace)).path == workspace
    assert link_target(f"{quote(bundle)}/run.hta", str(workspace)).path == workspace
    assert link_target("release-1.2", str(workspace)).path == workspace / "release-1.2"


@pytest.mark.parametrize(
    "url",
    [
        *(
            "javascript:alert(1)",
            "smb://host/share",
            "file://host/share/a",
            "ms-settings:x",
            "data:text/html,x",
            "#top",
        ),
        *("http://[", "file:///%00", "a%00b", "~nobody-has-this-name/a"),
        *("//host/share/a.txt", "\\\\host\\share\\a.txt", "/\\host/a.txt", "file:////host/a.txt", "FILE://host/a.txt"),
        *("SMB://host/a", "ftp://host/a", "vscode://file/a", "search-ms:query=a", "mailto:a@b.org?attach=/etc/passwd"),
        *("mailto:a@b.org?subject=x&%61ttachment=/etc/passwd", "view-source:https://example.org", "tel:1"),
    ],
)
def test_all_other_links_are_refused_with_a_reason(url: str) -> None:
    target = link_target(url, "/tmp")
    assert target.kind == "refused" and target.reason


class Desktop(QObject):
    """The addresses that the desktop was told to open."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    @Slot(QUrl)
    def open(self, url: QUrl) -> None:
        self.opened.append(url.toString())


async def test_a_click_in_a_reply_starts_no_program(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    desktop = Desktop()
    QDesktopServices.setUrlHandler("file", desktop, "open")  # pyright: ignore[reportArgumentType] -- PySide6 takes a str, its stubs say bytes
    try:
        async with view_fixture(qapp, theme, tmp_path, []) as fixture:
            fixture.gate.set()
            await until(lambda: any(reply_view.isVisible() for reply_view in fixture.view.findChildren(ReplyView)))
            (text,) = fixture.view.findChildren(ReplyView)[0].findChildren(TextView)
            folder = Path(fixture.task.request.workspace)
            for name in ("start.hta", "notes.txt"):
                (folder / name).write_text("x", encoding="utf-8")
                text.link.emit(name)
            root = QUrl.fromLocalFile(str(link_target(str(folder), "").path)).toString()
            assert desktop.opened == [root, f"{root}/notes.txt"]
    finally:
        QDesktopServices.unsetUrlHandler("file")


@pytest.mark.qt_log_ignore("openUrl")
async def test_a_link_says_so_if_there_is_no_browser(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with view_fixture(qapp, theme, tmp_path, []) as fixture:
        failed: list[str] = []
        fixture.view.store.failed.connect(failed.append)
        fixture.gate.set()
        await until(lambda: any(reply_view.isVisible() for reply_view in fixture.view.findChildren(ReplyView)))
        for text in fixture.view.findChildren(ReplyView)[0].findChildren(TextView):
            text.link.emit("https://example.org/a")
        assert failed == ["No browser was found to open https://example.org/a"]
