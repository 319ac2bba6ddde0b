"""The models that this machine could run: those of the catalogue, and files of other programs."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from errand.engine.local_models.catalogue import CatalogueModel
from errand.engine.local_models.found_files import FoundFile, find_files
from errand.engine.local_models.machine import Machine

# Sizes of the context that are tried, largest first; a larger one only costs memory that others may need.
_CONTEXTS = (32_768, 16_384, 8_192, 4_096)
# What the server takes beside the weights and the cache of keys and values: for itself, and for weights in the order
# that the processor reads fastest. Measured with 0.5 and 1.5 billion parameters: 0.1 and 0.7 GB.
_SERVER_BYTES = 300_000_000
_REORDERED_SHARE = 0.3
_MIN_PROMPT_TOKENS_PER_S = 15.0
# Of weights of four bits with their scales. Weights of more bits are fewer than this says.
_MIN_BYTES_PER_PARAMETER = 0.56


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model of the catalogue, or in a file of somebody else. `path` is the file, which may not be there yet.

    `active_share` of the weights is read for each token. `parameters` are billions, at most for files of others.
    """

    name: str
    path: Path
    size_bytes: int
    cache_bytes: int
    context_tokens: int
    active_share: float = 1.0
    calls_tools: bool = True
    parameters: float | None = None
    catalogue: CatalogueModel | None = None
    found_file: FoundFile | None = None

    def memory_bytes(self, context_tokens: int) -> int:
        weights_bytes = round(self.size_bytes * (1 + _REORDERED_SHARE))
        return weights_bytes + self.cache_bytes * context_tokens + _SERVER_BYTES

    @property
    def max_context(self) -> int:
        """The largest size of the context to use, in tokens, whatever the memory."""
        return self.context_tokens or _CONTEXTS[0]

    def largest_context(self, free_bytes: int) -> int:
        """Return the largest size of the context, in tokens, that fits into the memory; the smallest if none does."""
        fitting = (size for size in _CONTEXTS if self.memory_bytes(size) <= free_bytes)
        return min(self.max_context, next(fitting, _CONTEXTS[-1]))

    def fits(self, free_bytes: int) -> bool:
        """Return True if the model runs in this memory with the smallest context."""
        return self.memory_bytes(min(self.context_tokens or _CONTEXTS[-1], _CONTEXTS[-1])) <= free_bytes


@dataclass(frozen=True, slots=True)
class ModelsHere:
    """All models by name, and the names of those whose files are here."""

    entries: dict[str, ModelEntry]
    installed: frozenset[str]


def look_for_models(catalogue: Iterable[CatalogueModel], downloads: Path, home: Path, own_folder: str) -> ModelsHere:
    """Look for the files of the catalogue in the folder `downloads`, and for those of other programs.

    Reads the file system: call it in a thread.
    """
    entries = {model.name: _catalogue_entry(model, downloads) for model in catalogue}
    installed = {name for name, entry in entries.items() if _is_there(entry.path, entry.size_bytes)}
    for found_file in find_files(home, own_folder):
        name = found_file.name
        if name in entries:  # the same file may be somewhere else, too
            name = f"{name}-{found_file.source.replace('_', '-')}"
        entries[name] = ModelEntry(
            name=name,
            path=found_file.path,
            size_bytes=found_file.size_bytes,
            cache_bytes=found_file.facts.cache_bytes,
            context_tokens=found_file.facts.context_tokens,
            calls_tools=found_file.facts.calls_tools,
            parameters=found_file.size_bytes / _MIN_BYTES_PER_PARAMETER / 1e9,
            found_file=found_file,
        )
        installed.add(name)
    return ModelsHere(entries, frozenset(installed))


def recommended_model(entries: Iterable[ModelEntry], machine: Machine, running: str) -> str:
    """Return the best model of the catalogue that fits and reads a prompt fast enough here; empty for none.

    The one that is `running` fits, although its memory is not free.
    """
    fitting = [
        entry.name
        for entry in entries
        if entry.catalogue is not None
        and (entry.name == running or entry.fits(machine.memory_bytes))
        and machine.prompt_tokens_per_second(entry.catalogue.active_parameters) >= _MIN_PROMPT_TOKENS_PER_S
    ]
    return fitting[-1] if fitting else ""


def _catalogue_entry(model: CatalogueModel, downloads: Path) -> ModelEntry:
    return ModelEntry(
        name=model.name,
        path=downloads / model.name / model.file,
        size_bytes=model.size_bytes,
        cache_bytes=model.cache_bytes,
        context_tokens=model.context_tokens,
        active_share=model.active_parameters / model.parameters,
        parameters=model.parameters,
        catalogue=model,
    )


def _is_there(path: Path, size_bytes: int) -> bool:
    try:
        return path.stat().st_size == size_bytes
    except OSError:
        return False
