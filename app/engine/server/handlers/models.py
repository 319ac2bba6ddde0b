"""Models and providers."""

import msgspec

from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.models import ModelListParams, ModelListResult
from app.protocol.wire import MODEL_LIST


async def list_models(services: Services, session: Session, params: ModelListParams) -> ModelListResult:
    found = await services.models.list(params.refresh)
    chosen = services.settings.values.default_model
    return msgspec.structs.replace(found, default=chosen) if chosen else found


HANDLERS = (Route(MODEL_LIST, list_models),)
