"""Handlers of the data folder, exports, imports and deletion."""

import os
from pathlib import Path

from errand.engine.data.conversation_files import orphaned, summary
from errand.engine.data.json_export import export_json
from errand.engine.data.remover import Remover
from errand.engine.server.route import Route, checked_limit
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.base import EmptyParams, EmptyResult
from errand.protocol.data import (
    CONVERSATION_DELETE,
    DATA_EXPORT,
    DATA_FIND,
    DATA_IMPORT,
    DATA_ORPHANS,
    DATA_PRUNE,
    DATA_SUMMARY,
    ConversationDeleteParams,
    DataExportParams,
    DataExportResult,
    DataFindResult,
    DataImportParams,
    DataImportResult,
    DataPruneParams,
    DataPruneResult,
    DataSummaryResult,
    OrphansParams,
    OrphansResult,
)


async def summarise(services: Services, session: ClientSession, params: EmptyParams) -> DataSummaryResult:
    return await summary(services.database, services.paths)


async def export(services: Services, session: ClientSession, params: DataExportParams) -> DataExportResult:
    if params.format == "json":
        return await export_json(services.database, services.paths, services.keys.redactor, params)
    from errand.engine.data.page_export import export_pages  # it imports a Markdown library

    return await export_pages(services.database, services.paths, services.keys.redactor, params)


async def import_file(services: Services, session: ClientSession, params: DataImportParams) -> DataImportResult:
    from errand.engine.data.importer import Importer  # it imports the formats of many programs

    return await Importer(services.log, services.database, services.runner.changes, services.locks, services.paths).run(
        Path(params.path)
    )


async def find(services: Services, session: ClientSession, params: EmptyParams) -> DataFindResult:
    """Look for sessions in the client's environment: the engine may have been started from another."""
    from errand.engine.data.discovery import Discovery  # it imports the formats of many programs

    return await Discovery(services.database).run(session.environment or os.environ)


async def orphans(services: Services, session: ClientSession, params: OrphansParams) -> OrphansResult:
    return await orphaned(services.database, services.paths, checked_limit(params.limit))


async def prune(services: Services, session: ClientSession, params: DataPruneParams) -> DataPruneResult:
    result = await _remover(services).prune(params.days, dry_run=params.dry_run)
    await _close_sessions(services)
    return result


async def delete(services: Services, session: ClientSession, params: ConversationDeleteParams) -> EmptyResult:
    await _remover(services).delete(params.conversation_id)
    await _close_sessions(services)
    return EmptyResult()


async def _close_sessions(services: Services) -> None:
    """End what tools have left running in conversations that are deleted."""
    for conversation_id in services.tools.sessions.conversations():
        if not await services.database.conversations.exists(conversation_id):
            await services.tools.sessions.close_conversation(conversation_id)


def _remover(services: Services) -> Remover:
    return Remover(
        services.log,
        services.database,
        services.runner.changes,
        services.locks,
        services.grants,
        services.checkpoints.baselines,
        services.paths,
    )


HANDLERS = (
    Route(DATA_SUMMARY, summarise),
    Route(DATA_EXPORT, export),
    Route(DATA_IMPORT, import_file),
    Route(DATA_FIND, find),
    Route(DATA_ORPHANS, orphans),
    Route(DATA_PRUNE, prune),
    Route(CONVERSATION_DELETE, delete),
)
