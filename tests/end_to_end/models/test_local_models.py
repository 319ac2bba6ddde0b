"""A model on this machine, from the command line: found in a folder, used by a task, gone with the engine."""

import json
import os
import signal
from pathlib import Path

from tests.support.command_line import Errand
from tests.support.local_models import gguf, stand_in_program
from tests.support.processes import is_alive, until


async def _prepared(errand: Errand, tmp_path: Path) -> Path:
    """Set a folder with one model and the stand-in program; return the file with a line for each start."""
    errand.environment["HOME"] = str(tmp_path)  # no files of other programs
    log, folder = tmp_path / "starts", tmp_path / "models"
    folder.mkdir()
    (folder / "My-Model.gguf").write_bytes(gguf(padding=b"x"))
    program = stand_in_program(tmp_path / "bin", "--log", str(log))
    for name, value in (("local_models_folder", folder), ("llama_server", program)):
        assert (await errand.run("settings", "set", name, str(value))).code == 0
    return log


async def test_without_a_key_tasks_use_the_model_of_this_machine(own_errand: Errand, tmp_path: Path) -> None:
    log = await _prepared(own_errand, tmp_path)
    listing = await own_errand.run("models", "installed", "--json")
    assert [(model["id"], model["source"]) for model in listing.lines] == [("local/my-model", "folder")]
    installed = await own_errand.run("models", "install", "my-model")
    assert (installed.code, "is installed. Use it" in installed.out) == (0, True)
    done = await own_errand.run("run", "--json", "who are you?")
    assert done.code == 0, done.err
    assert "I am my-model." in done.out
    (start,) = (json.loads(line) for line in log.read_text().splitlines())
    endpoint = json.loads((own_errand.home / "run" / "engine.json").read_text())
    os.kill(endpoint["pid"], signal.SIGKILL)
    await until(lambda: not is_alive(start["pid"]))


async def test_what_can_be_installed_is_listed(own_errand: Errand) -> None:
    listing = await own_errand.run("models", "install")
    assert listing.code == 0
    assert "Apache-2.0" in listing.out
    assert "GB of memory" in listing.out
    misspelt = await own_errand.run("models", "install", "qwen3-4b-2570")
    assert misspelt.code == 2
    assert "qwen3-4b-2507" in misspelt.err


async def test_the_tasks_of_the_tour_run_for_real(own_errand: Errand, tmp_path: Path) -> None:
    await _prepared(own_errand, tmp_path)
    played = await own_errand.run("tour", "--model", "local/my-model")
    assert played.out.count("I am my-model.") >= 3
    assert "Replies come from a script" not in played.out
    assert "local/my-model" in played.out
