"""The generated reference pages in docs/ are current and complete."""

from pathlib import Path

import msgspec
from protocol_reference import protocol_schema
from reference_pages import main, reference_pages
from tools_reference import tools_page

from errand.engine.tools.registry import CONTROL_TOOLS, TOOLS
from errand.protocol.methods import METHODS

DOCS = Path(__file__).parents[1] / "docs"


def test_the_pages_are_current() -> None:
    for file, text in reference_pages(DOCS).items():
        assert file.read_text(encoding="utf-8") == text, "run make docs"


def test_check_fails_for_an_outdated_page(tmp_path: Path) -> None:
    (tmp_path / "protocol_intro.md").write_text("# The protocol\n", encoding="utf-8")
    (tmp_path / "tools_intro.md").write_text("# Tools\n", encoding="utf-8")
    assert main(["--check"], tmp_path) == 1
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    (tmp_path / "protocol.json").write_text("{}", encoding="utf-8")
    assert main(["--check"], tmp_path) == 1


def test_the_schema_has_every_method_and_no_dangling_reference() -> None:
    schema = protocol_schema()
    methods, definitions = schema["methods"], schema["$defs"]
    assert isinstance(methods, dict)
    assert isinstance(definitions, dict)
    assert list(methods) == [method.name for method in METHODS]
    text = msgspec.json.encode(schema).decode()
    used = {piece.partition('"')[0] for piece in text.split("#/$defs/")[1:]}
    assert used <= set(definitions)


def test_every_tool_is_on_its_page() -> None:
    headings = [line for line in tools_page("# Tools").splitlines() if line.startswith("### ")]
    assert headings == [f"### `{tool.name}`" for tool in (*TOOLS, *CONTROL_TOOLS)]
