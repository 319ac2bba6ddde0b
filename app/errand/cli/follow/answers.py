"""Answers asks: from the person at the prompt, from other clients, or automatically."""

import asyncio

from errand.cli.follow.interrupts import Interrupts
from errand.cli.rendering.ask_choices import hint_lines
from errand.cli.rendering.asks import NOBODY
from errand.cli.rendering.task_lines import asking_line
from errand.cli.rendering.typed_answers import AskInput, InvalidReply
from errand.cli.terminal.terminal import Terminal
from errand.cli.terminal.text import short_id
from errand.client.texts.asks import subject_text
from errand.protocol.asks import SKIP, Ask, AskAnswerParams
from errand.protocol.tasks.task import Task
from errand.text.translation import tr


class PersonAnswerer:
    """Reads answers at the prompt. The transcript has already shown the ask."""

    is_person = True

    def __init__(self, terminal: Terminal, interrupts: Interrupts) -> None:
        self._terminal = terminal
        self._interrupts = interrupts

    async def answer(self, ask: Ask, task: Task | None) -> AskAnswerParams:
        if task is not None:
            self._terminal.line(self._terminal.style.dim(f"  {asking_line(task)}"))
        for line in hint_lines(ask, self._terminal.width):
            self._terminal.line(self._terminal.style.dim(line))
        typing, first = AskInput(ask), True
        while True:
            try:
                line = await self._terminal.ask(typing.prompt, discards_typed=first)
            except KeyboardInterrupt:
                self._interrupts.press()
                await asyncio.Event().wait()  # the stop cancels the ask, which cancels this
                raise
            except EOFError:
                line = ""
            first = False
            reply = typing.read(line)
            if not isinstance(reply, InvalidReply):
                return reply
            self._terminal.line(self._terminal.style.amber(f"  {reply.text}"))


class OtherClientsAnswerer:
    """An answerer for clients that only watch: tells the person that the task waits for an answer elsewhere."""

    is_person = False

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def answer(self, ask: Ask, task: Task | None) -> AskAnswerParams:
        name = short_id(ask.task_id)
        self._terminal.note(
            tr("errand: the task waits for an answer. Answer it in a terminal: errand answer {name}").format(name=name)
        )
        await asyncio.Event().wait()  # until it is settled elsewhere, which cancels this
        raise AssertionError("nothing ends the wait but that")


class NoAnswerer:
    """Without a person: returns questions to the model, denies approvals and further limits.

    A call with an unknown outcome is not repeated; the model is told and can check what happened.
    """

    is_person = False

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def answer(self, ask: Ask, task: Task | None) -> AskAnswerParams:
        if ask.kind == "question":
            self._terminal.note(tr("errand: nobody can answer {text!r} here; the agent decides").format(text=ask.text))
            return AskAnswerParams(ask_id=ask.id, text=NOBODY)
        if ask.unknown is not None:
            self._terminal.note(
                tr("errand: the outcome of `{unknown}` is unknown; it is not run again").format(
                    unknown=subject_text(ask.unknown)
                )
            )
            return AskAnswerParams(ask_id=ask.id, text=SKIP)
        return AskAnswerParams(ask_id=ask.id, allow=False, text=NOBODY)
