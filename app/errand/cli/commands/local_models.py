"""`errand models install`, `installed` and `remove`: models that run on this machine."""

import asyncio
from contextlib import suppress

from errand.cli.arguments import UsageError
from errand.cli.exit_codes import EXIT_ERROR, CommandError
from errand.cli.output import CommandOutput
from errand.cli.parser import did_you_mean
from errand.cli.terminal.style import Style
from errand.cli.terminal.text import plain, wrapped
from errand.client.connection import Connection
from errand.client.errors import CallError, ConnectionLost
from errand.client.subscription import ConnectionDown, ConnectionMessage, ConnectionRestored
from errand.client.texts.local_models import facts_text, is_under_way, program_text, state_text
from errand.protocol.base import EmptyParams
from errand.protocol.events import EventRecord, LocalModelUpdate
from errand.protocol.local_models import (
    LOCAL_MODEL_CANCEL,
    LOCAL_MODEL_INSTALL,
    LOCAL_MODEL_LIST,
    LOCAL_MODEL_REMOVE,
    LocalModel,
    LocalModelListResult,
    LocalModelParams,
    LocalModelState,
)
from errand.text.translation import tr

_PREFIX = "local/"
_CANCEL_S = 3.0
# A line for each share of a download, where lines stay.
_PERCENT_PER_LINE = 10


async def list_local_models(connection: Connection, output: CommandOutput, *, installed: bool) -> None:
    """Print the models that are here, or those that can be downloaded, too."""
    listing = await connection.call(LOCAL_MODEL_LIST, EmptyParams())
    models = [model for model in listing.models if model.state == "installed" or not installed]
    if installed:
        empty = tr("No models on this machine yet. See what there is: errand models install")
        output.each(models, lambda model: _lines(model, output.style, output.width), empty=empty)
        return
    hint = tr("Install one: errand models install NAME")
    lines = [line for model in models for line in _lines(model, output.style, output.width)]
    output.result(listing, *lines, "", wrapped(plain(program_text(listing)), output.width), hint)


def _lines(model: LocalModel, style: Style, width: int) -> list[str]:
    name = style.bold(plain(model.id.removeprefix(_PREFIX)))
    mark = f" {style.green(tr('recommended for this machine'))}" if model.recommended else ""
    state = plain(state_text(model))
    texts = [tr(model.good_for) if model.good_for else "", facts_text(model)]
    return [
        f"{name}{mark}{f'  {style.dim(state)}' if state else ''}",
        *(f"  {style.dim(wrapped(plain(text), width - 2))}" for text in texts if text),
    ]


async def install_local_model(connection: Connection, name: str, output: CommandOutput) -> int:
    """Download a model and show how far it is. Leaving it cancels the download; what has come is kept."""
    download = _Download(connection, await _find(connection, name), output)
    return await download.run()


async def remove_local_model(connection: Connection, name: str, output: CommandOutput) -> None:
    model = await _find(connection, name)
    params = LocalModelParams(id=model.id)
    await connection.call(LOCAL_MODEL_REMOVE, params)
    output.result(params, tr("{name} was removed.").format(name=plain(model.title)))


async def _find(connection: Connection, name: str) -> LocalModel:
    listing = await connection.call(LOCAL_MODEL_LIST, EmptyParams())
    model = _model(listing, f"{_PREFIX}{name.removeprefix(_PREFIX)}")
    if model is None:
        names = [model.id.removeprefix(_PREFIX) for model in listing.models]
        raise UsageError(
            tr("There is no model {name!r} for this machine.{hint} See: errand models install").format(
                name=name, hint=did_you_mean(name, names)
            )
        )
    return model


def _model(listing: LocalModelListResult, model_id: str) -> LocalModel | None:
    return next((model for model in listing.models if model.id == model_id), None)


class _Download:
    """One download, from its start to its end."""

    def __init__(self, connection: Connection, model: LocalModel, output: CommandOutput) -> None:
        self._connection = connection
        self._model = model
        self._output = output
        self._changed = asyncio.Event()
        self._is_stale = False
        self._last_stage: tuple[LocalModelState, int] | None = None

    async def run(self) -> int:
        unsubscribe = self._connection.subscribe(self._on_message)
        await self._connection.subscribe_scope()
        params = LocalModelParams(id=self._model.id)
        try:
            await self._connection.call(LOCAL_MODEL_INSTALL, params)
            await self._until_ended()
        except asyncio.CancelledError:
            with suppress(CallError, ConnectionLost, TimeoutError):
                async with asyncio.timeout(_CANCEL_S):
                    await self._connection.call(LOCAL_MODEL_CANCEL, params)
            raise
        finally:
            unsubscribe()
        if self._model.state != "installed":
            if self._output.as_json:
                self._output.json(self._model)
                return EXIT_ERROR
            raise CommandError(plain(state_text(self._model)) or tr("The download was cancelled."))
        text = tr("{name} is installed. Use it: errand run --model {id} 'what is in this folder'")
        self._output.result(self._model, text.format(name=plain(self._model.title), id=plain(self._model.id)))
        return 0

    async def _until_ended(self) -> None:
        await self._refresh()
        while is_under_way(self._model):
            self._show_progress(self._model)
            await self._changed.wait()
            self._changed.clear()
            if self._is_stale:
                await self._refresh()

    async def _refresh(self) -> None:
        """Ask for the state of the model; afterwards it comes by events, until the connection breaks off."""
        self._is_stale = False
        listing = await self._connection.call(LOCAL_MODEL_LIST, EmptyParams())
        model = _model(listing, self._model.id)
        if model is None:
            raise CommandError(tr("The model is not there any more."))
        self._model = model

    def _show_progress(self, model: LocalModel) -> None:
        """Print a line for each state, and for each tenth of the download."""
        percent = 100 * model.received_bytes // max(1, model.size_bytes)
        stage = (model.state, percent // _PERCENT_PER_LINE if model.state == "downloading" else 0)
        if stage != self._last_stage:
            self._last_stage = stage
            text = state_text(model)
            self._output.line(f"{percent} %  {text}" if model.state == "downloading" else text)

    def _on_message(self, message: ConnectionMessage) -> None:
        match message:
            case EventRecord(event=LocalModelUpdate(model=model)) if model.id == self._model.id:
                self._model = model
                self._changed.set()
            case ConnectionRestored() | ConnectionDown(gave_up=True):
                self._is_stale = True
                self._changed.set()
            case _:
                pass
