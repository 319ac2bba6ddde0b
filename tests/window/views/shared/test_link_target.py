"""The targets that links in a conversation may open."""

from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from errand.window.rows.reply import ReplyView
from errand.window.rows.text_view import TextView
from errand.window.theme.theme import Theme
from errand.window.views.shared.row_actions import LinkTarget, TargetKind, link_target
from tests.support.window import desk, until


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with a file, a program and a link that leads out of it."""
    folder = tmp_path.resolve() / "work"
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "basket.py").write_text("x", encoding="utf-8")
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
        ("shop/basket.py", "inside", "shop/basket.py"),
        ("shop/basket.py:24", "inside", "shop/basket.py"),
        ("basket.py:24:7", "refused", None),
        ("shop/basket.py#L3", "inside", "shop/basket.py"),
        ("{work}/shop", "inside", "shop"),
        ("file://{work}/shop/basket.py", "inside", "shop/basket.py"),
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
    ],
)
def test_all_other_links_are_refused_with_a_reason(url: str) -> None:
    target = link_target(url, "/tmp")
    assert target.kind == "refused" and target.reason


@pytest.mark.qt_log_ignore("openUrl")
async def test_a_link_says_so_if_there_is_no_browser(qapp: QApplication, theme: Theme, tmp_path: Path) -> None:
    async with desk(qapp, theme, tmp_path, []) as at:
        failed: list[str] = []
        at.view.store.failed.connect(failed.append)
        at.gate.set()
        await until(lambda: any(shown.isVisible() for shown in at.view.findChildren(ReplyView)))
        for text in at.view.findChildren(ReplyView)[0].findChildren(TextView):
            text.link.emit("https://example.org/a")
        assert failed == ["No browser was found to open https://example.org/a"]
