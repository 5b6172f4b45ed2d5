"""What `kb review` says, in English and Chinese: why a post may be the fix, the keys, the messages."""

from __future__ import annotations

from kb.importers.posts import Post, Who
from kb.records import Lang

__all__ = ["SAYS", "WHO", "because"]

_REASONS: dict[str, tuple[str, str]] = {
    "by_insider": ("by a member of the repository", "仓库成员所写"),
    "solved_by_asker": ("the asker says that it is solved", "提问者说已解决"),
    "solved_by_other": ("says that it is solved", "说已解决"),
    "solved_and_how": ("says how it was solved", "说明了怎样解决"),
    "opening_solved": ("the first post says how it was solved", "首帖写明了解决办法"),
    "opening_advises": ("the first post is advice", "首帖就是解决办法"),
    "action": ("names something to do", "提出了做法"),
    "code": ("names a command or a setting", "有命令或配置"),
    "heading": ("introduced as a solution", "以“解决办法”开头"),
    "link": ("links to a page", "给出链接"),
    "change": ("names a pull request or a release", "提到 PR 或版本"),
    "closing_pull": ("names the pull request that closed it", "提到关闭此问题的 PR"),
    "released": ("says that a release has the fix", "说新版本已修复"),
    "confirmed_by_asker": ("the asker confirms it", "提问者确认有效"),
    "confirmed_by_other": ("somebody confirms it", "有人确认有效"),
    "thanked_by_asker": ("the asker thanks for it", "提问者表示感谢"),
    "says_how": ("answers how it was solved", "回答了怎样解决"),
    "liked": ("has reactions", "有人点赞"),
    "last_word": ("the last word of a closed thread", "关闭前的最后一条"),
    "only_answer": ("the only answer", "唯一的回答"),
    "solved_label": ("the thread is labelled as solved", "帖子带有已解决标签"),
    "denied": ("somebody says that it did not help", "有人说没有用"),
    "unsolved": ("says that it is not solved", "说没有解决"),
    "same": ("reports the same problem", "报告同样的问题"),
    "asks": ("asks for information", "在询问信息"),
    "question": ("ends with a question", "以问句结尾"),
    "unsure": ("is a guess", "只是猜测"),
    "pending": ("promises it for later", "说以后处理"),
    "closing": ("only closes the thread", "只是关闭帖子"),
    "error": ("shows another failure", "贴出新的报错"),
    "nothing": ("names nothing to do", "没有提出做法"),
    "rejected_label": ("the thread is labelled as not to be solved", "帖子带有不予解决的标签"),
}

WHO: dict[Lang, dict[Who, str]] = {
    "en": {"asker": "asker", "insider": "member", "other": "", "bot": "bot"},
    "zh": {"asker": "提问者", "insider": "成员", "other": "", "bot": "机器人"},
}

SAYS: dict[Lang, dict[str, str]] = {
    "en": {
        "keys": "1-9 fix · a accept · e edit · s skip · d duplicate · t thread · u undo · ? help · q quit",
        "help": """\
1-9  take this post as the fix
a    accept: the article is built at the end; what it still lacks is said first
e    open it in your editor ($VISUAL, $EDITOR)
s    skip it: it stays a draft
d    it is a duplicate: shows the nearest known issues to choose from
t    show all posts of the thread
u    take the last decision back
q    stop; what was decided is written already""",
        "draft": "draft", "thread": "thread", "errors": "Error lines", "symptom": "Symptom", "fix": "Fix",
        "for": "for", "against": "against", "first": "first post", "comment": "comment {n}", "more": "… {n} more lines",
        "no thread": "no thread travels with this draft", "no posts": "nobody answered in this thread",
        "no drafts": "no draft waits for review", "picked": "post {n} is the fix now",
        "no post": "there is no post {n} here", "lacks": "It still lacks:", "again": "a again accepts it all the same",
        "blocked": "errors have to be mended first: pick a fix, or e edits", "accepted": "accepted: {path}",
        "skipped": "skipped: {path}", "nearest": "The nearest known issues; a digit chooses, any other key goes back:",
        "none near": "no known issue is near", "duplicate": "{path} is a duplicate of {issue}",
        "undone": "taken back: {path}", "no undo": "nothing to take back", "unknown key": "? shows the keys",
        "end": "{accepted} accepted, {duplicates} duplicates, {left} still drafts",
        "build later": "accepted and not built yet: kb build", "unread": "cannot be read, left as it is: {error}",
    },
    "zh": {
        "keys": "1-9 选解决办法 · a 接受 · e 编辑 · s 跳过 · d 重复 · t 全部评论 · u 撤销 · ? 帮助 · q 退出",
        "help": """\
1-9  以这一条作为解决办法
a    接受：最后统一构建；先说明还缺什么
e    用编辑器打开（$VISUAL、$EDITOR）
s    跳过，仍为草稿
d    与已有问题重复：列出最接近的问题供选择
t    显示帖子的全部内容
u    撤销上一个决定
q    退出；已做的决定都已写入""",
        "draft": "草稿", "thread": "帖子", "errors": "报错行", "symptom": "现象", "fix": "解决方案",
        "for": "支持", "against": "反对", "first": "首帖", "comment": "评论 {n}", "more": "……还有 {n} 行",
        "no thread": "这份草稿没有附带帖子", "no posts": "帖子里没有人回答",
        "no drafts": "没有待审阅的草稿", "picked": "已选第 {n} 条作为解决办法",
        "no post": "这里没有第 {n} 条", "lacks": "还缺：", "again": "再按一次 a 仍然接受",
        "blocked": "要先改掉错误：选一条解决办法，或按 e 编辑", "accepted": "已接受：{path}",
        "skipped": "已跳过：{path}", "nearest": "最接近的已知问题；按数字选择，其他键返回：",
        "none near": "没有接近的已知问题", "duplicate": "{path} 与 {issue} 重复",
        "undone": "已撤销：{path}", "no undo": "没有可撤销的决定", "unknown key": "按 ? 查看按键",
        "end": "接受 {accepted} 份，重复 {duplicates} 份，仍有草稿 {left} 份",
        "build later": "已接受但尚未构建：kb build", "unread": "无法读取，保持原样：{error}",
    },
}  # fmt: skip


def because(post: Post, lang: Lang) -> tuple[str, str]:
    """What speaks for the post as the fix, and what against it, in words."""
    which = 1 if lang == "zh" else 0
    joint = "、" if lang == "zh" else "; "
    speak = {
        sign: joint.join(
            _REASONS[name.removeprefix("-")][which] for name in post.reasons if name.startswith("-") is sign
        )
        for sign in (False, True)
    }
    return speak[False], speak[True]
