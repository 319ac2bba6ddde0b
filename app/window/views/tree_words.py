"""A line of the tree in words: its title, the line under it, and what a screen reader says."""

from app.client.figures import money
from app.protocol.usage import Usage
from app.window.stores.tree_lines import TreeLine
from app.window.widgets.state_dot import WORDS, state_of


def title_of(line: TreeLine) -> str:
    return line.text or ("Writing…" if line.status == "streaming" else "(no text)")


def detail_of(line: TreeLine) -> str:
    """Where it stands in a fork, who wrote it, how many turns follow, and the money of the tasks that began here."""
    return " · ".join(_details(line))


def _details(line: TreeLine) -> tuple[str, ...]:
    place = f"{line.number} of {line.count}" if line.count else ""
    who = "You" if line.role == "user" else "Reply"
    return tuple(part for part in (place, who, _turns(line), _money(line)) if part)


def spoken(line: TreeLine) -> str:
    states = [WORDS[state_of(line.tasks[-1])]] if line.tasks else []
    heads = [f"{speaker.name} stands here" for speaker in line.heads]
    where = "here now" if line.is_head else "in front" if line.is_in_front else "in another branch"
    return ", ".join((title_of(line), *_details(line), *states, *heads, where))


def _turns(line: TreeLine) -> str:
    """A reply alone is no news: it is the line itself."""
    if line.role == "assistant" and line.turns == 1:
        return ""
    return f"{line.turns} {'turn' if line.turns == 1 else 'turns'}" if line.turns else ""


def _money(line: TreeLine) -> str:
    costs = [task.usage.cost_usd for task in line.tasks if task.usage.cost_usd is not None]
    return money(Usage(cost_usd=sum(costs))) if costs else ""
