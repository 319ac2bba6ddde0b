"""The licences of what is installed: complete, and each with its name and text."""

import json

from errand.system.licences import OURS, libraries
from tests.support.command_line import Errand


def test_every_library_has_a_licence_and_those_of_qt_have_their_texts() -> None:
    by_name = {library.name: library for library in libraries()}
    assert {OURS, "PySide6_Essentials", "litellm", "SQLAlchemy", "Lucide icons", "STIX Two Math"} <= by_name.keys()
    assert [name for name, library in by_name.items() if not library.licence] == []
    assert "GNU LESSER GENERAL PUBLIC LICENSE" in by_name["PySide6_Essentials"].texts[0]
    assert "pytest" not in by_name, "tools of developers are not a part"


async def test_the_terminal_lists_them_and_prints_the_text_of_one(errand: Errand) -> None:
    listed = await errand.run("licences")
    assert "msgspec " in listed.out and "BSD-3-Clause" in listed.out
    printed = await errand.run("licences", "pyside6-essentials")
    assert printed.code == 0 and "GNU LESSER GENERAL PUBLIC LICENSE" in printed.out
    (as_json,) = (await errand.run("licences", "msgspec", "--json")).lines
    assert as_json["licence"] == "BSD-3-Clause" and "Jim Crist-Harif" in json.dumps(as_json["texts"])
    unknown = await errand.run("licences", "nothing")
    assert unknown.code == 2 and "List them: errand licences" in unknown.err
