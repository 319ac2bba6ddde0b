"""Who answers when a task asks: the person at the prompt, or nobody."""

import asyncio
from typing import Protocol

from app.cli.asks import Problem, Typing, hint
from app.cli.figures import short_id
from app.cli.interrupts import Interrupts
from app.cli.terminal import Terminal
from app.client.call_words import exactly
from app.protocol.asks import SKIP, Ask, AskAnswerParams

NOBODY = "(no one is there to answer; decide yourself and say what you assumed)"


class Answers(Protocol):
    """Settles asks, one at a time."""

    async def answer(self, ask: Ask) -> AskAnswerParams:
        """May take as long as a person takes; cancelled when the ask is settled elsewhere."""
        ...


class PersonAnswers:
    """Reads answers at the prompt. The transcript has shown the ask already."""

    def __init__(self, terminal: Terminal, interrupts: Interrupts) -> None:
        self._terminal = terminal
        self._interrupts = interrupts

    async def answer(self, ask: Ask) -> AskAnswerParams:
        self._terminal.line(self._terminal.style.dim(f"  {hint(ask)}"))
        typing = Typing(ask)
        while True:
            try:
                line = await self._terminal.ask(typing.short_hint)
            except KeyboardInterrupt:
                self._interrupts.press()
                await asyncio.Event().wait()  # the stop cancels the ask, and that cancels this
                raise
            except EOFError:
                line = ""
            reply = typing.read(line)
            if not isinstance(reply, Problem):
                return reply
            self._terminal.line(self._terminal.style.amber(f"  {reply.text}"))


class OthersAnswer:
    """For who only looks on: the task waits for somebody else, and that is said."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def answer(self, ask: Ask) -> AskAnswerParams:
        name = short_id(ask.task_id)
        self._terminal.note(f"errand: the task waits for an answer; give it in a terminal: errand attach {name}")
        await asyncio.Event().wait()  # until it is settled elsewhere, which cancels this
        raise AssertionError("nothing ends the wait but that")


class NobodyAnswers:
    """Nobody is there: questions go back to the model, approvals and further limits are refused.

    A call of unknown outcome is not run a second time; the model hears of it and can look what has happened.
    """

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def answer(self, ask: Ask) -> AskAnswerParams:
        if ask.kind == "question":
            self._terminal.note(f"errand: nobody is there to answer {ask.text!r}; the agent decides itself")
            return AskAnswerParams(ask_id=ask.id, text=NOBODY)
        if ask.unknown is not None:
            self._terminal.note(f"errand: the outcome of `{exactly(ask.unknown)}` is not known; it is not run again")
            return AskAnswerParams(ask_id=ask.id, text=SKIP)
        return AskAnswerParams(ask_id=ask.id, allow=False, text=NOBODY)
