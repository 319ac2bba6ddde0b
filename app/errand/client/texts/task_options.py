"""What a task can be started with: thinking levels, approval modes, and the sandbox that bounds its commands."""

from errand.protocol.agents import ThinkingLevel
from errand.protocol.engine import SandboxStatus
from errand.protocol.tasks.groups import ApproveMode
from errand.text.translation import tr

THINKING_LEVELS: dict[ThinkingLevel, str] = {
    "off": tr("Off"),
    "minimal": tr("Minimal"),
    "low": tr("Low"),
    "medium": tr("Medium"),
    "high": tr("High"),
    "xhigh": tr("Highest"),
}

# Name and meaning of the approval modes, in the order in which clients show them.
APPROVAL_MODES: dict[ApproveMode, tuple[str, str]] = {
    "ask": (tr("Ask first"), tr("Asks before every action that changes something.")),
    "edits": (
        tr("Accept edits"),
        tr("Edits files in the working folder without asking. Asks before running commands."),
    ),
    "auto": (
        tr("Auto in the sandbox"),
        tr(
            "Edits files and runs commands in the sandbox without asking: they have no network and can only change the "
            "working folder. Asks about everything else."
        ),
    ),
    "plan": (tr("Plan"), tr("Read-only: the agent makes a plan and changes nothing.")),
    "all": (
        tr("Allow everything"),
        tr("Never asks. Commands run in a sandbox that can only change the working folder."),
    ),
    "never": (tr("Deny everything"), tr("Denies everything that would need your approval.")),
}

_AUTO_WITHOUT_SANDBOX = (
    tr("Auto, no sandbox"),
    tr("There is no sandbox on this machine: asks before running commands, like Accept edits."),
)
_WITHOUT_SANDBOX = (
    tr("Allow everything, no sandbox"),
    tr("Never asks. Commands have full access to your files and the network."),
)

# What a person confirms before everything is allowed, without and with a sandbox.
ALL_WARNINGS = {
    False: tr(
        "The agent won't ask again in this conversation. Commands run without a sandbox: they can change "
        "or delete any of your files and use the network."
    ),
    True: tr(
        "The agent won't ask again in this conversation. Commands run in a sandbox and can only change "
        "the working folder."
    ),
}


def approve_mode(word: str) -> ApproveMode | None:
    """Return the approval mode with that word; None if there is none."""
    return next((mode for mode in APPROVAL_MODES if mode == word), None)


def approval_mode_text(mode: ApproveMode, *, has_sandbox: bool) -> tuple[str, str]:
    """Name and meaning of an approval mode. `has_sandbox`: commands run in a sandbox on this machine."""
    if has_sandbox:
        return APPROVAL_MODES[mode]
    return {"all": _WITHOUT_SANDBOX, "auto": _AUTO_WITHOUT_SANDBOX}.get(mode, APPROVAL_MODES[mode])


def is_bounded(sandbox: SandboxStatus) -> bool:
    """Return True if commands run in a sandbox."""
    return sandbox.form != "none" and sandbox.mode != "off"


def sandbox_text(sandbox: SandboxStatus) -> str:
    """Return what bounds commands on this machine. The rarer cases have reasons that only the engine knows."""
    if sandbox.mode == "off":
        return tr("Commands run without a sandbox: the setting command_sandbox is off. They can do what you can do.")
    if sandbox.form != "bubblewrap":
        return sandbox.text
    looks = tr("Read-only commands may run outside the sandbox.") if sandbox.mode == "auto" else ""
    held = tr(
        "Commands run in a sandbox (bubblewrap): they can change only the workspace, /tmp and caches of their own, see "
        "neither keys nor other processes, and have the network only through Errand, if they have it."
    )
    return f"{held} {looks}".rstrip()
