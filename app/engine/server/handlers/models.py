"""Models and providers."""

import msgspec

from app.engine.errors import ConfigurationError
from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.models import (
    ModelListParams,
    ModelListResult,
    ModelServerRemoveParams,
    ModelServerRemoveResult,
    ModelServerSaveParams,
    ModelServerSaveResult,
    ModelServerTestParams,
    ModelServerTestResult,
    ModelTestParams,
    ModelTestResult,
)
from app.protocol.wire import MODEL_LIST, MODEL_SERVER_REMOVE, MODEL_SERVER_SAVE, MODEL_SERVER_TEST, MODEL_TEST


async def list_models(services: Services, session: Session, params: ModelListParams) -> ModelListResult:
    found = await services.models.offer.list(params.refresh, params.fetch)
    chosen = services.settings.values.default_model
    return msgspec.structs.replace(found, default=chosen) if chosen else found


async def test(services: Services, session: Session, params: ModelTestParams) -> ModelTestResult:
    """What cannot be tried is an answer too: the person reads why."""
    try:
        return await services.models.offer.test(params.provider, params.model)
    except ConfigurationError as error:
        return ModelTestResult(ok=False, model=params.model or "", text=str(error), seconds=0.0)


async def test_server(services: Services, session: Session, params: ModelServerTestParams) -> ModelServerTestResult:
    return await services.own_servers.test(params)


async def save_server(services: Services, session: Session, params: ModelServerSaveParams) -> ModelServerSaveResult:
    return await services.own_servers.save(params)


async def remove_server(
    services: Services, session: Session, params: ModelServerRemoveParams
) -> ModelServerRemoveResult:
    return await services.own_servers.remove(params)


HANDLERS = (
    Route(MODEL_LIST, list_models),
    Route(MODEL_TEST, test),
    Route(MODEL_SERVER_TEST, test_server),
    Route(MODEL_SERVER_SAVE, save_server),
    Route(MODEL_SERVER_REMOVE, remove_server),
)
