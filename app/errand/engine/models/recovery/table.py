"""Which steps follow each kind of failure."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

from errand.engine.models.failures import FailureKind

RecoveryStep: TypeAlias = Literal[
    "retry",
    "text_tools",
    "no_result_pictures",
    "no_temperature",
    "no_summary",
    "no_thoughts",
    "no_field",
    "with_field",
    "other_model",
]

# Tried in order, each if it applies; after the last one the failure ends the reply. The caller shortens requests that
# are too long, and may wait for a rate limit.
RECOVERY: Mapping[FailureKind, tuple[RecoveryStep, ...]] = {
    FailureKind.RATE_LIMITED: ("retry", "other_model"),
    FailureKind.UNAVAILABLE: ("retry", "other_model"),
    FailureKind.TOO_LONG: (),
    FailureKind.NO_TOOLS: ("text_tools", "other_model"),
    FailureKind.NO_PICTURES: ("no_result_pictures", "other_model"),
    FailureKind.NO_TEMPERATURE: ("no_temperature", "other_model"),
    FailureKind.NOT_AUTHORISED: ("other_model",),
    FailureKind.NO_CREDIT: ("other_model",),
    FailureKind.NOT_USABLE: ("other_model",),
    FailureKind.NOT_FOUND: ("other_model",),
    FailureKind.NO_SUMMARY: ("no_summary", "other_model"),
    FailureKind.NO_THOUGHTS: ("no_thoughts", "other_model"),
    FailureKind.NO_FIELD: ("no_field", "other_model"),
    FailureKind.NEEDS_FIELD: ("with_field", "other_model"),
    FailureKind.CONTENT_FILTER: (),
    FailureKind.REJECTED: (),
}


def allows(step: RecoveryStep, kind: FailureKind | None) -> bool:
    """Return True if the step may follow a failure of this kind; None is a reply that no provider failed."""
    return kind is not None and step in RECOVERY[kind]
