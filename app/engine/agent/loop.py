"""The agent loop: turns of one model call and its tools, until nothing is left to do. Features come in as hooks."""

from collections.abc import Sequence
from typing import TypeAlias

from app.engine.agent.batch import run_batch
from app.engine.agent.events import AgentEnd, AgentStart, TurnEnd, TurnStart
from app.engine.agent.hooks import FinishedTurn, TurnDecision
from app.engine.agent.reply import end_reply, stream_reply
from app.engine.agent.run import Run
from app.engine.messages import AssistantMessage, Message, ToolResultMessage

Messages: TypeAlias = tuple[Message, ...]
Results: TypeAlias = tuple[ToolResultMessage, ...]


async def run_loop(run: Run, prompts: Sequence[Message]) -> None:
    """Run until the end; `run.made` then holds what came of it.

    A stream function or a hook that raises ends the run like a model that fails: as a message with stop reason error.
    What a listener raises is raised, after the same ending was tried.
    """
    try:
        await run.emit(AgentStart())
        await _start_turn(run)
        for prompt in prompts:
            await run.publish(prompt)
        await _turns(run)
    except Exception as error:  # noqa: BLE001 - the end of a task: hooks and stream functions are anyone's code
        await run.emit(AgentEnd((await _fail(run, error),)))
    else:
        await run.emit(AgentEnd(tuple(run.made)))


async def _turns(run: Run) -> None:
    pending = () if run.skip_first_poll else run.steering.take()
    while True:
        for message in pending:
            await run.publish(message)
        reply = await stream_reply(run)
        if reply.stop_reason in ("error", "aborted"):
            await _finish_turn(run, reply, ())
            return
        batch = await run_batch(run, reply)
        decision = await _finish_turn(run, reply, batch.results)
        if decision == "end":
            run.steering.put_back(batch.steering)
            return
        pending = batch.steering or run.steering.take()
        if not batch.goes_on and not pending:
            pending = run.follow_ups.take()
            if not pending and decision != "continue":
                return
        pending = await _next_turn(run, reply, batch.results, pending)


async def _start_turn(run: Run) -> None:
    run.in_turn = True
    await run.emit(TurnStart())


async def _finish_turn(run: Run, reply: AssistantMessage, results: Results) -> TurnDecision | None:
    ask = run.config.hooks.finish_turn
    decision = await ask(_finished(run, reply, results), run.cancel) if ask is not None else None
    run.in_turn = False
    await run.emit(TurnEnd(reply, results))
    return decision


async def _next_turn(run: Run, reply: AssistantMessage, results: Results, pending: Messages) -> Messages:
    """Start the next turn as the hook wants it; gives the messages that open it."""
    ask = run.config.hooks.prepare_next_turn
    change = await ask(_finished(run, reply, results), run.cancel) if ask is not None else None
    # The hook may take long (a summary, say). What the user said meanwhile belongs into this turn, unless something
    # was taken before: then one at a time would give two.
    pending = pending or run.steering.take()
    if change is not None:
        run.model = change.model or run.model
        run.thinking_level = change.thinking_level or run.thinking_level
        if change.messages is not None:
            run.messages = list(change.messages)
        pending = change.add + pending
    await _start_turn(run)
    return pending


def _finished(run: Run, reply: AssistantMessage, results: Results) -> FinishedTurn:
    return FinishedTurn(reply, results, tuple(run.messages), tuple(run.made))


async def _fail(run: Run, error: Exception) -> AssistantMessage:
    """End what has begun, in order, with a reply that says what went wrong; the content so far is kept."""
    if not run.in_turn:
        await _start_turn(run)
    content = run.partial.content if run.partial is not None else ()
    reason = "aborted" if run.cancel.is_set else "error"
    message = AssistantMessage(content, reason, str(error) or type(error).__name__, run.model)
    await end_reply(run, message)
    run.in_turn = False
    await run.emit(TurnEnd(message, ()))
    return message
