"""Finds GGUF files of other programs and of the person's folder. They are used in place, and never changed."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec

from errand.engine.local_models.gguf import GgufFacts, NotGguf, read_facts
from errand.protocol.local_models import LocalModelSource

_MAX_FILES = 200
_MAX_FOLDERS = 2_000
_MAX_MANIFEST_BYTES = 100_000
_MODEL_LAYER = "application/vnd.ollama.image.model"
_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]+")
# The first of several parts, which llama.cpp loads with the others; and the later ones.
_FIRST_PART = re.compile(r"-0*1-of-(\d+)$")
_LATER_PART = re.compile(r"-\d{5}-of-\d{5}$")
_PROJECTOR = re.compile(r"mmproj", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A model in a file of somebody else; `size_bytes` is that of all its parts."""

    name: str
    path: Path
    size_bytes: int
    source: LocalModelSource
    facts: GgufFacts


class _Layer(msgspec.Struct):
    digest: str
    media_type: str = msgspec.field(name="mediaType")


class _Manifest(msgspec.Struct):
    layers: list[_Layer]


def find_files(home: Path, own_folder: str) -> tuple[FoundFile, ...]:
    """Return the models of other programs below `home` and in the person's folder, each file once.

    Reads the file system: call it in a thread.
    """
    found_files: dict[str, FoundFile] = {}
    seen: set[Path] = set()
    for source, name, path in _candidates(home, own_folder):
        if len(found_files) >= _MAX_FILES:
            break
        with suppress(OSError, NotGguf):
            real = path.resolve()
            if real in seen:
                continue
            seen.add(real)
            facts = read_facts(real)
            if not facts.is_for_chat:
                continue
            size_bytes = sum(part.stat().st_size for part in _parts(path))
            unique = name if name not in found_files else f"{name}-{source.replace('_', '-')}"
            found_files.setdefault(unique, FoundFile(unique, path, size_bytes, source, facts))
    return tuple(found_files.values())


def _candidates(home: Path, own_folder: str) -> Iterator[tuple[LocalModelSource, str, Path]]:
    """Yield the source, a name and the path of each file that may be a model."""
    data = home / ("Library/Application Support" if sys.platform == "darwin" else ".local/share")
    folders: list[tuple[LocalModelSource, Path]] = [
        ("lm_studio", home / ".lmstudio" / "models"),
        ("lm_studio", home / ".cache" / "lm-studio" / "models"),
        ("jan", data / "Jan" / "data" / "llamacpp" / "models"),
        ("jan", home / ".config" / "Jan" / "data" / "llamacpp" / "models"),
        ("jan", home / "jan" / "models"),
        ("gpt4all", data / "nomic.ai" / "GPT4All"),
    ]
    if own_folder:
        folders.insert(0, ("folder", Path(own_folder).expanduser()))
    for source, folder in folders:
        for path in _gguf_files(folder):
            yield source, _name_of(path), path
    yield from _ollama_files(home / ".ollama" / "models")


def _gguf_files(folder: Path) -> Iterator[Path]:
    for path in _files(folder):
        is_first = _FIRST_PART.search(path.stem) is not None
        is_later = not is_first and _LATER_PART.search(path.stem) is not None
        if path.suffix == ".gguf" and not _PROJECTOR.search(path.name) and not is_later and path.is_file():
            yield path


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder in order; a person may have named one with all that they have."""
    for count, (parent, folders, names) in enumerate(os.walk(folder)):
        if count == _MAX_FOLDERS:
            return
        folders.sort()
        yield from (Path(parent, name) for name in sorted(names))


def _ollama_files(folder: Path) -> Iterator[tuple[LocalModelSource, str, Path]]:
    """Yield the models of Ollama: its manifests name the blobs."""
    for path in _files(folder / "manifests"):
        with suppress(OSError, msgspec.MsgspecError):
            if not path.is_file() or path.stat().st_size > _MAX_MANIFEST_BYTES:
                continue
            manifest = msgspec.json.decode(path.read_bytes(), type=_Manifest)
            digest = next(layer.digest for layer in manifest.layers if layer.media_type == _MODEL_LAYER)
            tag = "" if path.name == "latest" else f"-{path.name}"
            yield "ollama", _plain(f"{path.parent.name}{tag}"), folder / "blobs" / digest.replace(":", "-")


def _name_of(path: Path) -> str:
    """Return the name of a file; Jan calls all its files model.gguf, in folders with the name."""
    stem = path.parent.name if path.stem == "model" else path.stem
    return _plain(_FIRST_PART.sub("", stem))


def _plain(text: str) -> str:
    return _NOT_IN_NAMES.sub("-", text.lower()).strip("-.") or "model"


def _parts(path: Path) -> tuple[Path, ...]:
    first = _FIRST_PART.search(path.stem)
    if first is None:
        return (path,)
    beginning = path.stem[: first.start()]
    return tuple(path.parent.glob(f"{beginning}-*-of-{first.group(1)}.gguf"))
