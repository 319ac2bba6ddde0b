"""Handlers of skills."""

from errand.engine.server.route import Route
from errand.engine.server.services import Services
from errand.engine.server.session import ClientSession
from errand.protocol.base import EmptyResult
from errand.protocol.skills import (
    SKILL_ENABLE,
    SKILL_INSTALL,
    SKILL_LIST,
    SKILL_PREVIEW,
    SKILL_REMOVE,
    SKILL_RESTORE,
    SKILL_TRUST,
    SkillEnableParams,
    SkillInstallParams,
    SkillListParams,
    SkillListResult,
    SkillPreviewParams,
    SkillPreviewResult,
    SkillRemoveParams,
    SkillRestoreParams,
    SkillResult,
    SkillTrustParams,
)


async def list_skills(services: Services, session: ClientSession, params: SkillListParams) -> SkillListResult:
    return await services.tools.skills.listing(params.workspace)


async def preview(services: Services, session: ClientSession, params: SkillPreviewParams) -> SkillPreviewResult:
    return await services.tools.skills.preview(params)


async def install(services: Services, session: ClientSession, params: SkillInstallParams) -> SkillResult:
    return SkillResult(skill=await services.tools.skills.install(params))


async def remove(services: Services, session: ClientSession, params: SkillRemoveParams) -> EmptyResult:
    await services.tools.skills.remove(params.file)
    return EmptyResult()


async def restore(services: Services, session: ClientSession, params: SkillRestoreParams) -> SkillResult:
    return SkillResult(skill=await services.tools.skills.restore(params.file))


async def enable(services: Services, session: ClientSession, params: SkillEnableParams) -> EmptyResult:
    await services.tools.skills.enable(params.file, is_enabled=params.is_enabled)
    return EmptyResult()


async def trust(services: Services, session: ClientSession, params: SkillTrustParams) -> SkillListResult:
    return await services.tools.skills.trust(params)


HANDLERS = (
    Route(SKILL_LIST, list_skills),
    Route(SKILL_PREVIEW, preview),
    Route(SKILL_INSTALL, install),
    Route(SKILL_REMOVE, remove),
    Route(SKILL_RESTORE, restore),
    Route(SKILL_ENABLE, enable),
    Route(SKILL_TRUST, trust),
)
