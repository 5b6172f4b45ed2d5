"""Here is a heading or a sentence that only announces; tell me whether a reason, a cure or something else follows.

The words of `vocabulary` cover most headings; these are the ones that are whole sayings, as people speak.
"""

from __future__ import annotations

import re

__all__ = ["lead_of", "role_of_saying"]

_IT = r"(?:it|this|that|these|they|them|those|things|the (?:problem|error|issue|failure|crash)s?)"
_ASIDES = r"(?: (?:now|then|here|instead|about it|next|again|first|up|like|in \w+|on \w+)){0,2}"
_PATTERNS = [
    (role, re.compile(rf"(?:{pattern})\??"))
    for role, pattern in (
        ("fix", rf"(?:what|how) (?:to|(?:we|i|you)(?: can| should)?|did (?:we|i)|do (?:we|i)|can (?:we|i|you)) "
                rf"(?:fix|solve|resolve|cure|repair|change|do|try|work around|recover|get out of|get rid of|"
                rf"clear|handle)(?:ed|d)?"
                rf"(?: {_IT})?{_ASIDES}|(?:getting|putting|setting|making) {_IT} (?:right|back|to work|work|working)"
                rf"|the way out|ways? out|making it work|what (?:helps|helped|works|cured it|solves it)"),
        ("cause", rf"why (?:does |did |is |are |do |was )?{_IT}(?: \w+){{0,3}}|what (?:is|was|lies|"
                  rf"lay) behind {_IT}|what (?:really )?went on"
                  rf"|where {_IT} (?:comes|came) from|behind the (?:error|failure|problem)|what (?:triggers|"
                  rf"triggered|broke) {_IT}"),
        ("cause", r"why (?:you(?:['’]re| are)?|we(?:['’]re| are)?|i) (?:see|saw|get|got|hit)\w*(?: \w+){0,3}"),
        ("symptom", rf"(?:what|how) (?:you|we|i|users?|people|customers|operators)(?: \w+)? "
                    rf"(?:see|saw|get|got|notice|noticed|observe|observed|experience|experienced|reported|"
                    rf"ran into|hit|met)s?{_ASIDES}"
                    rf"|how {_IT} (?:shows|looks|looked|appears|manifests|began|started){_ASIDES}"
                    r"|(?:例子|样子|看到的现象|遇到的情况|出了什么(?:事|问题)|(?:故障|问题|报错)(?:长什么样|的样子))"),
        ("fix", r"(?:最后|最终|后来|我们?|于是)?(?:就?是)?(?:这么|这样|如此)(?:去|来)?"
                r"(?:改|解决|处理|弄|搞定|修|做|修复)(?:好|掉)?的?"),
        ("cause", r"(?:真正的?|根本)?原因(?:说起来|说来|讲起来|其实|倒|也|并|很|不|挺){1,4}(?:复杂|简单|难|好找)"),
        ("theory", r"(?:知识点?|相关知识)(?:延伸|补充|扩展|拓展|小结)|(?:延伸|扩展|拓展)(?:知识|一下)"),
        ("prevention", rf"(?:how (?:to|we|you) |)(?:prevent|avoid|keep|stop)(?:ing)? {_IT}(?: \w+){{0,4}}|"
                       rf"(?:so that )?{_IT} (?:never|not) (?:happens? )?again"
                       r"|(?:如何|怎样|怎么)(?:避免|预防|防止).{0,8}|下次.{1,8}|以后怎么.{1,6}|"
                       r"事后.{0,2}(?:改进|改善|动作)"),
        ("theory", r"how (?:the |an? )?[\w\- ./]{2,40} works?|什么是.{1,16}|.{1,16}是(?:什么|如何工作的|"
                   r"怎么工作的)|.{1,12}的?(?:工作)?(?:原理|机制)(?:简介|浅析|概述)?"),
        ("fix", r"(?:最终|最后|后来|我们)?(?:是)?(?:如何|怎么|怎样|该怎么)(?:去|来)?(?:解决|修复|处理|弄好|"
                r"搞定|办|改|修|应对|恢复|绕过|规避).{0,4}"
                r"|(?:最终|最后)(?:的)?(?:办法|方案|做法|解决|处理).{0,4}"),
        ("cause", r"(?:到底|究竟)?(?:是)?(?:为什么|为何|为啥|怎么)会?(?:这样|如此|出现|发生|报错|失败|变慢|"
                  r"卡住).{0,4}|(?:问题|毛病|症结|错)(?:到底|究竟)?出在(?:哪里?|什么地方).{0,2}"),
        ("diagnosis", r"(?:how (?:to|we|i|you can) )(?:check|confirm|diagnose|tell|detect|find|spot|"
                      r"track down|trace)\w*(?: \w+){0,4}"
                      r"|(?:如何|怎么|怎样)(?:确认|判断|定位|排查|查看|检查).{0,6}"),
    )
]  # fmt: skip


def role_of_saying(key: str) -> str:
    """The role of a heading that is a whole saying: `what we did about it`, `最后怎么解决的`."""
    return next((role for role, pattern in _PATTERNS if pattern.fullmatch(key)), "")


# A sentence that only says what the next ones are about.
_LEADS = (
    (
        "cause",
        re.compile(
            r"^\W{0,4}(?:那么?|所以|但)?.{0,6}(?:为什么|为何|为啥|怎么会).{0,16}[？?]\W{0,3}$|"
            r"^\W{0,4}.{0,12}(?:原因|道理|来龙去脉)(?:其实)?(?:很简单|如下|有[一二三两几]个|是这样的?|在这里|"
            r"在此)\W{0,3}$|"
            r"^\W{0,4}(?:so |but )?why (?:does|did|is|was|do|are|were|would)\b.{0,80}\?\W{0,2}$|"
            r"^\W{0,4}(?:the (?:reason|cause|explanation) is simple|here(?: is|['’]s) (?:why|what (?:happened|"
            r"happens|went wrong)))\W{0,3}$",
            re.IGNORECASE,
        ),
    ),
    (
        "fix",
        re.compile(
            r"^\W{0,4}.{0,6}(?:先说|说说|直接上|下面说|来看看?|直接给出?)?.{0,6}(?:怎么|如何)(?:弄好|搞定|"
            r"解决|修好?|处理|办|恢复)(?:的|它|呢)?\W{0,3}$|"
            r"^\W{0,4}.{0,8}(?:解决|修复|处理)(?:办法|方法|方案|步骤|过程)?(?:很简单|如下|是这样的?)\W{0,3}$|"
            r"^\W{0,4}(?:here(?: is|['’]s) (?:how|what (?:fixed|worked|to do|i did|we did))\b.{0,50}|"
            r"(?:the )?(?:fix|solution|cure|remedy) (?:is|was) (?:simple|easy|short|quick)|how (?:did|do) (?:i|"
            r"we|you) (?:fix|solve) (?:it|this|that)\?)\W{0,3}$",
            re.IGNORECASE,
        ),
    ),
)


def lead_of(sentence: str) -> str:
    """ "cause" or "fix" when the sentence only announces it: `为什么会这样呢？`, `Here is how we fixed it.`"""
    return next((role for role, lead in _LEADS if lead.search(sentence.strip())), "")
