"""A conversation with every kind of row in every state."""

from typing import get_args

from msgspec.structs import replace

from errand.client.conversation.rows import (
    AskRow,
    BranchEndRow,
    BranchSwitchRow,
    EditMessageRow,
    FileRow,
    RecallRow,
    Row,
    Speaker,
    SpeakerRow,
    StepRow,
    SummaryRow,
)
from errand.protocol.asks import ReachedLimit
from errand.protocol.blocks import FileBlock, RecallBlock, SummaryBlock, WithheldEntries
from tests.support.rows import (
    APPROVAL,
    LIMIT,
    QUESTION,
    UNKNOWN,
    end,
    image,
    node,
    notice,
    recalled,
    reply,
    thinking,
    tool,
    user,
)

_DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-total = 1\n+total = 2\n"
_TABLE = "| file | lines |\n|---|---:|\n| basket.py | 24 |"


def every_row() -> list[Row]:
    rows: list[Row] = [
        user("What is wrong with `the discount`?", "u1"),
        BranchSwitchRow("f1", 2, 3, "n1", "n3", is_user=True, locked=False),
        StepRow("st1", 1),
        thinking("I should look at the tests first.", "th1"),
        SpeakerRow("sp1", node("n0"), Speaker("Coder", "violet", "one/model")),
        reply("An answer with [a link](https://example.org), **bold** and `code`.\n\n> a quote", "r1", step=1),
        reply("```python\ndef total(prices):  # all of them\n    return sum(prices, 0.5)\n```", "r2"),
        reply(_TABLE, "r3"),
        reply("<details><summary>More</summary>\n\nThe rest.\n\n</details>", "r4"),
        tool("shell", {"command": "pytest -q"}, "12 passed", "t1", summary="exit 0"),
        tool("shell", {"command": "false"}, "it broke", "t2", summary="exit 1", is_error=True),
        tool("shell", {"command": "sleep 9"}, None, "t3", output="so far"),
        tool("shell", {"command": "make"}, None, "t4", state="asks"),
        tool("edit_file", {"path": "x.py"}, "edited", "t5", details={"diff": _DIFF, "path": "x.py"}),
        image(key="i1"),
        FileRow("fi1", node("n5"), FileBlock(path="/tmp/notes.txt", name="notes.txt", size=120)),
        *(notice(kind, f"A remark: {kind}.", f"no_{kind}") for kind in ("info", "error")),
        SummaryRow("su1", node("n8", role="system"), SummaryBlock(text="All of it.", until_id="n0", nodes=12)),
        RecallRow(
            "re1",
            node("n9", role="system"),
            RecallBlock(
                entries=(recalled("We water on Sundays."),),
                withheld=(WithheldEntries(folder="/home/ada/clients/zwolle", count=3),),
                folder="/home/ada/garden",
            ),
        ),
        AskRow("a1", QUESTION),
        AskRow("a2", APPROVAL, (APPROVAL,)),
        AskRow("a3", LIMIT),
        AskRow("a4", replace(LIMIT, id="ask_n", limit=ReachedLimit(kind="turns", used=50, limit=50, adds=50))),
        AskRow("a5", UNKNOWN),
        user("Do it again", "u2"),
        EditMessageRow("e1", node("n6", "Do it", "user"), "Do it otherwise"),
        end("completed", summary="All is **done**.", key="en1"),
        end("manual_stop", key="en2"),
        end("error", error="The provider answers 500.", key="en3"),
        BranchEndRow("o1", ("n7",)),
    ]
    missing = set(get_args(Row)) - {type(row) for row in rows}
    assert not missing, f"add one of each to this list: {missing}"
    return rows
