"""The text of asks, the hints about their answers, and the parsing of a typed answer."""

import msgspec
import pytest

from errand.cli.rendering.ask_choices import hint, hint_lines
from errand.cli.rendering.asks import ask_lines, outcome_text
from errand.cli.rendering.typed_answers import AskInput, InvalidReply, read_reply
from errand.cli.terminal.style import PLAIN, Style
from errand.protocol.asks import Ask, AskAnswerParams, GrantedCall, GrantOffer, ReachedLimit, Remember
from errand.protocol.tasks.groups import LimitKind
from tests.support.protocol_events import approval, limit, question
from tests.support.rows import CODE, FETCH, SERVICE, UNKNOWN


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("a", AskAnswerParams(ask_id="ask_1", allow=True)),
        (" C ", AskAnswerParams(ask_id="ask_1", allow=True, remember="conversation")),
        ("w", AskAnswerParams(ask_id="ask_1", allow=True, remember="workspace")),
        ("d", AskAnswerParams(ask_id="ask_1", allow=False)),
        ("r use the test folder", AskAnswerParams(ask_id="ask_1", allow=False, text="use the test folder")),
    ],
)
def test_one_letter_settles_an_approval(line: str, reply: AskAnswerParams) -> None:
    assert read_reply(approval(), line) == reply


def remembered(remember: Remember, offer: int = 0, expires_s: float | None = None) -> AskAnswerParams:
    return AskAnswerParams(ask_id="ask_1", allow=True, remember=remember, offer=offer, expires_s=expires_s)


@pytest.mark.parametrize(
    ("line", "reply"),
    [
        ("c", remembered("conversation")),
        ("w 2", remembered("workspace", 1)),
        ("c2", remembered("conversation", 1)),
        ("p", remembered("workspace", 1)),
        ("U", remembered("user", 1)),
        ("p 8h", remembered("workspace", 1, 28_800)),
        ("w 1 30m", remembered("workspace", 0, 1_800)),
        ("c2 7d", remembered("conversation", 1, 604_800)),
    ],
)
def test_an_offer_is_chosen_by_letter_number_and_time(line: str, reply: AskAnswerParams) -> None:
    assert read_reply(kinds(), line) == reply


@pytest.mark.parametrize("line", ["w 3", "w 0", "u 1", "p 0h", "w 5", "w 1h 2", "p x", "w -1", "w 99"])
def test_what_is_not_offered_decides_nothing(line: str) -> None:
    assert isinstance(read_reply(kinds(), line), InvalidReply)


def test_addresses_code_and_calls_of_other_programs_are_shown_exactly() -> None:
    assert ask_lines(FETCH, PLAIN, 80)[1:5] == [
        "  open   https://docs.example.org/guide?q=a\\u200bb",
        "  host   docs.example.org",
        "  does   Fetch https://docs.example.org/guide",
        "  why    no rule opens docs.example.org",
    ]
    assert "         print(len(rows), 'rows \\u202e')" in ask_lines(CODE, PLAIN, 80)
    assert ask_lines(SERVICE, PLAIN, 80)[1:5] == [
        "  call   github › create_issue",
        "  with   {",
        '           "repo": "example/tool",',
        '           "title": "A bug",',
    ]


def test_the_letters_for_a_kind_mean_the_host_the_tool_or_all_code() -> None:
    everywhere = AskAnswerParams(ask_id="ask_fetch", allow=True, remember="user")
    assert read_reply(FETCH, "u") == everywhere
    assert read_reply(SERVICE, "u") == msgspec.structs.replace(everywhere, ask_id="ask_service")
    assert isinstance(read_reply(CODE, "u"), InvalidReply), "code is never allowed everywhere"


def test_the_prompt_names_the_offers_with_examples_and_v_says_why_it_was_asked() -> None:
    lines = ask_lines(kinds(), PLAIN, 80)
    assert lines[-4:] == [
        "  rule 1 Exactly this command, in /tmp.",
        "  rule 2 Commands that begin with `make test …`.",
        "         for example: make test -j4",
        "         but not: make deploy",
    ]
    assert AskInput(kinds()).prompt == "allow? a c w p u d r > "
    assert hint(kinds()).splitlines() == [
        "a         allow once",
        "  c         allow rule 1 in this conversation",
        "  w         allow rule 1 in this folder",
        "  p         allow rule 2 in this folder",
        "  u         allow rule 2 everywhere",
        "  d         deny",
        "  r REASON  deny and say why",
        "  v         show everything, and why it asks",
        "  a number chooses the rule, a time ends it (m, h, d): w 2 8h",
    ]
    assert read_reply(kinds(), "?") == InvalidReply(hint(kinds()))
    undecided = "Nothing was decided. Type one of a, c, w, p, u, d, r REASON, v; ? explains them."
    assert read_reply(kinds(), "yes") == InvalidReply(undecided)
    explanation = read_reply(kinds(), "v")
    assert isinstance(explanation, InvalidReply) and explanation.text.endswith("  ask: commands ask\n  rule    program")


def kinds() -> Ask:
    """An approval that offers this very command and commands like it."""
    ask = approval("make test")
    assert ask.approval is not None
    kind = GrantOffer(
        kind="prefix",
        calls=(GrantedCall(operation="run", prefix=("make", "test"), working_dir="/tmp"),),
        scopes=("conversation", "workspace", "user"),
        covers="Commands that begin with `make test …`.",
        example="make test -j4",
        not_covered="make deploy",
    )
    offers = (*ask.approval.offers, kind)
    explained = "ask: commands ask\nrule    program"
    return msgspec.structs.replace(
        ask, approval=msgspec.structs.replace(ask.approval, offers=offers, explained=explained)
    )


@pytest.mark.parametrize("line", ["", "y", "yes", "allow", "a b", "r", "q"])
def test_other_input_does_not_settle_an_approval(line: str) -> None:
    assert isinstance(read_reply(approval(), line), InvalidReply)


def test_unavailable_remember_choice_is_neither_offered_nor_accepted() -> None:
    once_only = approval(remembered=None)
    assert "conversation" not in hint(once_only)
    assert isinstance(read_reply(once_only, "c"), InvalidReply)


def test_a_number_picks_a_choice_and_other_text_is_an_answer_of_its_own() -> None:
    ask = question("formal", "friendly")
    assert read_reply(ask, "2") == AskAnswerParams(ask_id="ask_1", text="friendly")
    assert read_reply(ask, " warm ") == AskAnswerParams(ask_id="ask_1", text="warm")


def test_unlisted_number_asks_again_and_can_be_confirmed_as_the_answer() -> None:
    ask = question("formal", "friendly")
    problem = InvalidReply("There is no 3 in the list. Type 1 to 2, or =3 if 3 is your answer.")
    assert read_reply(ask, "3") == problem
    assert read_reply(ask, "=3") == AskAnswerParams(ask_id="ask_1", text="3")
    assert read_reply(question(), "3") == AskAnswerParams(ask_id="ask_1", text="3")


@pytest.mark.parametrize(
    ("choices", "listed", "line", "answer"),
    [
        (("3", "2", "1"), ["  a  3", "  b  2", "  c  1"], "1", "1"),
        (("3", "2", "1"), ["  a  3", "  b  2", "  c  1"], "C", "1"),
        (("2 files", "1 file"), ["  a  2 files", "  b  1 file"], "2", "2"),
        (("$5", "$1"), ["  a  $5", "  b  $1"], "b", "$1"),
        (("1", "b"), ["  #1  1", "  #2  b"], "1", "1"),
        (("1", "b"), ["  #1  1", "  #2  b"], "#1", "1"),
        (("1", "b"), ["  #1  1", "  #2  b"], "b", "b"),
    ],
)
def test_choices_that_are_numbers_are_listed_under_something_else(
    choices: tuple[str, ...], listed: list[str], line: str, answer: str
) -> None:
    ask = question(*choices)
    assert ask_lines(ask, Style(colour=False, unicode=True), 100)[1:] == listed
    assert read_reply(ask, line) == AskAnswerParams(ask_id="ask_1", text=answer)


def test_many_choices_that_are_numbers_are_picked_by_what_is_listed() -> None:
    ask = question(*(str(number) for number in range(30, 0, -1)))
    assert read_reply(ask, "#2") == AskAnswerParams(ask_id="ask_1", text="29")
    assert isinstance(read_reply(ask, "#31"), InvalidReply)


@pytest.mark.parametrize("line", ["", "  ", "=", " = "])
def test_an_empty_line_answers_no_question(line: str) -> None:
    assert read_reply(question(), line) == InvalidReply("Nothing was answered. Type an answer.")
    assert isinstance(read_reply(question("formal", "friendly"), line), InvalidReply)


def reached(kind: LimitKind, used: float, adds: float) -> Ask:
    return msgspec.structs.replace(limit(), limit=ReachedLimit(kind=kind, used=used, limit=used, adds=adds))


@pytest.mark.parametrize(("kind", "used"), [("turns", 1.0), ("money", 0.5), ("minutes", 1.0), ("day_money", 1.5)])
def test_number_at_a_limit_selects_the_listed_choice(kind: LimitKind, used: float) -> None:
    ask = reached(kind, used, used)
    lines = ask_lines(ask, Style(colour=False, unicode=True), 100)
    assert lines[1:] == ["  1  Go on", "  2  Stop here", "  3  Raise the limit to …"]
    assert AskInput(ask).read("1") == AskAnswerParams(ask_id="ask_1", allow=True)
    assert AskInput(ask).read("2") == AskAnswerParams(ask_id="ask_1", allow=False)
    assert AskInput(ask).read("20") == InvalidReply(
        f"There is no 20 in the list. Nothing was decided. Type one of: {hint(ask)}"
    )


def test_a_limit_is_raised_in_a_step_of_its_own_or_with_an_equals_sign() -> None:
    ask = reached("tokens", 1200, 1000)
    typing = AskInput(ask)
    assert typing.prompt == "go on? 1 to 3 > "
    assert typing.read("3") == InvalidReply(
        "Type the new limit: a whole number, more than 1,200 tokens. Press Enter to go back."
    )
    assert typing.prompt == "new limit in tokens > "
    for wrong in ("1", "2", "1200", "-5", "1300.5", "inf", "nan", "1e400", "many"):
        assert typing.read(wrong) == InvalidReply(
            "The limit was not raised: type a whole number, more than 1,200 tokens."
        )
    assert typing.read("50,000") == AskAnswerParams(ask_id="ask_1", allow=True, amount=50_000)
    assert AskInput(ask).read("=50000") == AskAnswerParams(ask_id="ask_1", allow=True, amount=50_000)
    raised = msgspec.structs.replace(ask, status="answered", allowed=True, amount=50_000, answered_by="me")
    assert outcome_text(raised) == "raised to 50,000 tokens by me"


@pytest.mark.parametrize(
    ("kind", "used", "line", "amount"),
    [
        ("turns", 50, "+30", 80),
        ("minutes", 30.5, "+ 10", 40.5),
        ("money", 0.5, "+$2", 2.5),
        ("day_tokens", 9, "+1", 10),
    ],
)
def test_a_plus_sign_says_how_much_more(kind: LimitKind, used: float, line: str, amount: float) -> None:
    ask = reached(kind, used, used)
    assert read_reply(ask, line) == AskAnswerParams(ask_id="ask_1", allow=True, amount=amount)
    typing = AskInput(ask)
    typing.read("3")
    assert typing.read(line) == AskAnswerParams(ask_id="ask_1", allow=True, amount=amount)


@pytest.mark.parametrize("line", ["+", "+0", "+-3", "+1.5", "++3", "+=3", "+many"])
def test_a_plus_sign_without_a_number_settles_no_limit(line: str) -> None:
    assert isinstance(read_reply(reached("turns", 3, 3), line), InvalidReply)
    assert isinstance(read_reply(limit(), line), InvalidReply)


def test_the_hint_at_a_limit_names_how_to_give_an_amount() -> None:
    assert hint(reached("turns", 50, 50)).endswith("n stop here · +50 50 more turns · =100 the new limit in turns")
    assert hint(reached("money", 0.5, 0.5)).endswith("· +0.5 $0.50 more · =1 the new limit in $")


def test_the_hint_is_wrapped_at_blanks() -> None:
    lines = hint_lines(reached("turns", 50, 50), 60)
    assert len(lines) == 2 and all(line.startswith("  ") and len(line) <= 60 for line in lines)
    assert " ".join(line.strip() for line in lines) == hint(reached("turns", 50, 50))
    assert hint_lines(kinds(), 80) == [f"  {line.strip()}" for line in hint(kinds()).splitlines()]


def test_an_empty_line_in_place_of_a_new_limit_goes_back_to_the_list() -> None:
    typing = AskInput(reached("turns", 3, 3))
    typing.read("3")
    assert typing.read("") == InvalidReply(f"The limit was not raised. Type one of: {hint(typing.ask)}")
    assert typing.read("2") == AskAnswerParams(ask_id="ask_1", allow=False)


@pytest.mark.parametrize("line", ["=2,50", "=2,5", "=1,00", "=1_000", "=0x10", "=٣٠", "=", "=="])
def test_an_amount_that_could_mean_two_numbers_is_none(line: str) -> None:
    assert isinstance(read_reply(reached("money", 0.5, 0.5), line), InvalidReply)


def test_a_limit_takes_yes_or_no_and_its_list() -> None:
    assert read_reply(limit(), "y") == AskAnswerParams(ask_id="ask_1", allow=True)
    assert read_reply(limit(), "1") == AskAnswerParams(ask_id="ask_1", allow=True)
    assert read_reply(limit(), "no") == AskAnswerParams(ask_id="ask_1", allow=False)
    assert read_reply(limit(), "2") == AskAnswerParams(ask_id="ask_1", allow=False)
    for line in ("", "3", "=3", "maybe"):
        assert isinstance(read_reply(limit(), line), InvalidReply)


def test_an_unknown_outcome_takes_one_of_its_numbers_and_nothing_else() -> None:
    assert hint(UNKNOWN) == "1 run it again · 2 skip it · 3 stop the task"
    assert read_reply(UNKNOWN, "2") == AskAnswerParams(ask_id="ask_u", text="Skip it")
    assert all(isinstance(read_reply(UNKNOWN, line), InvalidReply) for line in ("", "4", "y", "skip"))


def test_an_unknown_outcome_shows_the_exact_command() -> None:
    lines = ask_lines(UNKNOWN, Style(colour=False, unicode=True), 100)
    assert lines[1] == "  ran    make deploy && ./announce.sh"


def plain_lines(ask: Ask, width: int = 100) -> list[str]:
    return ask_lines(ask, Style(colour=False, unicode=True), width)


def test_an_approval_is_wrapped_at_blanks_on_a_narrow_screen() -> None:
    lines = plain_lines(approval(), 30)
    assert lines[:2] == ["! Approval needed · high risk,", "look closely"]
    assert max(map(len, lines)) <= 30


def test_letters_of_another_alphabet_in_a_command_get_a_remark() -> None:
    lines = plain_lines(approval("\u0441url https://example.org"))
    assert any("“\u0441url” mixes alphabets: \u0441 = U+0441 CYRILLIC SMALL LETTER ES" in line for line in lines)


def test_text_after_two_hundred_newlines_is_announced_and_v_shows_it() -> None:
    ask = approval("true" + "\n" * 200 + "rm -r build")
    lines = plain_lines(ask)
    assert "         … 161 more lines (v shows all)" in lines
    assert "         rm -r build" in lines, "the end stands there too"
    explanation = read_reply(ask, "v")
    assert isinstance(explanation, InvalidReply)
    assert (
        explanation.text.startswith("run    true\n")
        and explanation.text.count("\n") > 200
        and "rm -r build" in explanation.text
    )


def test_long_line_of_a_command_cannot_imitate_a_label() -> None:
    forged = "true" + " " * 87 + "  why    reads a file"
    lines = plain_lines(approval(forged))
    assert [line for line in lines if line.startswith("  why")] == ["  why    commands ask"]
    assert all(len(line) <= 100 for line in lines)


def test_reasons_and_rules_are_wrapped_at_blanks_below_their_labels() -> None:
    ask = kinds()
    assert ask.approval is not None
    covers = "Commands that begin with `python3 -m pytest …`, on files of the workspace."
    offers = tuple(msgspec.structs.replace(offer, covers=covers) for offer in ask.approval.offers[1:])
    long = msgspec.structs.replace(ask.approval, offers=offers, rule="a reason " * 8 + "at its end")
    lines = plain_lines(msgspec.structs.replace(ask, approval=long), 60)
    assert lines[4:] == [
        "  why    a reason a reason a reason a reason a reason a",
        "         reason a reason a reason at its end",
        "  rule 1 Commands that begin with `python3 -m pytest …`, on",
        "         files of the workspace.",
        "         for example: make test -j4",
        "         but not: make deploy",
    ]


def test_path_cannot_imitate_another_line() -> None:
    ask = approval()
    assert ask.approval is not None
    forged = msgspec.structs.replace(ask.approval, writes=("/work/a\n  why    harmless",))
    lines = plain_lines(msgspec.structs.replace(ask, approval=forged))
    assert "  writes /work/a ↵   why    harmless" in lines


def test_hidden_characters_of_a_change_are_escaped() -> None:
    ask = approval()
    assert ask.approval is not None
    changed = msgspec.structs.replace(ask.approval, preview="--- a\n+++ a\n@@ -1 +1 @@\n-x\n+x\u202e\U000e0041\n")
    assert "    +x\\u202e\\U000e0041" in plain_lines(msgspec.structs.replace(ask, approval=changed))


def test_long_line_of_a_change_cannot_imitate_a_label() -> None:
    ask = approval()
    assert ask.approval is not None
    preview = "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+" + "y" * 94 + "  why    reads a file\n"
    lines = plain_lines(msgspec.structs.replace(ask, approval=msgspec.structs.replace(ask.approval, preview=preview)))
    assert [line for line in lines if line.startswith("  why")] == ["  why    commands ask"]
    assert all(len(line) <= 100 for line in lines)


def test_the_folder_that_a_command_runs_in_is_not_shown_as_what_it_reads() -> None:
    ask = approval()
    assert ask.approval is not None
    asked = msgspec.structs.replace(ask, approval=msgspec.structs.replace(ask.approval, reads=("/work", "/etc/hosts")))
    explanation = read_reply(asked, "v")
    assert isinstance(explanation, InvalidReply)
    assert [line for line in explanation.text.splitlines() if "reads" in line] == ["  reads  /etc/hosts"]
