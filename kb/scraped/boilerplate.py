"""Marks the lines of a web page that are not part of its article: menus, adverts, copyright, counters.

A line is boilerplate when one of the phrases below opens or fills it. From the first list of other articles that no
section of the article follows, everything to the end is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kb.articles.lines import Line

__all__ = ["mark_boilerplate"]

# Phrases that make a line boilerplate wherever they stand in it.
_PHRASE = re.compile(
    r"版权声明|CC 4\.0 BY|转载请(?:附上|注明)|阅读量|点赞数|点赞.{0,8}(?:收藏|关注|支持)|(?:欢迎|记得|"
    r"麻烦).{0,6}(?:点赞|关注|收藏)|收藏备用|一键三连|原创不易|"
    r"扫码关注|二维码|是否解决了?[您你]|关注.{0,8}公众号|公众号.{0,12}(?:回复|关注)|加入.{0,6}(?:交流群|QQ群|微信群)|"
    r"登录后查看全文|热门项目推荐|相关项目推荐|热门内容推荐|最新内容推荐|项目优选|"
    r"是否对您有帮助|是否有帮助|文档反馈|人参与编辑|点个赞|意见反馈|提交反馈|在线客服|提交工单|联系技术支持|"
    r"父主题|立减|优惠券|"
    r"限时优惠|报名《|课程链接|查看PDF|我的收藏|产品详情|阅读全文|展开全文|"
    r"分享到|评论区留言|打赏|赞赏码|posted @|编辑\s?收藏\s?举报|免责声明|"
    r"Skip to (?:main )?content|\b\d{1,3} min(?:ute)?s? read|Was this (?:page |article |answer |document )?helpful|"
    r"Edit this page|Edit on GitHub|"
    r"Share this|Sign up for free to join|Sign up for our|Subscribe to|newsletter|uses? cookies|cookie (?:policy|"
    r"notice|settings)|"
    r"You might also like|People who viewed|also viewed|llms\.txt|Documentation Index|All rights reserved|"
    r"Privacy Policy|Terms of (?:Service|Use)|"
    r"fast-track publication|Solution (?:Verified|Unverified|In Progress)|Did you like this post|订阅专栏|专栏简介|"
    r"招贤纳士|上一页 \d|Powered by|Report (?:a problem|an issue) (?:with|on) this page|Did you find this|"
    r"Leave a (?:comment|reply)|"
    r"Click here to|Join our (?:Discord|Slack|community)|Follow us on|Already have an account|Back to top|"
    r"Thanks for reading|Log ?in to (?:read|view|see) the (?:full|whole|rest)|回复可见|往期(?:回顾|推荐|精彩)",
    re.IGNORECASE,
)
# Phrases that must open the line, or be all of it.
_OPENING = re.compile(
    r"^\s{0,20}(?:[>*#-]{1,4}\s?)?(?:[（(]完[)）]|文章标签[:：]|分类专栏|专栏[:：]|标签[:：]|更新时间[:：]|"
    r"发布时间[:：]|发布于|"
    r"修改于|最后更新|最近更新|编辑于|时间[:：].{0,40}浏览|作者[:：]|来源[:：]|"
    r"上一篇|下一篇|相关推荐|推荐阅读|猜你喜欢|相关文章|热门文章|首页\s?$|首页 ?[/>›»]|/ \S|当前位置|收起\s?$|"
    r"暂无简介\s?$|目录\s?$|"
    r"于 ?\d{4}-\d\d-\d\d|\d{4}-\d\d-\d\d[\d :\s]{0,12}(?:作者|发布|阅读|浏览|编辑|Author|Posted|Published|Views?\b)|"
    r"(?:\d{1,6} ?)?阅读\s?\d|"
    r"阅读\s?\d{1,6}\s?分钟|浏览(?:量|次数)?[:：]?\s?\d|"
    r"以上就是(?:本|全部|今天)|想系统学习|Last (?:updated|modified|reviewed)|Updated (?:on )?[A-Z][a-z]{2,8} \d|"
    r"Published|Posted (?:on|by|in)|Written by|By [A-Z][a-z]+ [A-Z][a-z]+\s?$|"
    r"Part of:|Tags?:|Categories:|Filed under|Home [>/›»|]|Docs [>/›»]|Knowledge ?base [>/›»]|Related (?:articles|"
    r"posts|topics)\s?:?\s?$|Next(?: article| page)?[:：]|Previous(?: article| page)?[:：]|"
    r"← |→ |« |» |Table of contents\s?$|On this page\s?$|In this article\s?$|Comments? \(\d|\d{1,4} comments?\s?$|"
    r"Share\s?$|Print\s?$|import \S{1,60} from ['\"]|"
    r"[\w.-]{2,40}/[\w.-]{2,60} ?(?:·|»|›|\|) ?(?:Issues?|Pull|Discussions?)|(?:Open|Closed|Merged|Solved) ?· ?|"
    r"(?:[*_]{2}[A-Z]\w{2,20}:[*_]{2} ?[^*·|\n]{1,60}[·|] ?){1,9}|"
    r"[\w *.@-]{1,60} opened this issue|This issue has been (?:locked|closed|automatically)|Labels?:\s)"
)
_TAIL_OPENING = re.compile(
    r"^\s{0,8}(?:[#>*-]{1,4}\s?)?(?:登录后查看全文|热门项目推荐|相关项目推荐|热门内容推荐|最新内容推荐|项目优选|"
    r"相关推荐|推荐阅读|猜你喜欢|热门文章|最新文章|相关文章|GitCode百大|"
    r"You might also like|People who viewed|Related articles|Related posts|Recommended reading|More from|"
    r"Sign up for free to join|Comments\s?$|Recent posts|Log ?in to (?:read|view|see)|"
    r"(?:Popular|Recommended|Featured|Related|Trending|Hot) (?:open[- ]source )?(?:projects|repositories)\s?$)",
    re.IGNORECASE,
)


def mark_boilerplate(lines: Sequence[Line]) -> None:
    """Sets `kind` of the page's own lines to "boilerplate"."""
    cut = _tail(lines)
    for n, line in enumerate(lines):
        if (n >= cut and line.kind != "blank") or (
            line.kind not in ("blank", "code", "fence", "table")
            and (_OPENING.match(line.text) or _PHRASE.search(line.text))
        ):
            line.kind = "boilerplate"


def _tail(lines: Sequence[Line]) -> int:
    """Index from which on the page has only lists of other articles and counters."""
    cut = len(lines)
    for n in range(len(lines) - 1, -1, -1):
        line = lines[n]
        if line.kind == "heading" and not _TAIL_OPENING.match(line.text):
            break
        if line.kind == "text" and _TAIL_OPENING.match(line.text):
            cut = n
    return cut
