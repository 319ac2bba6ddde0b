"""Verdicts and findings: what each check of the policy returns, and how findings combine."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from errand.protocol.asks import Risk

Verdict = Literal["allow", "ask", "deny"]
RuleName = Literal[
    "hard floor",
    "your deny rule",
    "closed folder",
    "unchecked text",
    "grammar",
    "program",
    "flag",
    "operand",
    "redirect",
    "untrusted folder",
    "danger",
    "grant",
    "read-only command",
    "path",
    "address",
    "network",
    "tool",
    "mode",
    "reading tool",
]
_ORDER: tuple[Verdict, ...] = ("allow", "ask", "deny")


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict on one part of a call, the rule that gave it, and the reason in plain words."""

    verdict: Verdict
    rule: RuleName
    reason: str
    risk: Risk = "low"


def ask(rule: RuleName, reason: str, risk: Risk = "medium") -> Finding:
    return Finding("ask", rule, reason, risk)


def deny(rule: RuleName, reason: str) -> Finding:
    return Finding("deny", rule, reason, "high")


def strictest(findings: Iterable[Finding]) -> Finding | None:
    """Return the strictest finding, the first one of equals; None for no findings."""
    return max(findings, key=lambda finding: _ORDER.index(finding.verdict), default=None)
