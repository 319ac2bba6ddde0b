"""Texts about rules, as both clients show them."""

from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from errand.client.texts.rules import covered_line, covered_summary, grant_text, offer_text, rule_words
from errand.protocol.asks import CallVerdict, CoveredCall, Grant, GrantCoveredResult, GrantedCall, GrantOffer

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
GRANT = Grant(
    id="grant_1",
    tool="shell",
    exact="git push",
    scope="workspace",
    scope_id="/home/anna/a\u202eb",
    created_at=AT,
    created_by="window",
)


@pytest.mark.parametrize(
    ("line", "tokens"),
    [
        ("git push", ("git", "push")),
        ("git push …", ("git", "push")),
        ("git push ...", ("git", "push")),
        ("git diff main...", ("git", "diff", "main...")),
        ("git commit -m 'two words'", ("git", "commit", "-m", "two words")),
        ("make;rm x", ("make", ";", "rm", "x")),
        ("make&&rm #x", ("make", "&&", "rm", "#x")),
        ("", ()),
    ],
)
def test_words_of_a_rule_are_those_of_a_shell_and_operators_stand_alone(line: str, tokens: tuple[str, ...]) -> None:
    assert rule_words(line) == tokens


@pytest.mark.parametrize("line", ["git 'push", 'git "push', "git push \\"])
def test_a_rule_that_ends_within_a_word_is_refused_in_a_sentence(line: str) -> None:
    with pytest.raises(ValueError, match="is not one command: a quotation mark is missing"):
        rule_words(line)


def test_titles_of_offers_name_commands_and_folders_without_hidden_characters() -> None:
    calls = (GrantedCall(operation="run", prefix=("git", "push")), GrantedCall(operation="run", prefix=("a\u202eb",)))
    commands = GrantOffer(kind="prefix", calls=calls, scopes=("user",), covers="")
    assert offer_text(commands) == "git push …, 'a\\u202eb' …"
    folder = GrantOffer(
        kind="folder", calls=(GrantedCall(operation="edit", folder="/a\nb"),), scopes=("user",), covers=""
    )
    assert offer_text(folder) == "Any change in /a ↵ b"


def test_a_grant_says_where_it_holds_its_use_and_its_end() -> None:
    assert grant_text(GRANT).startswith("In /home/anna/a\\u202eb · shell · given ")
    assert grant_text(GRANT).endswith(" by window · not used yet")
    ended = msgspec.structs.replace(GRANT, scope="user", last_used_at=AT, expires_at=AT + timedelta(days=1))
    assert "Everywhere" in grant_text(ended) and "last used" in grant_text(ended) and " · expired " in grant_text(ended)
    denial = msgspec.structs.replace(GRANT, decision="deny", tool="", revoked_at=AT)
    assert " · every tool · denied " in grant_text(denial) and " · revoked " in grant_text(denial)
    assert "used" not in grant_text(denial)


def test_calls_that_a_rule_decides_are_counted_and_listed_in_columns() -> None:
    def call(without: CallVerdict, verdict: CallVerdict) -> CoveredCall:
        return CoveredCall(
            task_id="task_1",
            conversation_id="conversation_1",
            call_id="call_1",
            tool="shell",
            text="git push\nrm x",
            at=AT,
            without=without,
            verdict=verdict,
        )

    coverage = GrantCoveredResult(judged=1200, calls=(call("ask", "deny"), call("allow", "allow")))
    assert covered_summary(coverage) == "Would have decided 2 of the last 1,200 calls."
    assert [covered_line(covered) for covered in coverage.calls] == [
        "ask → deny     git push ↵ rm x",
        "allow → allow  git push ↵ rm x",
    ]
