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
    found: list[str] = []
    for profile in profiles:
        playing = asyncio.create_task(play(case.scenario, profile))
        await asyncio.wait([playing], timeout=_SECONDS)
        name = f"{case.scenario.name} [{profile}]"
        if not playing.done():
            playing.cancel()
            await asyncio.wait([playing])
            found.append(f"{name}: did not end within {_SECONDS:.0f} s")
        elif failure := playing.exception():
            found.append(f"{name}: raised {failure!r}")
        elif difference := first_difference(playing.result(), case.expected[profile]):
            found.append(f"{name}: {difference}")
    return found


def check(raw: msgspec.Raw, wanted: Sequence[Profile]) -> list[str] | None:
    """The differences of one scenario; None if it has no expectation for the wanted profiles."""
    try:
        case = msgspec.json.decode(raw, type=Case)
    except msgspec.ValidationError as error:
        return [f"a scenario cannot be read: {error}"]
    profiles: list[Profile] = [profile for profile in wanted if profile in case.expected]
    return asyncio.run(differences(case, profiles)) if profiles else None


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.loop", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--profile", choices=PROFILES)
    options = parser.parse_args(arguments)
    wanted: list[Profile] = [profile for profile in PROFILES if options.profile in (None, profile)]
    failed = passed = 0
    for raw in read(options.file):
        found = check(raw, wanted)
        if found is None:
            continue
        sys.stdout.write("".join(f"{line}\n" for line in found))
        failed, passed = failed + bool(found), passed + (not found)
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
