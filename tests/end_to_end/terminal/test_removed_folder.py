"""Commands in a folder that was removed."""

import pytest

from tests.support.command_line import Errand

_IN_A_REMOVED_FOLDER = ("sh", "-c", 'd=$(mktemp -d) && cd "$d" && rmdir "$d" && exec "$@"', "sh")


@pytest.mark.parametrize(
    "arguments",
    [
        ("import", "x"),
        ("export", "--to", "x"),
        ("backup", "--to", "x"),
        ("restore", "x"),
        ("explain", "ls"),
        ("prompt",),
    ],
    ids=lambda arguments: arguments[0],
)
async def test_a_folder_that_is_gone_is_named_in_a_sentence(errand: Errand, arguments: tuple[str, ...]) -> None:
    there = Errand(errand.home, errand.folder, _IN_A_REMOVED_FOLDER)
    done = await there.run(*arguments)
    assert done.code in (1, 2)
    assert "Traceback" not in done.err and "Errno" not in done.err
    assert done.err.startswith("errand: ") and done.err.endswith(".\n")
