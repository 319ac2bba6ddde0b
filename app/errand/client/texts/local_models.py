"""What clients say about a model that runs on this machine."""

from errand.client.number_format import file_size
from errand.protocol.local_models import LocalModel, LocalModelListResult, LocalModelSource
from errand.text.translation import marked, tr

_SOURCES: dict[LocalModelSource, str] = {
    "catalogue": "",
    "folder": marked("in your folder of models"),
    "lm_studio": marked("in place, from LM Studio"),
    "jan": marked("in place, from Jan"),
    "ollama": marked("in place, from Ollama"),
    "gpt4all": marked("in place, from GPT4All"),
}


def is_under_way(model: LocalModel) -> bool:
    """Return True while something is downloaded for the model."""
    return model.state in ("preparing", "downloading", "checking")


def facts_text(model: LocalModel) -> str:
    """Return size, licence, memory and speed in a line."""
    speed = tr("{speed:.0f} tokens/s measured") if model.measured else tr("about {speed:.0f} tokens/s")
    parts = (
        file_size(model.size_bytes),
        model.licence,
        tr("needs {memory} of memory").format(memory=file_size(model.memory_bytes)),
        speed.format(speed=max(1.0, model.tokens_per_second)),
        tr(source) if (source := _SOURCES[model.source]) else "",
    )
    return " · ".join(part for part in parts if part)


def state_text(model: LocalModel) -> str:
    """Return how far the model is, with what is wrong; empty if it can be downloaded."""
    match model.state:
        case "preparing":
            return tr("getting llama.cpp's server, which runs it")
        case "downloading":
            return tr("{received} of {size}").format(
                received=file_size(model.received_bytes), size=file_size(model.size_bytes)
            )
        case "checking":
            return tr("checking the file")
        case "installed":
            return tr("in memory") if model.running else tr("installed")
        case "failed":
            return f"{model.problem} {model.advice}"
        case "available":
            if model.received_bytes == model.size_bytes:
                return tr("llama.cpp's server is missing")
            if model.received_bytes:
                return tr("{received} of {size} are there").format(
                    received=file_size(model.received_bytes), size=file_size(model.size_bytes)
                )
            return "" if model.fits else tr("needs more memory than is free")


def program_text(listing: LocalModelListResult) -> str:
    """Return what runs the models, or what is missing for it."""
    program = listing.program
    if not program.available and program.path:
        return tr("There is no program {path}. Correct the setting llama_server, or empty it.").format(
            path=program.path
        )
    if not program.available:
        return tr(
            "There is no release of llama.cpp for this system. Install it yourself, or name llama-server in the "
            "settings."
        )
    if program.path:
        return tr("Models are run by {path}.").format(path=program.path)
    return tr("llama.cpp's server ({size}) comes with the first model.").format(size=file_size(program.size_bytes))
