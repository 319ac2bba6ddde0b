"""Handlers of settings, keys, models and model servers."""

import msgspec

from errand.engine.core.errors import ConfigurationError
from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.base import EmptyResult
from errand.protocol.settings import (
    KEY_SET,
    MODEL_CHOOSE,
    MODEL_LIST,
    MODEL_REMOVE,
    MODEL_SAVE,
    MODEL_SERVER_REMOVE,
    MODEL_SERVER_SAVE,
    MODEL_SERVER_TEST,
    MODEL_TEST,
    MODEL_WARM_UP,
    SETTINGS_GET,
    SETTINGS_SET,
    KeySetParams,
    KeySetResult,
    ModelChooseParams,
    ModelListParams,
    ModelListResult,
    ModelRemoveParams,
    ModelSaveParams,
    ModelServerRemoveParams,
    ModelServerRemoveResult,
    ModelServerSaveParams,
    ModelServerSaveResult,
    ModelServerTestParams,
    ModelServerTestResult,
    ModelTestParams,
    ModelTestResult,
    ModelWarmUpParams,
    SettingsGetParams,
    SettingsGetResult,
    SettingsSetParams,
    SettingsSetResult,
)

_OF_MEMORY = ("not_remembered_folders", "embedding_folder")


async def get(services: Services, session: ClientSession, params: SettingsGetParams) -> SettingsGetResult:
    return SettingsGetResult(settings=services.settings.all())


async def set_one(services: Services, session: ClientSession, params: SettingsSetParams) -> SettingsSetResult:
    services.settings.set(params.name, params.value)
    if params.name in _OF_MEMORY:
        services.memory.rules_changed()
    return SettingsSetResult(settings=services.settings.all())


async def set_key(services: Services, session: ClientSession, params: KeySetParams) -> KeySetResult:
    if params.key:
        return KeySetResult(notice=await services.keys.set(params.provider, params.key))
    return KeySetResult(notice=await services.keys.remove(params.provider))


async def list_models(services: Services, session: ClientSession, params: ModelListParams) -> ModelListResult:
    models = await services.models.router.available.list(params.refresh, params.fetch)
    chosen = services.settings.values.default_model
    return msgspec.structs.replace(models, default=chosen) if chosen else models


async def test(services: Services, session: ClientSession, params: ModelTestParams) -> ModelTestResult:
    """Test a provider. One that cannot be tested is a result too, with the reason."""
    try:
        return await services.models.router.available.test(params.provider, params.model)
    except ConfigurationError as error:
        return ModelTestResult(ok=False, model=params.model or "", text=str(error), seconds=0.0)


async def warm_up(services: Services, session: ClientSession, params: ModelWarmUpParams) -> EmptyResult:
    model = (
        params.model or services.settings.values.default_model or await services.models.router.available.default_model()
    )
    if model:
        services.models.router.prepare(model)
    return EmptyResult()


async def test_server(
    services: Services, session: ClientSession, params: ModelServerTestParams
) -> ModelServerTestResult:
    return await services.models.custom_servers.test(params)


async def save_server(
    services: Services, session: ClientSession, params: ModelServerSaveParams
) -> ModelServerSaveResult:
    return await services.models.custom_servers.save(params)


async def remove_server(
    services: Services, session: ClientSession, params: ModelServerRemoveParams
) -> ModelServerRemoveResult:
    return await services.models.custom_servers.remove(params)


async def save_model(services: Services, session: ClientSession, params: ModelSaveParams) -> EmptyResult:
    services.models.own_models.save(params)
    return EmptyResult()


async def remove_model(services: Services, session: ClientSession, params: ModelRemoveParams) -> EmptyResult:
    services.models.own_models.remove(params)
    return EmptyResult()


async def choose_models(services: Services, session: ClientSession, params: ModelChooseParams) -> EmptyResult:
    services.models.own_models.choose(params)
    return EmptyResult()


HANDLERS = (
    Route(SETTINGS_GET, get),
    Route(SETTINGS_SET, set_one),
    Route(KEY_SET, set_key),
    Route(MODEL_LIST, list_models),
    Route(MODEL_TEST, test),
    Route(MODEL_WARM_UP, warm_up),
    Route(MODEL_SERVER_TEST, test_server),
    Route(MODEL_SERVER_SAVE, save_server),
    Route(MODEL_SERVER_REMOVE, remove_server),
    Route(MODEL_SAVE, save_model),
    Route(MODEL_REMOVE, remove_model),
    Route(MODEL_CHOOSE, choose_models),
)
