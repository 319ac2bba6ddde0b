"""Models that run on this machine: what can be downloaded, what is there, and how far a download is."""

from typing import Literal

from errand.protocol.base import EmptyParams, EmptyResult, Method, Wire

# `folder` is the one that the person named in the setting `local_models_folder`.
LocalModelSource = Literal["catalogue", "folder", "lm_studio", "jan", "ollama", "gpt4all"]
LocalModelState = Literal["available", "preparing", "downloading", "checking", "installed", "failed"]


class LocalModel(Wire, frozen=True, kw_only=True):
    """A model in a file. `id` is `local/NAME`, as tasks name it.

    `source` `catalogue`: Errand downloads it; else it is used where another program has it. `received_bytes` of
    `size_bytes` are there, also of a download that was cancelled. One that is `available` with all its bytes lacks the
    program that runs it: `local_model/install` gets that, while the model is `preparing`. A `failed` one has
    a `problem`, and an `advice` what to do. `fits`: this machine has the memory for it now; `recommended` is the best
    one that also works fast enough here. `tokens_per_second` is measured if `measured`, else estimated. `running`: it
    is in memory now.
    """

    id: str
    title: str
    source: LocalModelSource
    state: LocalModelState
    size_bytes: int
    memory_bytes: int
    context_tokens: int = 0
    licence: str = ""
    good_for: str = ""
    path: str = ""
    received_bytes: int = 0
    problem: str = ""
    advice: str = ""
    fits: bool = True
    recommended: bool = False
    running: bool = False
    tokens_per_second: float = 0.0
    measured: bool = False


class LocalServerProgram(Wire, frozen=True, kw_only=True):
    """The program that runs the models, llama.cpp's server. `path` is empty if it is not there yet.

    It is downloaded with the first model then (`size_bytes`), if `available` for this system. Not `available` with a
    `path`: there is no program at the path that the person named.
    """

    path: str = ""
    size_bytes: int = 0
    available: bool = True


class LocalModelListResult(Wire, frozen=True, kw_only=True):
    """`memory_bytes` can be used now, `disk_bytes` are free in `folder`, where downloads go."""

    models: tuple[LocalModel, ...]
    program: LocalServerProgram
    memory_bytes: int
    disk_bytes: int
    folder: str


class LocalModelParams(Wire, frozen=True, kw_only=True):
    """A model by its id, `local/NAME`."""

    id: str


LOCAL_MODEL_LIST = Method(
    "local_model/list", EmptyParams, LocalModelListResult, False, "List models that can run on this machine."
)

LOCAL_MODEL_INSTALL = Method(
    "local_model/install",
    LocalModelParams,
    EmptyResult,
    True,
    "Begin or resume the download of a model, and of the program that runs it. `localModelUpdate` says how far it is.",
)

LOCAL_MODEL_CANCEL = Method(
    "local_model/cancel",
    LocalModelParams,
    EmptyResult,
    True,
    "Cancel a download; what has come stays for the next try.",
)

LOCAL_MODEL_REMOVE = Method(
    "local_model/remove", LocalModelParams, EmptyResult, True, "Delete the files of a model that Errand downloaded."
)

METHODS = (LOCAL_MODEL_LIST, LOCAL_MODEL_INSTALL, LOCAL_MODEL_CANCEL, LOCAL_MODEL_REMOVE)
