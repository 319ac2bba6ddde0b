"""The tree of a conversation as lines: a branch goes straight down, forks are drawn as lanes. Pure."""

from dataclasses import dataclass

import msgspec

from errand.cli.terminal.style import Style
from errand.cli.terminal.text import columns, escape_hidden_line, one_line, short_id
from errand.protocol.conversations import ConversationTreeResult, TreeNode
from errand.text.translation import tr, trn

_MAX_LANES = 12
_COMPLETES = "task_complete"  # the text of a reply that is nothing but this call
_LANE_SIGNS = {True: ("├ ", "└ ", "│ "), False: ("+ ", "` ", "| ")}
_NARROWEST_TEXT = 20


@dataclass(frozen=True, slots=True)
class _Place:
    """A node to draw: what stands before it, and before what follows it."""

    node: TreeNode
    before: str
    below: str


def tree_lines(found: ConversationTreeResult, style: Style, width: int) -> list[str]:
    """One line for each message, and for the replies to it without a fork between them: id, who, text, heads."""
    children: dict[str | None, list[TreeNode]] = {}
    for node in found.nodes:
        children.setdefault(node.parent_id, []).append(node)
    heads: dict[str | None, list[str]] = {}
    names = {agent.id: one_line(escape_hidden_line(agent.name), 40) for agent in found.agents}
    for head in found.heads:
        heads.setdefault(head.node_id, []).append(names.get(head.agent_id, ""))
    speakers = {task.id: names.get(task.agent_id, "") for task in found.tasks}
    summaries = {task.id: task.outcome.summary for task in found.tasks}
    fork, last, lane = _LANE_SIGNS[style.unicode]
    lines: list[str] = []
    waiting = _below(children.get(None, []), "", (fork, last, lane))
    while waiting:
        branch = waiting.pop()
        node, turns = _folded(branch.node, children, heads)
        if node.text == _COMPLETES and (summary := summaries.get(node.task_id or "")):
            node = msgspec.structs.replace(node, text=summary)
        lines.append(_line(branch.before, node, turns, speakers, heads.get(node.id, []), style, width))
        waiting += _below(children.get(node.id, []), branch.below, (fork, last, lane))
    return lines


def _below(nodes: list[TreeNode], lanes: str, signs: tuple[str, str, str]) -> list[_Place]:
    """Return the places of siblings, the first one last, which is drawn next."""
    if len(nodes) == 1 or len(lanes) >= 2 * _MAX_LANES:
        return [_Place(node, lanes, lanes) for node in reversed(nodes)]
    fork, last, lane = signs
    branches = [_Place(node, lanes + fork, lanes + lane) for node in nodes[:-1]]
    branches += [_Place(node, lanes + last, f"{lanes}  ") for node in nodes[-1:]]
    return branches[::-1]


def _folded(
    node: TreeNode, children: dict[str | None, list[TreeNode]], heads: dict[str | None, list[str]]
) -> tuple[TreeNode, int]:
    """Return the last reply of a task that follows this one without a fork or a head between, and how many there
    are.
    """
    turns = 1
    while node.role == "assistant" and node.id not in heads and len(after := children.get(node.id, [])) == 1:
        if after[0].role != "assistant" or after[0].task_id != node.task_id:
            break
        node, turns = after[0], turns + 1
    return node, turns


def _line(
    before: str, node: TreeNode, turns: int, speakers: dict[str, str], heads: list[str], style: Style, width: int
) -> str:
    who = tr("you") if node.role == "user" else speakers.get(node.task_id or "", "") or tr("agent")
    if node.task_from:
        who = tr("task from {task_from}").format(task_from=one_line(escape_hidden_line(node.task_from), 40))
    facts = [trn("{n} turn", "{n} turns", turns)] if turns > 1 else []
    facts += [{"failed": tr("failed"), "cut": tr("cut off")}[node.status]] if node.status in ("failed", "cut") else []
    here = f"{style.sign('back')} {', '.join(heads)}" if heads else ""
    tail = style.join(*facts, here)
    start = f"{short_id(node.id)}  {before}{who}: "
    room = max(_NARROWEST_TEXT, width - columns(start) - columns(tail) - 2)
    text = one_line(escape_hidden_line(node.text), room)
    painted = f"{style.dim(short_id(node.id))}  {style.dim(before)}{style.bold(who)}: {text}"
    return f"{painted}  {style.amber(tail)}" if tail else painted
