"""Asks as the engine raises them, and what a card answered."""

from dataclasses import dataclass, field
from datetime import UTC, datetime

from app.protocol.asks import RUN_AGAIN, SKIP, STOP, Approval, Ask, Remember, UnknownCall
from app.protocol.grants import GrantedCall
from tests.support.rows import KeptBranches, KeptContext

WHEN = datetime(2026, 11, 20, 9, 30, tzinfo=UTC)
QUESTION = Ask(
    id="ask_q",
    task_id="task_1",
    conversation_id="conversation_1",
    kind="question",
    text="Which colour?",
    created_at=WHEN,
    choices=("Blue", "Green, with a reason that is so long that it takes a second line in any card " * 2),
)
APPROVAL = Ask(
    id="ask_a",
    task_id="task_1",
    conversation_id="conversation_1",
    kind="approval",
    text="Run a command",
    created_at=WHEN,
    approval=Approval(
        tool="shell",
        call_id="call_1",
        text="Run a command",
        rule="it runs a program",
        risk="medium",
        command="python -m pytest -q && rm -rf build",
        working_dir="/home/anna/project",
        reads=("/home/anna/project", "/home/anna/other"),
        writes=("/home/anna/project/build",),
        preview="--- a/x.sql\n+++ b/x.sql\n@@ -1 +1 @@\n--- an old comment\n+select 1;\n",
        remembered="in /home/me/project: python -m pytest -q && rm -rf build",
        grantable=GrantedCall(
            operation="run", command="python -m pytest -q && rm -rf build", working_dir="/home/me/project"
        ),
    ),
)
LIMIT = Ask(
    id="ask_l",
    task_id="task_1",
    conversation_id="conversation_1",
    kind="limit",
    text="The task has used its 50 turns.",
    choices=("Go on with as much again", "Stop here"),
    created_at=WHEN,
)
UNKNOWN = Ask(
    id="ask_u",
    task_id="task_1",
    conversation_id="conversation_1",
    kind="unknown",
    text="The engine was killed while this was under way. It may have taken effect, or not: look first, then choose.",
    created_at=WHEN,
    choices=(RUN_AGAIN, SKIP, STOP),
    call_id="call_1",
    unknown=UnknownCall(
        execution_id="exec_1",
        call_id="call_1",
        tool="shell",
        text="Run a command",
        started_at=WHEN,
        command="make deploy && ./announce.sh",
    ),
)


@dataclass(slots=True)
class Answers:
    """The actions of a block, kept."""

    given: list[tuple[str, str, bool | None, Remember]] = field(
        default_factory=list[tuple[str, str, bool | None, Remember]]
    )
    amounts: list[float | None] = field(default_factory=list[float | None])
    branches: KeptBranches = field(default_factory=KeptBranches)
    context: KeptContext = field(default_factory=KeptContext)

    def open_link(self, url: str) -> None:
        raise AssertionError(f"No card opens {url}.")

    def copy(self, text: str) -> None:
        raise AssertionError(f"No card copies {text}.")

    def answer(
        self, ask_id: str, *, text: str, allow: bool | None, remember: Remember, amount: float | None = None
    ) -> None:
        self.given.append((ask_id, text, allow, remember))
        self.amounts.append(amount)

    def load_older(self) -> None:
        raise AssertionError("No card loads.")
