"""The sentences about the embedding model, without which memory is searched by a simple one, or by words alone."""

from errand.client.number_format import file_size
from errand.protocol.memory import EmbeddingModel
from errand.text.translation import tr


def finds_meanings(model: EmbeddingModel) -> bool:
    """Return True if memory is searched by meaning, by whichever model."""
    return model.status == "ready" or model.has_simple


def offer_text(model: EmbeddingModel) -> str:
    """Return what search by meaning needs, or how it gets better, and from where."""
    if model.has_simple:
        template = tr("Search by meaning uses a simple built-in model. A better one is a {size} download from {hosts}.")
    else:
        template = tr("Search by meaning needs a {size} download from {hosts}.")
    return template.format(size=file_size(model.total - model.done), hosts=tr(" or ").join(model.hosts))


def multilingual_text() -> str:
    """Return what helps a person who writes in other languages than English."""
    return tr(
        "Much of what you write isn't English, which the model reads best. For other languages, put the files of "
        "{address} into a folder, and name it in the setting “Embedding model”."
    ).format(address="https://huggingface.co/Qdrant/paraphrase-multilingual-MiniLM-L12-v2-onnx-Q")


def download_text(model: EmbeddingModel) -> str:
    """Return how far the download is."""
    if not model.total:
        return tr("Downloading the embedding model…")
    return tr("Downloading the embedding model: {done} of {total}").format(
        done=file_size(model.done), total=file_size(model.total)
    )


def percent_done(done: int, left: int) -> int:
    """Return the percentage that is done, never 100 while something is left."""
    return 100 * done // (done + left) if done + left else 100
