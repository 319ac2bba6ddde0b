"""What a person is offered to allow from now on when a call is asked about, each with what it covers and what not.

An offer is made only if the policy itself says that the call would be allowed with it.
"""

import shlex
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from errand.engine.permissions.addresses import host_of, is_by_number
from errand.engine.permissions.call_policy import is_of_call
from errand.engine.permissions.call_rules import ANY_TOOL, CODE, bound_call
from errand.engine.permissions.command_rules import inner_words
from errand.engine.permissions.policy import Decision
from errand.engine.permissions.programs.prefixes import other_call, other_command, proposed_prefix
from errand.engine.permissions.programs.risky_flags import risky_flags_of
from errand.engine.tools.base import Access
from errand.protocol.asks import GrantedCall, GrantOffer, GrantScope
from errand.system.regular_file import real_path
from errand.text.visible_text import command_text

# The policy's verdict on a call if these were granted.
Judge: TypeAlias = Callable[[Access, frozenset[GrantedCall]], Decision]

_HERE: tuple[GrantScope, ...] = ("conversation", "workspace")
_MAX_PREFIXES = 5
_MAX_TEXT_LENGTH = 200


def offers_for(access: Access, decision: Decision, workspace: str, judge: Judge) -> tuple[GrantOffer, ...]:
    """Return the offers for a call that the policy asks about, the narrowest first."""
    if decision.verdict != "ask" or decision.risk == "high":
        return ()
    if access.command is not None:
        offers = _of_command(access, decision, workspace, judge)
    elif is_of_call(access):
        offers = _of_call(access, decision)
    else:
        offers = _of_file(access, decision, workspace)
    return tuple(offer for offer in offers if judge(access, frozenset(offer.calls)).verdict == "allow")


def _of_command(access: Access, decision: Decision, workspace: str, judge: Judge) -> Iterator[GrantOffer]:
    line = access.command or ""
    if decision.grantable is not None:
        yield GrantOffer(
            kind="exact",
            calls=(decision.grantable,),
            scopes=_HERE,
            covers=f"Exactly this command, in {decision.grantable.working_dir}.",
            example=_short(line),
            not_covered=_short(f"{line} --help"),
        )
    prefixes = _prefixes(access, decision, judge)
    if prefixes:
        real = real_path(workspace)
        calls = tuple(GrantedCall(operation="run", prefix=prefix, working_dir=real) for prefix in prefixes)
        beginnings = " or ".join(f"`{command_text(prefix)} …`" for prefix in prefixes)
        more = "" if len(prefixes) == 1 else ", each alone or together"
        example, against = _examples(access, prefixes, frozenset(calls), judge)
        yield GrantOffer(
            kind="prefix",
            calls=calls,
            scopes=(*_HERE, "user"),
            covers=f"Commands that begin with {beginnings}{more}, on files of the workspace.",
            example=_short(example),
            not_covered=_short(against),
        )


def _prefixes(access: Access, decision: Decision, judge: Judge) -> tuple[tuple[str, ...], ...]:
    """One beginning for each command of the line that asks; none if that is unclear for one of them."""
    runs = decision.parsed.runs if decision.parsed is not None else ()
    prefixes: list[tuple[str, ...]] = []
    for argv in runs:
        if _only_looks(argv, access, judge):
            continue
        prefix = proposed_prefix(argv)
        if not prefix:
            return ()
        prefixes.append(prefix)
    unique = tuple(dict.fromkeys(prefixes))
    return unique if len(unique) <= _MAX_PREFIXES else ()


def _only_looks(words: tuple[str, ...], access: Access, judge: Judge) -> bool:
    return judge(replace(access, command=shlex.join(words)), frozenset()).only_looks


def _examples(
    access: Access, prefixes: tuple[tuple[str, ...], ...], calls: frozenset[GrantedCall], judge: Judge
) -> tuple[str, str]:
    """Return a command that these grants cover and one that they do not, as the policy says."""

    def is_allowed(line: str) -> bool:
        return judge(replace(access, command=line), calls).verdict == "allow"

    prefix, line = prefixes[0], access.command or ""
    command, other = shlex.join(prefix), other_call(prefix)
    covered = (f"{command} {other}" if other else "", f"{command} -v", f"{command} --help", command, line)
    flags = (f"{command} {flag}" for flag in risky_flags_of(inner_words(prefix)))
    against = (shlex.join(other_command(prefix)), *flags, f"{command} > other.txt", f"{command} | sh")
    return (
        next((text for text in covered if text and text != line and is_allowed(text)), line),
        next((text for text in against if text and not is_allowed(text)), ""),
    )


def _of_call(access: Access, decision: Decision) -> Iterator[GrantOffer]:
    if access.address:
        host = host_of(access.address)
        yield GrantOffer(
            kind="host",
            calls=(GrantedCall(host=host),),
            scopes=(*_HERE, "user"),
            covers=f"Addresses of {host}, and what is done on its pages, by the browser and by fetches.",
            example=f"https://{host}/",
            not_covered="" if is_by_number(access.address) else f"https://other.{host}/",
        )
    if decision.grantable is not None:
        yield GrantOffer(
            kind="exact",
            calls=(decision.grantable,),
            scopes=_HERE,
            covers="Exactly this call, with the arguments shown." if access.service else "Exactly this code.",
        )
    if access.service:
        server, _, tool = access.service.partition("/")
        yield GrantOffer(
            kind="tool",
            calls=(bound_call(GrantedCall(operation=access.operation, service=access.service), access),),
            scopes=(*_HERE, "user"),
            covers=f"Any call of {tool} of the server {server}, whatever its arguments, until the server changes it.",
            not_covered=f"any other tool of {server}",
        )
        yield GrantOffer(
            kind="server",
            calls=(bound_call(GrantedCall(operation=access.operation, service=f"{server}/{ANY_TOOL}"), access),),
            scopes=(*_HERE, "user"),
            covers=f"Any call of the tools that the server {server} has now, until it changes them.",
            not_covered=f"tools that {server} adds later, tools of other servers",
        )
    if access.code and not access.address:
        yield GrantOffer(
            kind="code",
            calls=(GrantedCall(operation=CODE),),
            scopes=_HERE,
            covers=f"Any {access.language} code that this tool runs in its sandbox.",
            not_covered="code that commands run",
        )


def _of_file(access: Access, decision: Decision, workspace: str) -> Iterator[GrantOffer]:
    if decision.grantable is not None:
        yield GrantOffer(
            kind="exact",
            calls=(decision.grantable,),
            scopes=_HERE,
            covers=f"This again: {decision.grantable.operation} {decision.grantable.path}.",
            example=f"{decision.grantable.operation} {decision.grantable.path}",
            not_covered=f"{decision.grantable.operation} {_sibling(decision.grantable.path or '')}",
        )
    if len(access.writes) != 1 or access.reads:
        return
    path, folder = str(access.writes[0]), str(access.writes[0].parent)
    if access.operation == "write" and access.content and not access.is_partial:
        yield GrantOffer(
            kind="content",
            calls=(GrantedCall(operation=access.operation, path=path, content=access.content),),
            scopes=_HERE,
            covers=f"Writing {path} with exactly the content shown.",
            example=f"write {path}, the same content",
            not_covered=f"write {path}, any other content",
        )
    if access.operation in ("write", "patch"):
        yield GrantOffer(
            kind="file",
            calls=(GrantedCall(operation="edit", path=path),),
            scopes=_HERE,
            covers=f"Any change of {path}, whatever its content.",
            example=f"write {path}, any other content",
            not_covered=f"write {_sibling(path)}",
        )
    for root in dict.fromkeys((folder, real_path(workspace))):
        yield GrantOffer(
            kind="folder",
            calls=(GrantedCall(operation="edit", folder=root),),
            scopes=_HERE,
            covers=f"Any change of files in {root} and below, whatever their content.",
            example=f"write {_sibling(path)}",
            not_covered=f"write {Path(root) / '.env'}, because it may hold a secret",
        )


def _sibling(path: str) -> str:
    file = Path(path)
    return str(file.with_name(f"other{file.suffix}" if file.stem != "other" else f"another{file.suffix}"))


def _short(text: str) -> str:
    return text if len(text) <= _MAX_TEXT_LENGTH else f"{text[:_MAX_TEXT_LENGTH]} …"
