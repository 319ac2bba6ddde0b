"""Runs a conformance file through our Agent: `python -m tests.conformance.loop FILE [--profile modern|seed]`."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.conformance.compare import first_difference
from tests.conformance.play import play
from tests.conformance.scenario import PROFILES, Case, Profile

_SECONDS = 30.0


class _File(msgspec.Struct, frozen=True):
    scenarios: list[msgspec.Raw]


def read(path: Path) -> list[msgspec.Raw]:
    """The undecoded scenarios of a file: one that cannot be decoded must not hide the others."""
    return msgspec.json.decode(path.read_bytes(), type=_File).scenarios


async def differences(case: Case, profiles: Sequence[Profile]) -> list[str]:
    """The differences, at most one text per profile."""
    problems: list[str] = []
    for profile in profiles:
        playing = asyncio.create_task(play(case.scenario, profile))
        await asyncio.wait([playing], timeout=_SECONDS)
        name = f"{case.scenario.name} [{profile}]"
        if not playing.done():
            playing.cancel()
            await asyncio.wait([playing])
            problems.append(f"{name}: did not end within {_SECONDS:.0f} s")
        elif failure := playing.exception():
            problems.append(f"{name}: raised {failure!r}")
        elif difference := first_difference(playing.result(), case.expected[profile]):
            problems.append(f"{name}: {difference}")
    return problems


def check(raw: msgspec.Raw, selected: Sequence[Profile]) -> list[str] | None:
    """The differences of one scenario; None if it has no expectation for the wanted profiles."""
    try:
        case = msgspec.json.decode(raw, type=Case)
    except msgspec.ValidationError as error:
        return [f"a scenario cannot be read: {error}"]
    profiles: list[Profile] = [profile for profile in selected if profile in case.expected]
    return asyncio.run(differences(case, profiles)) if profiles else None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.loop", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--profile", choices=PROFILES)
    options = parser.parse_args(arguments)
    profiles: list[Profile] = [profile for profile in PROFILES if options.profile in (None, profile)]
    failed = passed = 0
    for raw in read(options.file):
        problems = check(raw, profiles)
        if problems is None:
            continue
        sys.stdout.write("".join(f"{line}\n" for line in problems))
        failed, passed = failed + bool(problems), passed + (not problems)
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
