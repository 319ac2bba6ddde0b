"""The YAML scripts that the scripted model plays, read and checked. The format:

    about: one line that says what the script does          # optional
    replies:                                                # one entry for each reply of the conversation, in order
      - text: "I'll look at the project."                   # all fields are optional; text is Markdown
        thinking: "First the tests."
        calls:
          - tool: shell
            arguments: {command: "python -m unittest"}
            id: call_1                                      # made up from the place where left out
        delay_s: 0.4                                        # before the first piece
        piece_delay_s: 0.02                                 # between pieces
        piece_length: 24                                    # characters; 0 (the default) sends each block whole
      - - when: "FAILED"                                    # a list: the first whose `when` stands in the last tool
          text: "Still failing."                            # result is taken; one without `when` is always taken
        - text: "It passes: ${last_result}"
      - error: "The model is overloaded."                   # the reply fails with this text, after what comes above

In texts and arguments `${last_result}` stands for the text of the last tool result and `${prompt}` for the last
message of the user. Which reply comes is told by the number of whole replies in the request, so a conversation that
is resumed goes on where it was.
"""

from functools import lru_cache
from pathlib import Path

import msgspec

from app.engine.errors import ConfigurationError
from app.protocol.json import JsonObject
from app.regular_file import read_regular

_LARGEST = 5_000_000


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    arguments: JsonObject = {}
    id: str = ""


class ScriptedReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reply: see the module's text."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    when: str = ""
    delay_s: float = 0.0
    piece_delay_s: float = 0.0
    piece_length: int = 0
    error: str = ""


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole script; each entry is a reply or a choice of several."""

    replies: tuple[ScriptedReply | tuple[ScriptedReply, ...], ...]
    about: str = ""

    def reply(self, number: int, last_result: str) -> ScriptedReply | None:
        """The reply with this number (from 0), None when the script is over or no choice fits."""
        if number >= len(self.replies):
            return None
        entry = self.replies[number]
        choices = (entry,) if isinstance(entry, ScriptedReply) else entry
        return next((choice for choice in choices if choice.when in last_result), None)


@lru_cache(maxsize=32)
def load(path: Path) -> Script:
    """Read a script; raises `ConfigurationError` that names the file and the field."""
    import yaml  # 20 ms, and only scripts need it

    try:
        return msgspec.convert(yaml.safe_load(read_regular(path, _LARGEST).decode()), Script)
    except FileNotFoundError as error:
        names = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml"))) or "none"
        raise ConfigurationError(f"There is no script named {path.stem}. Scripts there are: {names}.") from error
    except (OSError, yaml.YAMLError, ValueError) as error:
        raise ConfigurationError(f"The script {path} cannot be read: {error}") from error
