"""The data folder, and conversations that are taken out, in and away."""

from pathlib import Path

from app.engine.data.export import export_json
from app.engine.data.orphans import orphaned
from app.engine.data.remover import Remover
from app.engine.data.summary import summary
from app.engine.server.limits import page_size
from app.engine.server.route import Route
from app.engine.server.services import Services
from app.engine.server.session import Session
from app.protocol.data import (
    ConversationDeleteParams,
    DataExportParams,
    DataExportResult,
    DataImportParams,
    DataImportResult,
    DataPruneParams,
    DataPruneResult,
    DataSummaryResult,
    OrphansParams,
    OrphansResult,
)
from app.protocol.engine import EmptyParams, EmptyResult
from app.protocol.wire import CONVERSATION_DELETE, DATA_EXPORT, DATA_IMPORT, DATA_ORPHANS, DATA_PRUNE, DATA_SUMMARY


async def summarise(services: Services, session: Session, params: EmptyParams) -> DataSummaryResult:
    return await summary(services.database, services.paths)


async def export(services: Services, session: Session, params: DataExportParams) -> DataExportResult:
    if params.format == "json":
        return await export_json(services.database, services.paths, params)
    from app.engine.data.pages import export_pages  # a library for Markdown comes with it

    return await export_pages(services.database, services.paths, params)


async def take_in(services: Services, session: Session, params: DataImportParams) -> DataImportResult:
    from app.engine.data.importing import Importer  # it knows the forms of many programs

    return await Importer(services.log, services.database, services.paths).take(Path(params.path))


async def orphans(services: Services, session: Session, params: OrphansParams) -> OrphansResult:
    return await orphaned(services.database, services.paths, page_size(params.limit))


async def prune(services: Services, session: Session, params: DataPruneParams) -> DataPruneResult:
    return await _remover(services).prune(params.days, dry_run=params.dry_run)


async def delete(services: Services, session: Session, params: ConversationDeleteParams) -> EmptyResult:
    await _remover(services).delete(params.conversation_id)
    return EmptyResult()


def _remover(services: Services) -> Remover:
    return Remover(services.log, services.database, services.claims, services.grants, services.paths)


HANDLERS = (
    Route(DATA_SUMMARY, summarise),
    Route(DATA_EXPORT, export),
    Route(DATA_IMPORT, take_in),
    Route(DATA_ORPHANS, orphans),
    Route(DATA_PRUNE, prune),
    Route(CONVERSATION_DELETE, delete),
)
