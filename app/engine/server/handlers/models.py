"""Models and providers."""

from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.models import ModelListParams, ModelListResult
from app.protocol.wire import MODEL_LIST


async def list_models(services: Services, session: Session, params: ModelListParams) -> ModelListResult:
    return await services.models.list(params.refresh)


HANDLERS = (Route(MODEL_LIST, list_models),)
