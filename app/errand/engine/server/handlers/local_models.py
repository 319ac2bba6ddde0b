"""Handlers of models that run on this machine."""

from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.base import EmptyParams, EmptyResult
from errand.protocol.local_models import (
    LOCAL_MODEL_CANCEL,
    LOCAL_MODEL_INSTALL,
    LOCAL_MODEL_LIST,
    LOCAL_MODEL_REMOVE,
    LocalModelListResult,
    LocalModelParams,
)


async def list_models(services: Services, session: ClientSession, params: EmptyParams) -> LocalModelListResult:
    return await services.models.local.list()


async def install(services: Services, session: ClientSession, params: LocalModelParams) -> EmptyResult:
    await services.models.local.install(params.id)
    return EmptyResult()


async def cancel(services: Services, session: ClientSession, params: LocalModelParams) -> EmptyResult:
    await services.models.local.cancel(params.id)
    return EmptyResult()


async def remove(services: Services, session: ClientSession, params: LocalModelParams) -> EmptyResult:
    await services.models.local.remove(params.id)
    return EmptyResult()


HANDLERS = (
    Route(LOCAL_MODEL_LIST, list_models),
    Route(LOCAL_MODEL_INSTALL, install),
    Route(LOCAL_MODEL_CANCEL, cancel),
    Route(LOCAL_MODEL_REMOVE, remove),
)
