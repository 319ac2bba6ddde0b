"""A conversation as one HTML file: all branches, and nothing that a browser would run or fetch."""

import asyncio
import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from errand.engine.core.errors import InvalidParams, NotFound
from errand.engine.data.page_export import export_pages
from errand.engine.storage.records import agents, conversations, nodes
from errand.protocol.blocks import (
    Block,
    ImageBlock,
    NoticeBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
)
from errand.protocol.data import DataExportParams, DataExportResult
from errand.text.redaction import Redactor
from tests.engine.data.test_round_trip import PICTURE, Home, home
from tests.support.records import agent, conversation, node

HOSTILE = (
    "<script>alert(1)</script> <img src=x onerror=alert(2)>",
    "[a](javascript:alert(3)) [b](data:text/html,<script>alert(4)</script>) [c](vbscript:x) [d](file:///etc/passwd)",
    "[e](JaVaScRiPt:alert(5)) [f](&#106;avascript:alert(6)) <javascript:alert(7)> [g](//evil.test/x) [h](x.html)",
    "![p](http://evil.test/pixel.png) ![q](data:image/svg+xml;base64,PHN2Zz4=) ![r](javascript:alert(8))",
    '[t](https://ok.test "\\" onmouseover=\\"alert(9)")',
    "```html\n</code></pre><script>alert(10)</script>\n```",
    '~~~"><script>alert(11)</script>\nx\n~~~',
    "</details></article></main><svg onload=alert(12)><style>*{display:none}</style>",
    "&lt;script&gt;alert(13)&lt;/script&gt; \u2028 \x00 <!-- x -->",
)
ALLOWED = {
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "h1",
    "h2",
    "p",
    "article",
    "header",
    "b",
    "div",
} | {
    *("details", "summary", "pre", "code", "figure", "figcaption", "img", "a", "span", "em", "strong", "ul", "li"),
    *("table", "thead", "tbody", "tr", "th", "td", "blockquote", "hr", "br", "s", "ol", "h3"),
}


class Markup(HTMLParser):
    """Every tag of a page with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def all_of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


async def put(data_home: Home, *of_nodes: tuple[str, str | None, tuple[Block, ...]], head: str) -> None:
    for write in (
        conversations.save(msgspec.structs.replace(conversation(), title="A <b>bold</b> title")),
        *(nodes.save(msgspec.structs.replace(node(i, parent), blocks=blocks)) for i, parent, blocks in of_nodes),
        agents.save_agent(agent("a1", 1, head)),
    ):
        data_home.database.journal.put(write)
    await data_home.database.journal.flush()


async def written(data_home: Home, path: Path, leaf_id: str | None = None) -> tuple[str, DataExportResult]:
    params = DataExportParams(path=str(path), format="html", conversation_ids=("c1",), leaf_id=leaf_id, overwrite=True)
    done = await export_pages(data_home.database, data_home.paths, Redactor(), params)
    return await asyncio.to_thread(path.read_text, "utf-8"), done


async def test_hostile_transcript_runs_and_fetches_nothing(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as data_home:
        called = ToolCallBlock(call_id="1", tool="<script>", arguments={"x": HOSTILE[0]})
        result = ToolResultBlock(
            call_id="1", tool="</summary><script>", text=HOSTILE[7], is_error=False, summary=HOSTILE[0]
        )
        rest = (
            ThinkingBlock(text=HOSTILE[7]),
            called,
            result,
            NoticeBlock(kind="info", text=HOSTILE[0]),
            ImageBlock(media_type="image/svg+xml", data="PHN2ZyBvbmxvYWQ9YWxlcnQoMSk+", name="<svg>"),
            ImageBlock(media_type="image/png", path="/etc/passwd", name="p"),
        )
        await put(
            data_home, ("n1", None, tuple(TextBlock(text=text) for text in HOSTILE)), ("n2", "n1", rest), head="n2"
        )
        page, done = await written(data_home, tmp_path / "page.html")
    assert done.nodes == 2
    markup = Markup(page)
    assert {tag for tag, _ in markup.tags} <= ALLOWED
    names = {name for _, attributes in markup.tags for name in attributes}
    assert not [name for name in names if name.startswith("on") or name == "style"]
    assert {anchor["href"] for anchor in markup.all_of("a")} == {"https://ok.test", "http://evil.test/pixel.png"}
    assert markup.all_of("img") == []
    assert "default-src 'none'; img-src data:; style-src 'sha256-" in page
    assert page.count("<style>") == 1 and "<title>A &lt;b&gt;bold" in page


async def test_page_embeds_pictures_and_folds_tools(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as data_home:
        copy = data_home.paths.attachments / "a1b2" / "photo.png"
        copy.parent.mkdir()
        copy.write_bytes(PICTURE)
        image = ImageBlock(media_type="image/png", path=str(copy), name="photo.png")
        call = ToolCallBlock(call_id="1", tool="shell", arguments={"command": "ls"})
        text_block = TextBlock(text="Look:\n\n```python\nprint('<x>')\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |")
        await put(data_home, ("n1", None, (text_block, image)), ("n2", "n1", (call,)), head="n2")
        page, _ = await written(data_home, tmp_path / "page.html")
    markup = Markup(page)
    (picture,) = markup.all_of("img")
    assert (picture["src"] or "").startswith("data:image/png;base64,")
    assert "<summary>Called shell</summary>" in page and "&quot;command&quot;" in page
    assert "print('&lt;x&gt;')" in page and "<td>2</td>" in page
    assert not re.search(r'(?:src|href)="(?!data:image/png|#)', page)


async def test_page_contains_the_chosen_branch_and_links_to_others(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as data_home:
        tree = {"n1": None, "n2": "n1", "n3": "n2", "n4": "n1", "n5": "n4", "n6": "n4", "m1": None}
        await put(data_home, *((i, parent, (TextBlock(text=f"I am {i}."),)) for i, parent in tree.items()), head="n3")
        page, done = await written(data_home, tmp_path / "page.html")
        branch, part = await written(data_home, tmp_path / "branch.html", "n6")
    assert (done.nodes, part.nodes) == (7, 3)
    positions = [page.index(f"I am {i}.") for i in ("n1", "n2", "n3", "n4", "n6", "m1", "n5")]
    assert positions == sorted(positions)
    ids = {attributes["id"] for _, attributes in Markup(page).tags if "id" in attributes}
    links = {(attributes["href"] or "")[1:] for attributes in Markup(page).all_of("a")}
    assert links <= ids and {"n-n4-branch", "n-m1-branch", "n-n5-branch", "n-n1"} <= links
    assert [i for i in tree if f"I am {i}." in branch] == ["n1", "n4", "n6"]
    assert "4 entries on other branches are not in this file." in branch


async def test_branch_export_requires_a_single_conversation(tmp_path: Path) -> None:
    async with home(tmp_path / "home") as data_home:
        await put(data_home, ("n1", None, (TextBlock(text="x"),)), head="n1")
        with pytest.raises(NotFound, match="no node 'n9'"):
            await written(data_home, tmp_path / "page.html", "n9")
        everything = DataExportParams(path=str(tmp_path / "all"), format="html", leaf_id="n1")
        with pytest.raises(InvalidParams, match="a single conversation"):
            await export_pages(data_home.database, data_home.paths, Redactor(), everything)
        assert not (tmp_path / "all").exists()
