"""The page about the tools is current."""

from pathlib import Path

from errand.engine.tools.documentation import documents, main, page
from errand.engine.tools.registry import CONTROL_TOOLS, TOOLS

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_current() -> None:
    for file, text in documents(DOCS).items():
        assert file.read_text(encoding="utf-8") == text, "run python -m errand.engine.tools.documentation"


def test_every_tool_is_on_the_page() -> None:
    headings = [line for line in page("# Tools").splitlines() if line.startswith("### ")]
    assert headings == [f"### `{tool.name}`" for tool in (*TOOLS, *CONTROL_TOOLS)]


def test_check_fails_for_an_outdated_page(tmp_path: Path) -> None:
    (tmp_path / "tools_intro.md").write_text("# Tools\n", encoding="utf-8")
    assert main(["--check"], tmp_path) == 1
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
