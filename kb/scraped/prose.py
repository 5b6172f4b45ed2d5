"""Classifies a sentence by cue words of both languages: a problem, a cause, an action, or none of a record's fields.

Used where a page gives no label: in an answer, in a paragraph without headings, for a cause inside the fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kb.logs.errors import has_error, quoted_errors

__all__ = [
    "is_action",
    "is_advice",
    "is_cause",
    "is_problem",
    "is_question_only",
    "is_unresolved",
    "sentences",
    "sort_of",
]

_ZH_CAUSE = (
    r"因为|由于|因此|原因(?:是|在于|有|如下|：|:|就|其实|很)|导致|造成|引起|引发|所致|源于|根源|归结|罪魁|多半是|"
    r"通常是|一般是|往往是|大多是|几乎都是|问题出在|初步判断|判断(?:是|为)|定位到|确认是|怀疑是|本质上|触发了|"
    r"说一下为什么|为什么会|是.{0,30}(?:缘故|的锅|惹的祸)|意味着|说明.{0,20}(?:没有|不|未)|自然(?:就|会|慢|"
    r"无法|不|只能|要)|难怪|怪不得|才发现|"
    r"(?:查|看|抓包|排查).{0,12}(?:后|才|之后)?发现"
)
_EN_CAUSE = (
    r"\bbecause\b|\bdue to\b|\bcaused by\b|\bcauses? (?:is|was|of)\b|\breasons? (?:is|was|for)\b|"
    r"\bhappens? (?:when|if|because|after)\b|\boccurs? (?:when|if|because)\b|"
    r"\bmeans? (?:that|the|your|there|it|you)\b|\bresults? (?:from|of)\b|\bstems? from\b|\bculprit\b|"
    r"\btriggered by\b|\bcomes? from\b|\bcame from\b|\broot cause\b|\bthe cause\b|"
    r"\bresponsible for\b|\bblame\b|\btherefore\b|\bas a result\b|\bhence\b|\bcaused the\b|\bwhich makes\b|"
    r"\bthat is why\b|\bwhy this\b|\bturn(?:s|ed) out\b|\bmy guess is\b|\blooks like\b|\bunderlying\b|"
    r"\bindicates? that\b|\b(?:showed|revealed|shows|reveals) (?:that|what|why|the reason)\b|\bwhat was going on\b"
)
_CAUSE = re.compile(_ZH_CAUSE + "|" + _EN_CAUSE, re.IGNORECASE)

# What is always advice, and verbs that are advice unless they say what was done (`删掉了`, `被移除`, `升级之后`).
_ZH_ADVICE = (
    r"(?:处理|解决|操作|修复|步骤|入手|方案|方法|调整)(?:如下|步骤)?[:：]\s{0,3}$|请(?!求)|即可|就行|就好|"
    r"就可以|便可|搞定|只需|只要|解决(?:方法|办法|方案|：|:)|"
    r"可以解决|得以解决|修复(?:方法|"
    r"：|:)|建议|推荐|"
    r"应(?:当|该|将|把)|需要(?:将|把|在|先|手动|设置|安装|升级|确保)|先.{0,30}再|试试|确保|"
    r"[把将][^，。；]{1,60}(?:改|设|换|加|降|调|写|放|迁|移|拷|提|删|装|限|配|指|传|转|拆|关|开|换|退|降|"
    r"重)(?![进在成到入为出回掉死错]?成?了)|"
    r"(?:^|[，,；;。]\s?|时|里|中)(?:先|再|然后|接着|最后|补|加|传|跑|敲|装|换|退|设|填|"
    r"配)[^，。`]{0,8}`[^`\n]{1,200}`|"
    r"使用.{1,40}(?:代替|替代|参数|选项)|用.{1,40}(?:代替|替代|重新)"
)
_ZH_VERB = (
    r"改成|改为|改用|改到|改回|设为|设成|设置(?![。，,、；项页里中])|调整|调成|调到|调大|调小|降到|降低到|提高到|"
    r"提升到|换成|换用|替换|写成|写进|加上|加到|补上|补充|"
    r"添加|增加|去掉|移除|删除|删掉|卸载|安装|重装|重新|升级|降级|回退|回滚|更新到|更新驱动|执行|运行|重启|启用|"
    r"开启|关闭|关掉|禁用|打开|导出|指定|"
    r"显式|手动(?!.{0,6}时)|检查|确认|清理|清空|释放|扩容|限制|避开|绕过|切换|尝试|声明|编译|拷贝|复制|挂载|授权|赋予|加入|"
    r"放行|同步"
)
_ZH_DO = (
    rf"{_ZH_ADVICE}|(?<![被已经没有未不动会刚法能])(?:{_ZH_VERB})"
    r"(?![了的过后前失时完成])(?!之[前后]|不|命令|脚本的|任务|报错|失败|之|期间|阶段)"
)
# A clause that opens with the verb is an instruction; later in a clause the verb may describe what something does.
_ZH_INSTRUCTION = re.compile(
    rf"(?:^[\W\d]{{0,8}}|[，,；;：:、]\s?|然后|再|并|先|接着|最后|可以|才能)(?:手动|重新|直接|统一|"
    rf"全部)?(?:{_ZH_VERB}|改|用(?![户的到了于来量时])|给|"
    rf"在.{{1,40}}(?:{_ZH_VERB}))"
    r"(?![了的过后时])"
)
_VERB = (
    r"add|adjust|allow|append|apply|ask|avoid|bind|build|bump|call|cast|change|check|choose|clean|clear|clone|"
    r"close|combine|commit|compile|configure|confirm|connect|convert|copy|create|cut|decrease|define|"
    r"delete|detach|disable|disconnect|downgrade|download|drop|edit|enable|ensure|exclude|execute|expand|export|"
    r"extend|fix|force|free|give|go|grant|import|increase|init|initialise|initialize|insert|install|"
    r"invalidate|keep|kill|launch|let|limit|link|load|lower|make|mark|merge|migrate|mount|move|open|override|pass|"
    r"patch|pin|place|point|prefix|pull|purge|push|put|raise|re-?install|re-?run|re-?create|re-?start|re-?build|"
    r"rebase|recompile|reduce|"
    r"refresh|regenerate|register|release|reload|remount|remove|rename|replace|reset|restore|resubmit|retry|return|"
    r"revert|roll|rotate|run|save|scale|select|send|set|share|shorten|shut|shrink|skip|specify|split|start|"
    r"stop|switch|sync|take|tell|truncate|try|turn|uncomment|uninstall|unmount|unset|unzip|update|upgrade|upload|"
    r"use|wait|wipe|wrap|write|assign|attach|cap|deploy|drain|enlarge|evict|fetch|flush|halve|inspect|prune|provide|"
    r"provision|rebalance|reboot|reconnect|redeploy|reindex|relax|repair|reserve|resize|rewrite|"
    r"route|spread|supply|swap|"
    r"throttle|trim|tune|unlock|unpack|verify|whitelist"
)
_EN_DO = re.compile(
    rf"^[\W\d]{{0,8}}(?:(?:first|then|next|finally|so|and|or|just|simply|instead|alternatively|either|please|"
    rf"otherwise|also|after that|now),? )?(?:{_VERB})\b|"
    rf"\b(?:you|we|i) (?:can|could|should|must|need to|have to|may|might want to)\b|\bto (?:fix|solve|resolve|"
    rf"work around)\b|\b(?:fixed|resolved|solved|worked around|cured) (?:it )?(?:by|with|in)\b|"
    rf"\bworkaround\b|\bthe (?:\w+ )?(?:fix|solution|remedy|cure) (?:is|was)\b|\bshould be (?:set|changed|replaced|"
    rf"at least)\b|\bneeds? to be\b|\bmust be (?:set|at least|installed|changed)\b|"
    rf"(?:[,;:]|\band|\bthen|\bor|\bplease|\bjust|\bsimply|\bto) (?:then |just |simply )?(?:{_VERB}) (?:`|the |it |"
    rf"a |an |your |to |--|all |both |from )|\bwith `[^`\n]{{1,200}}`.{{0,80}}\b(?:works|finishes|passes|runs|"
    rf"succeeds|starts|disappears|is gone)\b|"
    rf"\bma(?:de|kes) (?:it|them|the \w+) (?:go away|disappear|stop|work)|"
    rf"\b(?:i|we) (?:also |then |finally |just |simply )?(?:re\w{{2,12}}ed|re-\w{{2,12}}|copied|applied|"
    rf"installed|wrote|ran|put|gave|"
    rf"patched|fixed|cleared|deleted|dropped|turned|pointed|limited|split|merged|mounted|granted|allowed|opened|"
    rf"closed|told|"
    rf"let|excluded|shortened|doubled|halved|capped|extended|"
    rf"set|raised|lowered|changed|added|removed|switched|upgraded|"
    rf"downgraded|replaced|rolled|disabled|enabled|moved|pinned|rebuilt|increased|reduced)\b|\bhelps\b|\bsolves\b|"
    rf"\bfixes\b|\bit is enough to\b",
    re.IGNORECASE,
)
_DO = re.compile(_ZH_DO)
_PREVENTION = re.compile(
    r"防止再|避免再|避免以后|避免今后|(?:^|[，,；。])\W{0,3}以后|今后|下次|日后|为了?(?:避免|防止)|预防|防患|"
    r"长远来看|长期来看|平时|"
    r"怎么防止|如何防止|如何避免|"
    r"^\W{0,4}(?:to (?:prevent|avoid) (?:this|it|such|a|that|the same)|in (?:the )?future|next time|going forward|"
    r"for the future|long[- ]term|as a precaution|to keep it from)|"
    r"from happening again|prevent (?:a )?(?:recurrence|this from)",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"^\W{0,4}(?:补充一下|补充[:：，,]|(?:再|最后|顺带|简单|多)(?:说|聊|讲|提|介绍)(?:一下|一句|两句|几句)?|"
    r"(?:说|聊|讲)(?:一下|一说|一聊)?.{1,20}的(?:概念|原理|机制|背景)|顺便|顺带|另外说|题外话|值得一提|"
    r"多说一句|科普|扩展一下|原理上|by the way|a (?:word|"
    r"note|few words) (?:on|about)|some background|"
    r"as an aside|for background|for the curious|btw|incidentally|side note|fun fact|for reference)",
    re.IGNORECASE,
)
_UNRESOLVED = re.compile(
    r"(?:尚无|暂无|没有|目前无|还没有|尚未有|未有|并无|暂未|尚未).{0,16}(?:办法|方案|方法|解决|修复|回复|结论|补丁|"
    r"定论|答复)|(?:后续|下个|下一个|未来|将来).{0,4}版本.{0,8}(?:修复|解决|支持|发布)|等待.{0,16}(?:修复|发布|"
    r"版本|回复|合并|官方)|"
    r"仍为open|仍处于open|仍未关闭|仍未解决|尚未解决|未解决|仍然open|issue仍|无法解决|耐心等待|只能等|无解|"
    r"no (?:confirmed |known |official |working |real |good |permanent )?(?:workaround|fix|solution|resolution|"
    r"patch)s?\b|(?:still|remains?) (?:open|unresolved|unsolved|under investigation)|"
    r"not (?:yet )?(?:been )?(?:fixed|resolved|solved|released|merged)|"
    r"(?:will|to) be (?:fixed|addressed|resolved|released|included) in|await(?:s|ing)?\b.{0,30}(?:release|fix|"
    r"patch|reply|response|merge|maintainer)|wait(?:ing)? for (?:a|the|an) (?:\w+ )?(?:release|fix|patch|update|"
    r"merge|maintainer)|in a (?:future|later|coming|upcoming) (?:release|version)|"
    r"nobody has (?:found|confirmed)|no one has|unresolved|subscribe to the issue|under investigation|no eta",
    re.IGNORECASE,
)
_PROBLEM = re.compile(
    r"报错|错误|失败|异常(?!处理)|崩溃|卡住|卡死|停住|挂起|无响应|超时|中断|无法|(?<!能)不能|不了|不生效|"
    r"未生效|失效|丢失|"
    r"泄漏|溢出|不足|闪退|退出|白屏|黑屏|花屏|乱码|为空|变空|空白|NaN|nan\b|为0|变慢|缓慢|很慢|不动|不变|"
    r"停滞|延迟|积压|全是|全黑|全白|全绿|噪点|全为0|零分|恒为|反而|不匹配|不一致|冲突|缺失|找不到|不存在|拒绝|"
    r"被杀|重复|错乱|打乱|颠倒|胡言乱语|下降|爆炸|爆显存|显存不够|OOM|死锁|阻塞|"
    r"丢包|断开|断连|异常地|反复重启|不停|没有反应|没有变化|没变|过大|过小|过长|过多|过低|过高|没反应|不收敛|"
    r"不释放|没有释放|纹丝不动|打不开|连不上|起不来|装不上|编译不过|过期|占满|飙升|越界|失真|截断|怎么回事|坏了|"
    r"不工作|不可用|不识别|没声音|没有声音|对不上|不显示|消失|漏|错位|倍|"
    r"\berrors?\b|exception|\bfail(?:s|ed|ing|ure|ures)?\b|crash|\bhangs?\b|hung\b|\bstuck\b|freez|frozen|stall|"
    r"stopped|\bstops?\b|cannot|can['’]t|could not|couldn['’]t|unable|does ?n[o'’]t (?:work|start|load|show|appear|"
    r"open|connect|respond|find|stop|update|change|match|run|build|save)|"
    r"doesn['’]t|won['’]t|not (?:working|found|starting|loading|responding|available|recogni[sz]ed|detected|"
    r"visible|defined|supported)|missing|\blost\b|disappear|denied|refused|timed? ?out|timeout|\bslow|killed|abort|"
    r"corrupt|invalid|unexpected|wrong|broken|\bfills? up\b|different from|\bdiffers?\b|nothing (?:moves|happens)|"
    r"no longer|\bgone\b|no data|\bblank\b|\bblack\b|\bempty\b|garbage|garbled|leak|mismatch|out of memory|"
    r"\boom\b|exit ?code|"
    r"segfault|panic|traceback|warning|deadlock|conflict|rejected|blocked|never (?:finish|end|return|start|"
    r"complete)|forever|no (?:output|response|progress)|not progressed|goes? to zero|stays at|duplicate|diverge|"
    r"twice|infinite|ignored|silently|refuses|fatal|too (?:slow|large|long|many)|unusable|drops?\b|dropped|vanish|"
    r"nonsense|repeats|returns? (?:nothing|no\b|zero)|returned (?:nothing|no\b|zero)|zero (?:hits|results|rows)",
    re.IGNORECASE,
)
_HOW_TO = re.compile(
    r"^\W{0,6}(?:支持|如何|怎么(?!回事|办)|怎样|是否|能否|可否|可以|能不能|有没有|哪些|哪个|什么是|为何要|多少|"
    r"需要多|what is\b|what are\b|which\b|where\b|how (?:do|can|to|many|much|should|would|long)\b|can (?:i|we|it|"
    r"you)\b|"
    r"does\b|do (?:i|you|we)\b|is (?:there|it|this)\b|are there\b|where (?:can|do|is|are)\b|when (?:will|should)\b|"
    r"who\b|should i\b|will\b)|"
    r"^[^，。]{0,30}(?:能不能|能否|可不可以|支不支持|是否支持|有没有(?:办法|计划|打算))[^，。]{0,24}[?？]$|"
    r"(?:哪些|哪个|吗|什么|多少|几个|哪种|哪里下载)[^，。]{0,16}[?？]?$",
    re.IGNORECASE,
)
_BREAKS = re.compile(r"[。！？!?；](?:[”」』\"')）]{0,2})|\.(?=\s+[A-Z`\"'(\[]|\s*$)|[!?;](?=\s)")


def sentences(text: str) -> Iterator[str]:
    """The text cut after its stops, with all white space: joined, the pieces are the text again."""
    start = 0
    for stop in _BREAKS.finditer(text):
        if stop.group()[0] == "." and text[max(0, stop.start() - 4) : stop.start()].lower().endswith(
            ("e.g", "i.e", " vs", "etc")
        ):
            continue
        if stop.group() == "." and text[start : stop.start()].strip(" *").isdigit():
            continue  # the number of a list item
        yield text[start : stop.end()]
        start = stop.end()
    if text[start:].strip():
        yield text[start:]


def is_cause(sentence: str) -> bool:
    """It states a reason."""
    return _CAUSE.search(sentence) is not None


def is_action(sentence: str) -> bool:
    """It names an action: an instruction, or something that was done."""
    return _DO.search(sentence) is not None or _EN_DO.search(sentence.strip()) is not None


def is_advice(sentence: str) -> bool:
    """It instructs the reader, rather than describing what something does."""
    return (
        re.search(_ZH_ADVICE, sentence) is not None
        or _ZH_INSTRUCTION.search(sentence) is not None
        or _EN_DO.search(sentence.strip()) is not None
    )


def is_unresolved(sentence: str) -> bool:
    """It says that there is no fix yet."""
    return _UNRESOLVED.search(sentence) is not None


def is_problem(text: str) -> bool:
    """It says that something went wrong."""
    return _PROBLEM.search(text) is not None or bool(quoted_errors(text)) or has_error(text)


def is_question_only(title: str) -> bool:
    """A question for information (`支持哪些模型？`, `How do I print the summary?`), not a complaint."""
    return _HOW_TO.search(title.strip()) is not None and not (quoted_errors(title) or _PROBLEM.search(title))


def sort_of(sentence: str) -> str:
    """theory, prevention, unresolved, cause+fix, cause, fix, or "" for a plain statement."""
    if _ASIDE.match(sentence):
        return "theory"
    if _PREVENTION.search(sentence):
        return "prevention"
    if is_unresolved(sentence):
        return "unresolved"
    cause, fix = is_cause(sentence), is_action(sentence)
    return "cause+fix" if cause and fix else "cause" if cause else "fix" if fix else ""
