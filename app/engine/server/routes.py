"""All routes: one for each row of the protocol's table."""

from app.engine.server.handlers import (
    agents,
    asks,
    comparisons,
    context,
    conversations,
    data,
    engine,
    executions,
    grants,
    models,
    personalities,
    prompts,
    settings,
    tasks,
    usage,
)
from app.engine.server.route import Served

ROUTES: tuple[Served, ...] = (
    *engine.HANDLERS,
    *tasks.HANDLERS,
    *asks.HANDLERS,
    *conversations.HANDLERS,
    *agents.HANDLERS,
    *personalities.HANDLERS,
    *executions.HANDLERS,
    *grants.HANDLERS,
    *models.HANDLERS,
    *data.HANDLERS,
    *usage.HANDLERS,
    *context.HANDLERS,
    *prompts.HANDLERS,
    *comparisons.HANDLERS,
    *settings.HANDLERS,
)
