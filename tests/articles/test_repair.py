"""What HTML and scraping did to the lines is undone; text in angle brackets that is no HTML stays."""

from __future__ import annotations

import pytest

from kb.articles.lines import classify
from kb.scraped.repair import repair


@pytest.mark.parametrize(
    ("text", "repaired"),
    [
        ("Restart <!-- licensed under Apache --> the <b>server</b>.", "Restart  the server."),
        ("<tr><td>E01</td> <td>disk full</td></tr>", "E01 | disk full"),
        ("use &lt;pid&gt; &amp; wait", "use <pid> & wait"),
        ("expects `<image>` and <|pad|>", "expects `<image>` and <|pad|>"),
        ("见 ![图](x.png) 处", "见  处"),
        ("<h3>Disk &amp; memory</h3>", "### Disk & memory"),
        ("<summary>The log</summary>", "**The log**"),
    ],
)
def test_html_goes(text: str, repaired: str) -> None:
    lines, _ = classify([text], 0)
    assert [line.text for line in repair(lines, plain=False)] == [repaired]


@pytest.mark.parametrize(
    ("texts", "joined"),
    [
        (["-", "", "text"], ["- text"]),
        (["将", "map_num_proc", "参数设置为1。"], ["将 `map_num_proc` 参数设置为1。"]),
        (["执行完毕。", "map_num_proc", "参数设置为1。"], ["执行完毕。", "map_num_proc", "参数设置为1。"]),
    ],
)
def test_torn_lines_are_joined_on_a_page_without_headings(texts: list[str], joined: list[str]) -> None:
    lines, _ = classify(texts, 0)
    assert [line.text for line in repair(lines, plain=True)] == joined
