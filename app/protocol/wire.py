"""Envelopes and the table of methods: what the dispatcher serves, the client calls and the schema lists."""

from typing import Generic, Literal, TypeVar

import msgspec

from app.protocol import (
    agents,
    asks,
    chats,
    comparisons,
    context,
    conversations,
    data,
    engine,
    executions,
    grants,
    models,
    prompts,
    settings,
    tasks,
    usage,
)
from app.protocol.events import Delta, EventRecord, Resync
from app.protocol.health import HealthUpdate
from app.protocol.json import JsonValue
from app.protocol.struct import Wire

P = TypeVar("P", bound=Wire)
R = TypeVar("R", bound=Wire)


class Method(msgspec.Struct, Generic[P, R], frozen=True):
    """One row: `changes` marks commands, which are done once however often the same client sends the same id."""

    name: str
    params: type[P]
    result: type[R]
    changes: bool
    about: str


CHALLENGE = Method(
    "challenge",
    engine.ChallengeParams,
    engine.ChallengeResult,
    False,
    "Have the engine prove that it knows the token.",
)
INITIALIZE = Method(
    "initialize", engine.InitializeParams, engine.InitializeResult, False, "Open the conversation with the engine."
)
SUBSCRIBE = Method("subscribe", engine.SubscribeParams, engine.SubscribeResult, False, "Follow events of a scope.")
UNSUBSCRIBE = Method("unsubscribe", engine.UnsubscribeParams, engine.EmptyResult, False, "Stop following a scope.")
ENGINE_STATUS = Method("engine/status", engine.EmptyParams, engine.EngineStatusResult, False, "What the engine uses.")
ENGINE_SHUTDOWN = Method(
    "engine/shutdown", engine.EngineShutdownParams, engine.EmptyResult, True, "End the engine in order."
)

TASK_START = Method("task/start", tasks.TaskStartParams, tasks.TaskStartResult, True, "Start a task.")
TASK_STOP = Method("task/stop", tasks.TaskIdParams, tasks.TaskResult, True, "Stop a task and all it started.")
TASK_PAUSE = Method("task/pause", tasks.TaskIdParams, tasks.TaskResult, True, "Pause before the next step.")
TASK_RESUME = Method("task/resume", tasks.TaskIdParams, tasks.TaskResult, True, "Go on after a pause or a crash.")
TASK_TRY_NOW = Method(
    "task/try_now",
    tasks.TaskIdParams,
    tasks.TaskResult,
    True,
    "Ask the model at once, though a provider's limit is waited for.",
)
TASK_SET_MODE = Method(
    "task/set_mode", tasks.TaskSetModeParams, tasks.TaskResult, True, "Take a task for a chat, or a chat for a task."
)
TASK_STEER = Method("task/steer", tasks.TaskMessageParams, tasks.TaskResult, True, "A word for the next turn.")
TASK_FOLLOW_UP = Method(
    "task/follow_up", tasks.TaskMessageParams, tasks.TaskResult, True, "A word for when the work at hand is done."
)
TASK_GET = Method("task/get", tasks.TaskIdParams, tasks.TaskResult, False, "One task.")
TASK_NEXT = Method(
    "task/next",
    tasks.TaskIdParams,
    tasks.TaskNextResult,
    False,
    "Who speaks after a task in a round, once that is settled.",
)
TASK_LIST = Method("task/list", tasks.TaskListParams, tasks.TaskListResult, False, "Tasks, newest first.")
TASK_PLANS = Method("task/plans", tasks.TaskIdParams, tasks.TaskPlansResult, False, "The plan of each turn.")

TASK_RECORD = Method(
    "task/record", tasks.TaskIdParams, tasks.TaskRecordResult, False, "All a task did, to be played again."
)

TASK_RETRY = Method("task/retry", tasks.TaskRetryParams, tasks.TaskResult, True, "Have a reply written anew.")
TASK_COMPARE_MODELS = Method(
    "task/compare_models",
    comparisons.TaskCompareModelsParams,
    comparisons.TaskCompareModelsResult,
    True,
    "Ask several models the same at once.",
)
TASK_CHANGE_QUEUED = Method(
    "task/change_queued", tasks.TaskQueueChangeParams, tasks.TaskResult, True, "Edit, move or send now what waits."
)
TASK_REMOVE_QUEUED = Method(
    "task/remove_queued", tasks.TaskQueueRemoveParams, tasks.TaskResult, True, "Take back what waits."
)

ASK_ANSWER = Method("ask/answer", asks.AskAnswerParams, asks.AskAnswerResult, True, "Settle an ask.")
ASK_LIST = Method("ask/list", asks.AskListParams, asks.AskListResult, False, "What waits for a person.")

CONVERSATION_LIST = Method(
    "conversation/list",
    conversations.ConversationListParams,
    conversations.ConversationListResult,
    False,
    "A page of conversations.",
)
CONVERSATION_GET = Method(
    "conversation/get",
    conversations.ConversationGetParams,
    conversations.ConversationGetResult,
    False,
    "One conversation.",
)
CONVERSATION_NODES = Method(
    "conversation/nodes",
    conversations.ConversationNodesParams,
    conversations.ConversationNodesResult,
    False,
    "A page of a branch.",
)
CONVERSATION_SEARCH = Method(
    "conversation/search",
    conversations.ConversationSearchParams,
    conversations.ConversationSearchResult,
    False,
    "Full-text search over all nodes.",
)
CONVERSATION_CHANGE = Method(
    "conversation/change",
    conversations.ConversationChangeParams,
    conversations.ConversationChangeResult,
    True,
    "Rename, archive, pin.",
)

CONVERSATION_TREE = Method(
    "conversation/tree",
    conversations.ConversationTreeParams,
    conversations.ConversationTreeResult,
    False,
    "All branches of a conversation.",
)
CONVERSATION_COMPARE = Method(
    "conversation/compare",
    comparisons.ConversationCompareParams,
    comparisons.ConversationCompareResult,
    False,
    "Two branches, from where they part.",
)
CONVERSATION_DELETE = Method(
    "conversation/delete",
    data.ConversationDeleteParams,
    engine.EmptyResult,
    True,
    "Delete an archived conversation for good.",
)

AGENT_LIST = Method("agent/list", agents.AgentListParams, agents.AgentListResult, False, "Agents and their heads.")
AGENT_GET = Method("agent/get", agents.AgentIdParams, agents.AgentResult, False, "One agent and its head.")
AGENT_CREATE = Method("agent/create", agents.AgentCreateParams, agents.AgentResult, True, "Add an agent.")
AGENT_DELETE = Method(
    "agent/delete", agents.AgentIdParams, engine.EmptyResult, True, "Take an agent away; what it wrote stays."
)
AGENT_CHAT = Method("agent/chat", chats.AgentChatParams, chats.AgentChatResult, True, "Ask an agent for one reply.")
AGENT_SET_HEAD = Method(
    "agent/set_head", agents.AgentSetHeadParams, agents.AgentSetHeadResult, True, "Move an agent to another node."
)

PERSONALITY_LIST = Method(
    "personality/list", engine.EmptyParams, agents.PersonalityListResult, False, "Presets for agents."
)
PERSONALITY_SAVE = Method(
    "personality/save", agents.PersonalitySaveParams, agents.PersonalitySaveResult, True, "Make or change a preset."
)
PERSONALITY_DELETE = Method(
    "personality/delete", agents.PersonalityDeleteParams, engine.EmptyResult, True, "Delete a preset."
)

EXECUTION_LIST = Method(
    "execution/list",
    executions.ExecutionListParams,
    executions.ExecutionListResult,
    False,
    "The tool calls of a task.",
)
EXECUTION_OUTPUT = Method(
    "execution/output",
    executions.ExecutionOutputParams,
    executions.ExecutionOutputResult,
    False,
    "What a tool call gave, however long.",
)

GRANT_LIST = Method("grant/list", grants.GrantListParams, grants.GrantListResult, False, "Remembered decisions.")
GRANT_REVOKE = Method("grant/revoke", grants.GrantRevokeParams, grants.GrantRevokeResult, True, "Forget a decision.")

MODEL_LIST = Method("model/list", models.ModelListParams, models.ModelListResult, False, "Providers and models.")

MODEL_TEST = Method("model/test", models.ModelTestParams, models.ModelTestResult, False, "Try a provider for real.")

MODEL_SERVER_TEST = Method(
    "model_server/test", models.ModelServerTestParams, models.ModelServerTestResult, False, "Ask an address for models."
)
MODEL_SERVER_SAVE = Method(
    "model_server/save", models.ModelServerSaveParams, models.ModelServerSaveResult, True, "Add or change a server."
)
MODEL_SERVER_REMOVE = Method(
    "model_server/remove", models.ModelServerRemoveParams, models.ModelServerRemoveResult, True, "Forget a server."
)

USAGE_REPORT = Method("usage/report", usage.UsageReportParams, usage.UsageReportResult, False, "Tokens and money.")
CONTEXT_EXPLAIN = Method(
    "context/explain", context.ContextExplainParams, context.ContextExplainResult, False, "What a turn was sent."
)

CONVERSATION_SUMMARISE = Method(
    "conversation/summarise",
    context.ConversationSummariseParams,
    tasks.TaskResult,
    True,
    "Summarise what is older.",
)
CONVERSATION_EDIT_SUMMARY = Method(
    "conversation/edit_summary", context.SummaryEditParams, context.SummaryEditResult, True, "Change a summary."
)

PROMPT_GET = Method("prompt/get", prompts.PromptGetParams, prompts.PromptGetResult, False, "A system prompt.")

DATA_SUMMARY = Method("data/summary", engine.EmptyParams, data.DataSummaryResult, False, "Folder, parts and sizes.")
DATA_EXPORT = Method("data/export", data.DataExportParams, data.DataExportResult, True, "Write conversations out.")
DATA_IMPORT = Method("data/import", data.DataImportParams, data.DataImportResult, True, "Take conversations in.")
DATA_ORPHANS = Method(
    "data/orphans", data.OrphansParams, data.OrphansResult, False, "Conversations without any agent, with sizes."
)
DATA_PRUNE = Method("data/prune", data.DataPruneParams, data.DataPruneResult, True, "Delete old archived ones.")

SETTINGS_GET = Method("settings/get", settings.SettingsGetParams, settings.SettingsGetResult, False, "All settings.")
SETTINGS_SET = Method("settings/set", settings.SettingsSetParams, settings.SettingsSetResult, True, "Change one.")
KEY_SET = Method("settings/set_key", settings.KeySetParams, settings.KeySetResult, True, "Store a provider's key.")

METHODS = (
    CHALLENGE,
    INITIALIZE,
    SUBSCRIBE,
    UNSUBSCRIBE,
    ENGINE_STATUS,
    ENGINE_SHUTDOWN,
    TASK_START,
    TASK_RETRY,
    TASK_COMPARE_MODELS,
    TASK_STOP,
    TASK_PAUSE,
    TASK_RESUME,
    TASK_TRY_NOW,
    TASK_SET_MODE,
    TASK_STEER,
    TASK_FOLLOW_UP,
    TASK_CHANGE_QUEUED,
    TASK_REMOVE_QUEUED,
    TASK_GET,
    TASK_NEXT,
    TASK_LIST,
    TASK_PLANS,
    TASK_RECORD,
    ASK_ANSWER,
    ASK_LIST,
    CONVERSATION_LIST,
    CONVERSATION_GET,
    CONVERSATION_NODES,
    CONVERSATION_TREE,
    CONVERSATION_SEARCH,
    CONVERSATION_CHANGE,
    CONVERSATION_COMPARE,
    CONVERSATION_DELETE,
    AGENT_LIST,
    AGENT_GET,
    AGENT_CREATE,
    AGENT_DELETE,
    AGENT_CHAT,
    AGENT_SET_HEAD,
    PERSONALITY_LIST,
    PERSONALITY_SAVE,
    PERSONALITY_DELETE,
    EXECUTION_LIST,
    EXECUTION_OUTPUT,
    GRANT_LIST,
    GRANT_REVOKE,
    MODEL_LIST,
    MODEL_TEST,
    MODEL_SERVER_TEST,
    MODEL_SERVER_SAVE,
    MODEL_SERVER_REMOVE,
    USAGE_REPORT,
    CONTEXT_EXPLAIN,
    PROMPT_GET,
    CONVERSATION_SUMMARISE,
    CONVERSATION_EDIT_SUMMARY,
    DATA_SUMMARY,
    DATA_EXPORT,
    DATA_IMPORT,
    DATA_ORPHANS,
    DATA_PRUNE,
    SETTINGS_GET,
    SETTINGS_SET,
    KEY_SET,
)


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call of a client. `id` is the client's own; a command sent twice under one id is done once."""

    method: str
    id: str | int
    params: msgspec.Raw = msgspec.Raw(b"{}")
    jsonrpc: Literal["2.0"] = "2.0"


class Failure(Wire, frozen=True, kw_only=True):
    """Why a request failed.

    `code` is for programs (-32700 to -32600 as JSON-RPC has them, -32000 for the engine's own errors), `data.code`
    is our word for it.
    """

    code: int
    message: str
    data: dict[str, JsonValue] | None = None


class Response(msgspec.Struct, frozen=True):
    """The answer to a request: `result` or `error`."""

    id: str | int | None
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    error: Failure | msgspec.UnsetType = msgspec.UNSET
    jsonrpc: Literal["2.0"] = "2.0"


class Notice(msgspec.Struct, frozen=True):
    """What the engine sends unasked: `event` (params an `EventRecord`), `delta`, `resync` or `health`."""

    method: Literal["event", "delta", "resync", "health"]
    params: EventRecord | Delta | Resync | HealthUpdate
    jsonrpc: Literal["2.0"] = "2.0"
