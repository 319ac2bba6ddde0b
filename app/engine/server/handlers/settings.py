"""Settings and providers' keys. A key goes in and never comes out."""

from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.settings import (
    KeySetParams,
    KeySetResult,
    SettingsGetParams,
    SettingsGetResult,
    SettingsSetParams,
    SettingsSetResult,
)
from app.protocol.wire import KEY_SET, SETTINGS_GET, SETTINGS_SET


async def get(services: Services, session: Session, params: SettingsGetParams) -> SettingsGetResult:
    return SettingsGetResult(settings=services.settings.all())


async def set_one(services: Services, session: Session, params: SettingsSetParams) -> SettingsSetResult:
    services.settings.set(params.name, params.value)
    return SettingsSetResult(settings=services.settings.all())


async def set_key(services: Services, session: Session, params: KeySetParams) -> KeySetResult:
    if params.key:
        return KeySetResult(notice=await services.keys.set(params.provider, params.key))
    return KeySetResult(notice=await services.keys.remove(params.provider))


HANDLERS = (Route(SETTINGS_GET, get), Route(SETTINGS_SET, set_one), Route(KEY_SET, set_key))
