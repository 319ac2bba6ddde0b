"""Asks in the transcript: shown exactly, answered by mouse and keyboard, with their outcome."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QFont, QTextCharFormat
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QLabel,
    QLineEdit,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QWidget,
)
from pytestqt.qtbot import QtBot

from errand.client.conversation.rows import AskRow
from errand.protocol.asks import Approval, Ask, AskAnswerParams, GrantedCall, GrantOffer, ReachedLimit
from errand.window.rows.asks.ask import AskView
from errand.window.rows.disclosure import DisclosureButton
from errand.window.theme.theme import Theme
from tests.support.row_actions import KeptActions
from tests.support.rows import APPROVAL, CODE, FETCH, LIMIT, QUESTION, SERVICE, UNKNOWN

WIDTH = 600
_PREFIX = "python -m pytest …. Commands that begin with `python -m pytest …`, on files of the workspace."


def _approval(ask: Ask) -> Approval:
    assert ask.approval is not None
    return ask.approval


class Shown:
    """A visible row view with an ask."""

    def __init__(self, theme: Theme, qtbot: QtBot) -> None:
        self.actions = KeptActions()
        self.row_view = AskView(theme, self.actions)
        qtbot.addWidget(self.row_view)

    def show(self, ask: Ask, others: tuple[Ask, ...] = ()) -> None:
        self.row_view.set_row(AskRow(key=ask.id, ask=ask, others=others))
        self.row_view.resize(WIDTH, self.row_view.height_for(WIDTH))
        self.row_view.show()
        self.row_view.grab()

    def texts(self) -> list[str]:
        boxes = [box.toPlainText() for box in self.row_view.findChildren(QPlainTextEdit) if box.isVisible()]
        return [label.text() for label in self.row_view.findChildren(QLabel) if label.isVisible()] + boxes

    def button(self, name: str) -> QAbstractButton:
        buttons = self.row_view.findChildren(QAbstractButton)
        return next(button for button in buttons if button.accessibleName() == name and button.isVisible())

    def formats(self, name: str) -> list[tuple[str, str, bool]]:
        """The coloured parts of a visible text, by its name: text, colour and whether it is bold."""
        boxes = self.row_view.findChildren(QPlainTextEdit)
        document = next(box for box in boxes if box.accessibleName() == name and box.isVisible()).document()
        parts: list[tuple[str, str, bool]] = []
        block = document.begin()
        while block.isValid():
            for part in block.layout().formats():
                look, text = QTextCharFormat(part.format), block.text()[part.start : part.start + part.length]
                is_bold = look.fontWeight() == QFont.Weight.Bold
                parts.append((text, look.foreground().color().name(), is_bold))
            block = block.next()
        return parts

    def colours(self, name: str) -> set[str]:
        return {colour for _, colour, _ in self.formats(name)}

    def emphasised(self, name: str) -> list[str]:
        return [text for text, _, is_bold in self.formats(name) if is_bold]

    def field(self) -> QLineEdit:
        return next(field for field in self.row_view.findChildren(QLineEdit) if field.isVisible())

    def line(self) -> DisclosureButton:
        """The line of a settled ask."""
        return next(line for line in self.row_view.findChildren(DisclosureButton) if line.isVisible())

    def controls(self) -> list[QWidget]:
        kinds = (QPushButton, QLineEdit)
        return [widget for kind in kinds for widget in self.row_view.findChildren(kind) if widget.isVisible()]


@pytest.fixture
def ask_view(theme: Theme, qtbot: QtBot) -> Shown:
    return Shown(theme, qtbot)


def test_a_question_is_answered_by_one_of_its_choices(ask_view: Shown) -> None:
    ask_view.show(QUESTION)
    ask_view.button("Blue").click()
    assert ask_view.actions.answers == [AskAnswerParams(ask_id="ask_q", text="Blue")]


def test_a_question_is_answered_by_typing_and_enter_but_not_with_blanks(ask_view: Shown) -> None:
    ask_view.show(QUESTION)
    QTest.keyClicks(ask_view.field(), "  ")
    QTest.keyClick(ask_view.field(), Qt.Key.Key_Return)
    assert (ask_view.actions.answers, ask_view.button("Reply").isEnabled()) == ([], False)
    QTest.keyClicks(ask_view.field(), "red ")
    QTest.keyClick(ask_view.field(), Qt.Key.Key_Return)
    assert ask_view.actions.answers == [AskAnswerParams(ask_id="ask_q", text="red")]


def test_a_long_choice_wraps(ask_view: Shown) -> None:
    ask_view.show(QUESTION)
    assert ask_view.button(QUESTION.choices[1]).height() > ask_view.button("Blue").height() * 1.5


def test_typed_text_survives_an_update_of_its_question_but_not_another_question(ask_view: Shown) -> None:
    ask_view.show(QUESTION)
    ask_view.field().setText("half an ans")
    ask_view.show(QUESTION)
    assert ask_view.field().text() == "half an ans"
    ask_view.show(msgspec.structs.replace(QUESTION, id="ask_2", choices=()))
    assert (ask_view.field().text(), ask_view.field().placeholderText()) == ("", "Your answer")
    ask_view.show(QUESTION)
    assert ask_view.field().text() == "half an ans", "it was only out of view"


def test_an_approval_shows_command_paths_reason_risk_and_change_in_full(ask_view: Shown) -> None:
    ask_view.show(APPROVAL)
    texts = ask_view.texts()
    for text in (
        "python -m pytest -q && rm -rf build",
        "/home/anna/project",
        "/home/anna/other",
        "/home/anna/project/build",
        "it runs a program",
        "Medium risk",
        "--- an old comment\n+select 1;",
    ):
        assert text in texts


def test_an_address_is_shown_exactly_with_its_host_emphasised_and_odd_letters_named(ask_view: Shown) -> None:
    ask_view.show(FETCH)
    assert "https://docs.example.org/guide?q=a\\u200bb" in ask_view.texts()
    assert "Fetch https://docs.example.org/guide" in ask_view.texts()
    assert ask_view.emphasised("Address") == ["docs.example.org"]
    assert FETCH.approval is not None
    odd = msgspec.structs.replace(FETCH.approval, address="https://xn--mnchen-3ya.de/")
    ask_view.show(msgspec.structs.replace(FETCH, id="ask_odd", approval=odd))
    assert "Host: browsers show it as münchen.de" in ask_view.texts()
    letters = msgspec.structs.replace(odd, address="", command="\u0441url https://example.org")
    ask_view.show(msgspec.structs.replace(FETCH, id="ask_letters", approval=letters))
    assert "“\u0441url” mixes alphabets: \u0441 = U+0441 CYRILLIC SMALL LETTER ES" in ask_view.texts()


def test_code_is_highlighted_in_its_language_and_readable_to_its_end(ask_view: Shown) -> None:
    ask_view.show(CODE)
    assert CODE.approval is not None
    assert CODE.approval.code.replace("\u202e", "\\u202e") in ask_view.texts()
    assert len(ask_view.colours("Code that will run")) > 2
    long = msgspec.structs.replace(CODE.approval, code="x = 1\n" * 500 + "last = 2")
    ask_view.show(msgspec.structs.replace(CODE, id="ask_long", approval=long))
    ask_view.button("… 477 more lines · Show all: Code that will run").click()
    assert any(text.endswith("last = 2") for text in ask_view.texts())


def test_a_call_of_another_program_is_shown_with_its_server_tool_and_arguments(ask_view: Shown) -> None:
    ask_view.show(SERVICE)
    assert SERVICE.approval is not None
    assert {"github › create_issue", "Arguments", SERVICE.approval.preview} <= set(ask_view.texts())
    assert len(ask_view.colours("Arguments")) > 1


def test_one_card_shows_every_kind_of_approval_in_turn(ask_view: Shown) -> None:
    for ask in (FETCH, CODE, APPROVAL, SERVICE, FETCH, APPROVAL):
        ask_view.show(ask)
    assert "Arguments" not in ask_view.texts() and not any("docs.example.org" in text for text in ask_view.texts())
    assert ask_view.colours("What will run") == set()


_COMMAND_ALONE = msgspec.structs.replace(
    APPROVAL, id="command-alone", approval=msgspec.structs.replace(_approval(APPROVAL), preview="")
)


@pytest.mark.parametrize("before", [APPROVAL, FETCH, CODE, SERVICE, QUESTION])
@pytest.mark.parametrize("after", [_COMMAND_ALONE, FETCH, LIMIT, QUESTION])
def test_a_reused_card_is_as_high_as_a_new_one(
    ask_view: Shown, theme: Theme, qtbot: QtBot, before: Ask, after: Ask
) -> None:
    ask_view.show(before)
    QApplication.processEvents()
    ask_view.row_view.hide()
    ask_view.show(after)
    new = Shown(theme, qtbot)
    new.show(after)
    assert ask_view.row_view.height() == new.row_view.height()


def test_hidden_characters_of_a_command_are_escaped(ask_view: Shown) -> None:
    assert APPROVAL.approval is not None
    tricky = msgspec.structs.replace(APPROVAL.approval, command="ls \u202egpj.exe\u200b\x1b[2K\u00a0-la")
    ask_view.show(msgspec.structs.replace(APPROVAL, approval=tricky))
    assert "ls \\u202egpj.exe\\u200b\\u001b[2K\\u00a0-la" in ask_view.texts()


@pytest.mark.parametrize(
    ("presses", "answer"),
    [
        (["Allow once"], AskAnswerParams(ask_id="ask_a", allow=True)),
        (
            ["Always allow…", "In this conversation"],
            AskAnswerParams(ask_id="ask_a", allow=True, remember="conversation"),
        ),
        (
            ["Always allow…", _PREFIX, "Everywhere"],
            AskAnswerParams(ask_id="ask_a", allow=True, remember="user", offer=1),
        ),
        (
            ["Always allow…", "In this folder"],
            AskAnswerParams(ask_id="ask_a", allow=True, remember="workspace"),
        ),
        (["Deny"], AskAnswerParams(ask_id="ask_a", allow=False)),
    ],
)
def test_an_approval_is_answered_by_its_buttons(ask_view: Shown, presses: list[str], answer: AskAnswerParams) -> None:
    ask_view.show(APPROVAL)
    for name in presses:
        ask_view.button(name).click()
    assert ask_view.actions.answers == [answer]


def test_an_offer_says_what_it_covers_with_an_example_and_a_counterexample(ask_view: Shown) -> None:
    ask_view.show(APPROVAL)
    ask_view.button("Always allow…").click()
    assert "Exactly this command, in /home/anna/project." in ask_view.texts()
    assert not any(button.accessibleName() == "Everywhere" for button in ask_view.controls())
    ask_view.button(_PREFIX).click()
    for text in (
        "Commands that begin with `python -m pytest …`, on files of the workspace.",
        "python -m pytest -v",
        "python -m pip",
    ):
        assert text in ask_view.texts()


def test_offers_for_two_folders_can_be_told_apart_by_their_titles(ask_view: Shown) -> None:
    assert APPROVAL.approval is not None
    deep = "/home/anna/" + "a-folder-with-a-long-name/" * 4 + "src"
    offers = tuple(
        GrantOffer(
            kind="folder",
            calls=(GrantedCall(operation="edit", folder=folder),),
            scopes=("conversation", "workspace"),
            covers=f"Any change of files in {folder} and below, whatever their content.",
        )
        for folder in ("/home/anna", deep, "/home/anna/R&D")
    )
    ask_view.show(msgspec.structs.replace(APPROVAL, approval=msgspec.structs.replace(APPROVAL.approval, offers=offers)))
    ask_view.button("Always allow…").click()
    titles = [button.text() for button in ask_view.row_view.findChildren(QRadioButton) if button.isVisible()]
    assert titles == ["Any change in /home/anna", f"Any change in {deep}", "Any change in /home/anna/R&&D"]
    assert ask_view.row_view.minimumSizeHint().width() < WIDTH // 2, "a long path is shortened, not the card widened"


def test_an_offer_can_be_accepted_for_an_hour_with_the_keyboard_alone(ask_view: Shown) -> None:
    ask_view.show(APPROVAL)
    QTest.keyClick(ask_view.button("Always allow…"), Qt.Key.Key_Return)
    ask_view.row_view.activateWindow()
    QTest.qWaitForWindowActive(ask_view.row_view)
    ask_view.show(APPROVAL)  # laid out at its new height
    first = ask_view.row_view.focusWidget()
    assert first is not None and first.accessibleName().startswith("Exactly this")
    QTest.keyClick(first, Qt.Key.Key_Down)
    (period,) = ask_view.row_view.findChildren(QComboBox)
    QTest.keyClick(period, Qt.Key.Key_Down)
    QTest.keyClick(ask_view.button("In this folder"), Qt.Key.Key_Return)
    assert ask_view.actions.answers == [
        AskAnswerParams(ask_id="ask_a", allow=True, remember="workspace", offer=1, expires_s=3600)
    ]


def test_offers_of_another_ask_start_with_the_narrowest(ask_view: Shown) -> None:
    ask_view.show(APPROVAL)
    ask_view.button("Always allow…").click()
    ask_view.button(_PREFIX).click()
    ask_view.show(msgspec.structs.replace(APPROVAL, id="ask_b"))
    ask_view.button("Always allow…").click()
    ask_view.button("In this conversation").click()
    assert ask_view.actions.answers == [AskAnswerParams(ask_id="ask_b", allow=True, remember="conversation")]


def test_why_an_approval_is_asked_opens_in_place_of_other_parts_and_esc_closes_it(ask_view: Shown) -> None:
    ask_view.show(APPROVAL)
    ask_view.button("Always allow…").click()
    ask_view.button("Why am I asked?").click()
    assert APPROVAL.approval is not None
    assert APPROVAL.approval.explained in ask_view.texts()
    assert "Exactly this command, in /home/anna/project." not in ask_view.texts()
    QTest.keyClick(ask_view.button("Why am I asked?"), Qt.Key.Key_Escape)
    assert APPROVAL.approval.explained not in ask_view.texts()


def test_a_settled_approval_says_what_was_allowed_where_and_until_when(ask_view: Shown) -> None:
    at = datetime.now(UTC)
    settled = msgspec.structs.replace(
        APPROVAL, status="answered", allowed=True, remember="workspace", offer=1, expires_s=3600.0, answered_at=at
    )
    ask_view.show(settled)
    ask_view.line().click()
    end = (at + timedelta(hours=1)).astimezone()
    allowed = f"Allowed: python -m pytest …, in this folder, until {end.day} {end:%b}, {end:%H:%M}"
    assert any(text.startswith(allowed) for text in ask_view.texts())


def test_a_reason_for_denying_is_given_by_keyboard_alone(ask_view: Shown, qtbot: QtBot) -> None:
    ask_view.show(APPROVAL)
    with qtbot.waitSignal(ask_view.row_view.resized):
        QTest.keyClick(ask_view.button("Deny with reason…"), Qt.Key.Key_Return)
    QTest.keyClicks(ask_view.field(), "use the other folder")
    QTest.keyClick(ask_view.field(), Qt.Key.Key_Return)
    assert ask_view.actions.answers == [AskAnswerParams(ask_id="ask_a", text="use the other folder", allow=False)]


def test_control_enter_anywhere_in_an_approval_allows_once(ask_view: Shown) -> None:
    ask_view.show(APPROVAL)
    QTest.keyClick(ask_view.button("Deny"), Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert ask_view.actions.answers == [AskAnswerParams(ask_id="ask_a", allow=True)]


def test_without_an_offer_nothing_is_offered_to_remember(ask_view: Shown) -> None:
    assert APPROVAL.approval is not None
    approval = msgspec.structs.replace(APPROVAL.approval, offers=(), explained="")
    ask_view.show(msgspec.structs.replace(APPROVAL, approval=approval))
    assert [button.accessibleName() for button in ask_view.controls()] == ["Allow once", "Deny", "Deny with reason…"]


def test_in_a_narrow_card_the_buttons_wrap_and_none_is_cut(ask_view: Shown) -> None:
    ask_view.show(APPROVAL)
    wide, width = ask_view.row_view.height(), WIDTH // 2
    ask_view.row_view.resize(width, ask_view.row_view.height_for(width))
    buttons = [ask_view.button(name) for name in ("Allow once", "Always allow…", "Deny", "Deny with reason…")]
    card = buttons[0].parentWidget()
    assert all(button.width() >= button.sizeHint().width() for button in buttons)
    assert card is not None and all(card.rect().contains(button.geometry()) for button in buttons)
    assert buttons[0].y() < buttons[-1].y()
    assert ask_view.row_view.height() > wide


@pytest.mark.parametrize(("name", "allow"), [("Go on with as much again", True), ("Stop", False)])
def test_a_limit_is_continued_or_stopped_by_its_buttons(ask_view: Shown, name: str, allow: bool) -> None:
    ask_view.show(LIMIT)
    ask_view.button(name).click()
    assert ask_view.actions.answers == [AskAnswerParams(ask_id="ask_l", allow=allow)]


@pytest.mark.parametrize(
    ("limit", "shows", "typed", "amount"),
    [
        (ReachedLimit(kind="turns", used=50, limit=50, adds=50), "50", "30", 80),
        (ReachedLimit(kind="minutes", used=30.25, limit=30, adds=30), "30", "7.5", 37.75),
        (ReachedLimit(kind="tokens", used=1_200, limit=1_000, adds=1_000), "1000", "50,000", 51_200),
        (ReachedLimit(kind="money", used=0.5, limit=0.5, adds=0.5), "0.50", "$2.50", 3.0),
        (ReachedLimit(kind="day_money", used=5.0, limit=5.0, adds=5.0), "5.00", "0.25", 5.25),
    ],
)
def test_at_a_limit_a_number_says_how_much_more(
    ask_view: Shown, limit: ReachedLimit, shows: str, typed: str, amount: float
) -> None:
    ask_view.show(msgspec.structs.replace(LIMIT, limit=limit))
    field = ask_view.field()
    assert field.text() == shows
    ask_view.button("Continue").click()
    assert ask_view.actions.answers == [AskAnswerParams(ask_id="ask_l", allow=True)], "as much again"
    field.setText(typed)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert ask_view.actions.answers[1:] == [AskAnswerParams(ask_id="ask_l", allow=True, amount=amount)]


@pytest.mark.parametrize("wrong", ["", "0", "-5", "2,5", "many", "1.5", "1e400"])
def test_at_a_limit_nothing_but_a_number_goes_on(ask_view: Shown, wrong: str) -> None:
    ask_view.show(msgspec.structs.replace(LIMIT, limit=ReachedLimit(kind="turns", used=50, limit=50, adds=50)))
    field = ask_view.field()
    field.setText(wrong)
    assert (field.toolTip(), ask_view.button("Continue").isEnabled()) == ("A whole number above 0", False)
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert ask_view.actions.answers == []
    ask_view.show(msgspec.structs.replace(LIMIT, limit=ReachedLimit(kind="turns", used=50, limit=50, adds=50)))
    assert field.text() == wrong, "an update of the ask keeps what was typed"
    ask_view.button("Stop").click()
    assert ask_view.actions.answers == [AskAnswerParams(ask_id="ask_l", allow=False)]


@pytest.mark.parametrize("name", UNKNOWN.choices)
def test_an_unknown_outcome_shows_the_call_and_accepts_one_of_its_choices(ask_view: Shown, name: str) -> None:
    ask_view.show(UNKNOWN)
    assert {"make deploy && ./announce.sh", UNKNOWN.text} <= set(ask_view.texts())
    ask_view.button(name).click()
    assert ask_view.actions.answers == [AskAnswerParams(ask_id="ask_u", text=name)]


@pytest.mark.parametrize(
    ("ask", "answer", "allowed", "texts"),
    [
        (QUESTION, "Blue", None, ("you answered “Blue”", "Answered: Blue · by window · ")),
        (APPROVAL, "", True, ("approved by you", "Allowed once · by window · ")),
        (APPROVAL, "not now", False, ("denied by you", "Denied: not now · by window · ")),
        (LIMIT, "", True, ("continued by you", "Continued · by window · ")),
        (UNKNOWN, "Skip it", None, ("you answered “Skip it”", "Chosen: Skip it · by window · ")),
    ],
)
def test_a_settled_ask_is_a_line_that_expands_to_answer_author_and_time_without_controls(
    ask_view: Shown, ask: Ask, answer: str, allowed: bool | None, texts: tuple[str, str]
) -> None:
    ask_view.show(ask)
    at = datetime.now(UTC)
    ask_view.show(
        msgspec.structs.replace(
            ask, status="answered", answer=answer, allowed=allowed, answered_by="window", answered_at=at
        )
    )
    time = f"{at.astimezone():%H:%M}"
    line = ask_view.line()
    assert line.text().endswith(f"· {texts[0]} {time}")
    assert ask_view.texts() == []
    line.click()
    assert ask_view.controls() == []
    assert f"{texts[1]}{time}" in ask_view.texts()
    line.click()
    assert ask_view.texts() == []


def test_one_row_view_shows_asks_of_every_kind_in_turn(ask_view: Shown) -> None:
    for ask in (QUESTION, APPROVAL, LIMIT, UNKNOWN, APPROVAL, QUESTION):
        ask_view.show(ask)
        names = [widget.accessibleName() for widget in ask_view.controls()]
        assert all(names) and len(names) == len(set(names))
    assert QUESTION.text in ask_view.texts() and LIMIT.text not in ask_view.texts()


def test_a_command_of_a_thousand_lines_can_be_shown_in_full_and_scrolls(ask_view: Shown) -> None:
    assert APPROVAL.approval is not None
    command = "\n".join(f"echo {number}" for number in range(1000))
    approval = msgspec.structs.replace(APPROVAL.approval, command=command)
    ask_view.show(msgspec.structs.replace(APPROVAL, approval=approval))
    assert command in ask_view.texts()
    assert ask_view.row_view.height() < 1200


def test_equal_approvals_are_counted_and_settled_together(ask_view: Shown) -> None:
    others = tuple(msgspec.structs.replace(APPROVAL, id=f"ask_{number}") for number in (2, 3))
    ask_view.show(APPROVAL, others)
    assert "2 identical requests are waiting (same command, folder and files)." in ask_view.texts()
    ask_view.button("Allow all 3 once").click()
    assert ask_view.actions.answers == [
        AskAnswerParams(ask_id=ask_id, allow=True) for ask_id in ("ask_a", "ask_2", "ask_3")
    ]
    ask_view.actions.answers.clear()
    ask_view.show(APPROVAL, others[:1])
    ask_view.button("Deny all 2").click()
    assert ask_view.actions.answers == [AskAnswerParams(ask_id=ask_id, allow=False) for ask_id in ("ask_a", "ask_2")]
    ask_view.show(APPROVAL)
    assert not any("these" in button.text() for button in ask_view.controls() if isinstance(button, QPushButton))


HIDDEN = "true" + "\n" * 200 + "rm -r build"


def with_command(command: str) -> Ask:
    assert APPROVAL.approval is not None
    return msgspec.structs.replace(APPROVAL, approval=msgspec.structs.replace(APPROVAL.approval, command=command))


def test_hidden_lines_after_two_hundred_newlines_are_counted_and_can_be_shown(ask_view: Shown) -> None:
    ask_view.show(with_command(HIDDEN))
    more = ask_view.button("… 177 more lines · Show all: What will run")
    before = ask_view.row_view.height_for(WIDTH)
    more.click()
    assert ask_view.row_view.height_for(WIDTH) > before + 2000
    ask_view.button("Show less: What will run").click()
    assert ask_view.row_view.height_for(WIDTH) == before


def test_a_short_command_has_no_show_all_button(ask_view: Shown) -> None:
    ask_view.show(APPROVAL)
    assert not any("more line" in button.text() for button in ask_view.controls() if isinstance(button, QPushButton))


def test_line_breaks_in_paths_and_reasons_of_an_approval_are_escaped(ask_view: Shown) -> None:
    assert APPROVAL.approval is not None
    path = "/work/a\nWhy\u202e: harmless"
    approval = msgspec.structs.replace(APPROVAL.approval, writes=(path,), rule=f"writes outside: {path}")
    ask_view.show(msgspec.structs.replace(APPROVAL, approval=approval))
    assert "/work/a ↵ Why\\u202e: harmless" in ask_view.texts()
    assert "writes outside: /work/a ↵ Why\\u202e: harmless" in ask_view.texts()
