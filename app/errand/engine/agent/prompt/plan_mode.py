"""Plan mode as an agent reads of it: with the message that starts a task, like all that changes (decision 84).

A change during a task is a message of the engine instead.
"""

import msgspec

from errand.engine.agent.prompt.texts import engine_message, prompt_text
from errand.engine.core.messages import UserMessage
from errand.protocol.blocks import EngineMessageKind, EnvironmentBlock
from errand.protocol.tasks.groups import ApproveMode


def with_plan_mode(
    changes: EnvironmentBlock | None, before: EnvironmentBlock | None, approve: ApproveMode, *, was_planning: bool
) -> EnvironmentBlock | None:
    """Return what an agent is told of its workspace, with plan mode if that is new to it; None if nothing is new.

    `changes` are those of the workspace since `before`. `was_planning`: the agent was told last that it only plans.
    """
    plans = approve == "plan"
    block = changes or before
    is_told_all = changes is not None and not changes.is_change
    if block is None or (plans == was_planning and not (plans and is_told_all)):
        return changes
    mode = prompt_text(_kind(plans=plans))
    text, brief = ("", "") if changes is None else (changes.text, changes.brief)
    return msgspec.structs.replace(
        block, text=_joined(text, mode), brief=_joined(brief, mode), is_change=not is_told_all, plan_mode=plans
    )


def plan_message(approve: ApproveMode, *, was_planning: bool) -> UserMessage | None:
    """Return the message to an agent that goes on without one of a person, if it was told of another mode."""
    plans = approve == "plan"
    return engine_message(_kind(plans=plans)) if plans != was_planning else None


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def _kind(*, plans: bool) -> EngineMessageKind:
    return "as_plan" if plans else "plan_over"
