"""Tasks as they were stored before revision 0016, and written to files of that time: one object without groups."""

from errand.protocol.base import JsonObject

# Written out, and as it was then: later changes of the groups are changes of what this makes.
_GROUPS = {
    "request": ("prompt model workspace apiBase network thinkingLevel answerSchema tools ownKey summarises"),
    "origin": "parentId depth title callId callTurn follows",
    "options": "mode decided approve attended",
    "budget": "maxTurns budgetUsd maxMinutes maxTokens allowance near",
    "activity": ("status detail currentTool calls attempt askId stopping pausing retryAt limitedAt resumes workedS"),
    "progress": "stepCount messages refusedCalls actingCalls usage delegated delegatedTurns summarised workingDir",
    "outcome": "stopReason completion summary error answer endedAt",
}
_GROUP_OF = {name: group for group, names in _GROUPS.items() for name in names.split()}


def grouped_task(task: JsonObject) -> JsonObject:
    """Return the task with its fields in groups. One that has groups stays as it is; unknown fields stay outside."""
    if isinstance(task.get("activity"), dict):
        return task
    grouped: JsonObject = {}
    groups: dict[str, JsonObject] = {group: {} for group in _GROUPS}
    for old_name, value in task.items():
        name = "detail" if old_name == "activity" else old_name
        if name in _GROUP_OF:
            groups[_GROUP_OF[name]][name] = value
        else:
            grouped[name] = value
    return {**grouped, **groups}
