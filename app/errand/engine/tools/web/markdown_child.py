"""The process that converts a page to Markdown: the page is hostile, so it may only end this process.

The page (UTF-8) is read from the descriptor that is the first argument; the second is its address. The title and then
the Markdown go to standard output, each a JSON string in a line. It imports nothing else of the app.
"""

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

_MEMORY = 2_000_000_000
_CPU_S = 10
_LONGEST = 4_000_000
# Less than this of the main content means that it was not found.
_LEAST = 200


def main(arguments: Sequence[str]) -> int:
    _limit()
    descriptor, url = int(arguments[0]), arguments[1]
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        page = file.read().decode("utf-8", "replace")
    from html_to_markdown import ConversionOptions, PreprocessingOptions, convert

    title, text = "", ""
    for preset, removes in (("aggressive", True), ("minimal", False)):
        options = ConversionOptions(
            base_url=url,
            preprocessing=PreprocessingOptions(preset=preset, remove_navigation=removes, remove_forms=False),
            inline_data_media="ALT_TEXT_ONLY",
            compact_tables=True,
        )
        result = convert(page, options)
        title = result.metadata.document.title or ""
        text = _without_front_matter(result.content or "")
        if len(text) >= _LEAST:
            break
    sys.stdout.write(f"{json.dumps(title[:500])}\n{json.dumps(text[:_LONGEST])}\n")
    return 0


def _without_front_matter(text: str) -> str:
    if text.startswith("---\n"):
        _, _, text = text.partition("\n---\n")
    return text.strip()


def _limit() -> None:
    if sys.platform == "win32":
        return
    import resource

    for limit, value in ((resource.RLIMIT_AS, _MEMORY), (resource.RLIMIT_CPU, _CPU_S), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):  # a lower hard limit holds
            resource.setrlimit(limit, (value, value))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
