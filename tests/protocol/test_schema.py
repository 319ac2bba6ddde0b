"""The protocol documents are current."""

from pathlib import Path

import msgspec

from errand.protocol.methods import METHODS
from errand.protocol.schema import documents, main, schema

DOCS = Path(__file__).parents[2] / "docs"


def test_the_documents_are_current() -> None:
    for file, text in documents(DOCS).items():
        assert file.read_text(encoding="utf-8") == text, "run python -m errand.protocol.schema"


def test_check_fails_for_an_outdated_document(tmp_path: Path) -> None:
    (tmp_path / "protocol_intro.md").write_text("# The protocol\n", encoding="utf-8")
    assert main(["--check"], tmp_path) == 1
    assert main([], tmp_path) == 0
    assert main(["--check"], tmp_path) == 0
    (tmp_path / "protocol.json").write_text("{}", encoding="utf-8")
    assert main(["--check"], tmp_path) == 1


def test_schema_has_every_method_and_no_dangling_reference() -> None:
    declared = schema()
    methods, definitions = declared["methods"], declared["$defs"]
    assert isinstance(methods, dict)
    assert isinstance(definitions, dict)
    assert list(methods) == [method.name for method in METHODS]
    text = msgspec.json.encode(declared).decode()
    used = {piece.partition('"')[0] for piece in text.split("#/$defs/")[1:]}
    assert used <= set(definitions)
