"""The words of section headings in Chinese and in English, by the role they give. Data only: `labels` reads with it.

A heading is a label when these words cover all of it: `错误现象分析` is 错误 + 现象 + 分析 and heads a symptom;
`内存不足问题的成因与解决方案` has words left over and is a title.
"""

from __future__ import annotations

__all__ = ["PHRASES_EN", "PHRASES_ZH", "TOPIC_WORDS_EN", "TOPIC_WORDS_ZH"]

# Roles. The first three are fields of a record; what `analysis` is depends on its surroundings; words of "" only fill.
#   symptom cause fix | analysis background faq answer | theory prevention diagnosis environment summary
#   verification impact progress rejected related toc tips confusable timeline

PHRASES_ZH: dict[str, str] = {
    "symptom": (
        "现象 症状 表现 具体表现 报错 报错信息 报错内容 报错提示 报错日志 报错截图 报错如下 错误信息 "
        "错误日志 错误提示 错误内容 错误消息 错误表现 错误描述 错误场景 异常信息 异常日志 异常描述 "
        "异常堆栈 异常表现 日志模式 问题描述 问题场景 问题表现 问题概述 问题现场 问题复现 问题重现 "
        "问题再现 问题情况 问题详情 问题内容 故障描述 故障场景 故障表现 故障信息 故障概述 情况描述 "
        "场景描述 描述 场景 异常 事故现场 复现步骤 复现过程 复现方式 重现步骤 复现 问题 错误 故障 "
        "症状描述 典型症状 典型现象 典型报错 报错现象 日志 日志如下 触发报错 现场 出现的问题 遇到的问题 "
        "问题是什么 发生了什么 你会看到 故障现场 现象描述 错误堆栈 堆栈信息"
    ),
    "cause": (
        "原因 问题原因探索 根源 根因 成因 诱因 病因 起因 缘由 本质 问题所在 症结 触发场景 触发条件 "
        "触发原因 产生条件 真相 真相大白 真正的原因 为什么会这样 为什么会出现 为什么会报错 为什么会发生 "
        "为什么 为何发生 为何出现 为何如此 怎么回事 罪魁祸首 机理 失效机理 失败机理 问题溯源 问题定性 "
        "溯源 根本问题 原因何在 问题出在哪 问题出在哪里 背后的原因"
    ),
    "fix": (
        "解决方案 解决方法 解决办法 解决方式 解决措施 解决步骤 解决过程 解决之道 解决对策 解决策略 "
        "解决途径 解决思路 解决手段 解决 解法 修复方案 修复方法 修复办法 修复方式 修复措施 修复步骤 "
        "修复过程 修复建议 修复 修法 改法 修改方法 修改方案 修改方式 修改建议 修改 代码修改 "
        "代码层面的修改 配置修改 配置调整 处理方法 处理办法 处理步骤 处理方案 处理方式 处理建议 处理措施 "
        "处理过程 处理 处置 处置方法 处置措施 处置建议 处置步骤 处置方案 应对方案 应对方法 应对措施 "
        "应对办法 应对策略 应对 规避方法 规避方案 规避措施 规避办法 规避方式 规避 绕过方法 绕过方案 "
        "绕过办法 变通方法 变通方案 临时方案 临时措施 临时办法 临时处理 临时解决 临时规避 止血 止血措施 "
        "优化方案 优化措施 优化方法 改进方案 补救措施 补救办法 补救方法 补救 正确做法 正确写法 "
        "正确姿势 正确用法 正确配置 正确方式 推荐做法 操作步骤 操作方法 具体步骤 具体操作 具体做法 尝试 "
        "怎么办 怎么解决 如何解决 如何修复 如何处理 怎样解决 怎么修 怎么改 怎么处理 做法 办法 方法 方案 "
        "对策 措施 根治方案 根治 长期方案 短期方案 永久方案 恢复步骤 恢复方法 恢复措施 官方修复 官方方案 "
        "手动修复 最小改动 改动  对应方案 调整方案 调整方法 整改措施"
    ),
    "analysis": "分析 解析 剖析 探究 探索 探讨 探析 诊断 解读",
    "background": (
        "背景 引言 前言 概述 简介 导语 前情 前情提要 起源 缘起 写在前面 介绍 摘要 导读 项目背景 业务背景 "
        "内容简介 概要 说明 适用场景 问题由来 事情经过 事件经过 经过 引子 开篇 概览"
    ),
    "theory": (
        "原理 释义 技术背景 技术背景分析 技术原理 技术原理深入 原理分析 原理解析 原理进阶 原理说明 "
        "技术细节 技术细节分析 技术实现细节 技术实现 技术配置 技术配置分析 技术要点 深入理解 关联技术 "
        "补充 补充说明 补充知识 补充阅读 延伸 延伸阅读 延伸知识 延伸思考 扩展 扩展阅读 扩展知识 拓展 "
        "拓展阅读 知识点 知识拓展 知识补充 基础知识 前置知识 概念 基本概念 术语 名词解释 技术解析 "
        "技术剖析 技术探讨 技术深入 深入技术 深入解析 深入原理 机制 工作原理 工作机制 底层原理 底层机制 "
        "实现原理 实现机制 实现细节 技术分析 背景知识 相关知识 设计思想 设计原理 小知识 科普 技术意义 "
        "技术价值 技术影响 配置说明 参数说明 技术思考 原理深入 深入分析 源码分析 源码解读 源码解析"
    ),
    "prevention": (
        "最佳实践 最佳实践建议 实践建议 预防 预防措施 预防建议 预防方法 预防与改进 预防策略 防范措施 "
        "后续建议 后续改进 后续优化 后续措施 后续规划 后续计划 后续工作 改进措施 改进 改进项 改进计划 改进建议 "
        "建议 建议与总结 技术建议 其他建议 使用建议 优化建议 其他优化建议 开发建议 运维建议 经验 "
        "经验总结 经验教训 教训 技术启示 启示 启发 反思 复盘 长期改进 注意 注意事项 注意点 温馨提示 提醒 "
        "避坑指南 避坑建议 规范 规范建议 监控建议 加固 加固建议 防护措施 防患未然 如何避免 怎样避免 "
        "如何预防 避免方法 日常维护 行动项 整改计划 预防再发 防止再发 经验与教训 日常建议 配置建议 "
        "部署建议 小建议 小贴士 小技巧 技巧 提示 贴士 性能优化 性能建议 性能优化建议 注意要点"
    ),
    "diagnosis": (
        "排查 排查过程 排查步骤 排查办法 排查方法 排查思路 排查流程 排查路径 排查记录 排查经过 排查命令 "
        "排查手段 问题排查 故障排查 诊断流程 诊断步骤 诊断方法 诊断过程 诊断命令 诊断思路 定位 定位过程 "
        "定位方法 定位步骤 定位思路 问题定位 故障定位 查看方法 检查方法 检查步骤 检查项 如何确认 "
        "如何判断 如何定位 如何排查 确认方法 判断方法 验证思路 调查过程 调查 调试过程 调试方法 分析过程 "
        "分析思路 快速判断 快速诊断 排查经历 自查 自检 信息收集 收集信息"
    ),
    "environment": (
        "环境 环境信息 环境说明 环境描述 环境配置 运行环境 软件环境 硬件环境 系统环境 测试环境 实验环境 "
        "软硬件环境 版本 版本信息 软件版本 系统信息 适用版本 适用范围 影响版本 涉及版本 受影响版本 "
        "配置信息 机器配置 系统配置 适用环境 适用产品 环境版本 环境与版本 复现环境"
    ),
    "summary": (
        "总结 小结 结语 结论 结束语 尾声 后记 写在最后 最后 总结与展望 总结与建议 技术展望 展望 未来展望 "
        "总结归纳 回顾 全文总结 一句话总结 关键要点 要点 要点回顾 速览 本章小结 本节小结 本文小结 心得 "
        "心得体会 总结语 结尾"
    ),
    "verification": (
        "验证 验证结果 验证方法 验证步骤 效果验证 结果验证 修复验证 实施效果 效果 实施结果 处理结果 结果 "
        "测试结果 效果对比 恢复验证 如何验证 验证修复 验证一下 验证与效果 性能对比"
    ),
    "impact": "影响 影响范围 影响分析 影响面 故障影响 业务影响 影响评估 严重程度 影响说明",
    "progress": (
        "目前进展 当前进展 进展 最新进展 处理进展 当前状态 目前状态 现状 状态 后续进展 官方回复 官方进展 "
        "官方回应 社区进展 社区反馈 社区现状 修复计划 修复状态 修复进展 跟进情况 后续 官方态度"
    ),
    "rejected": (
        "无效方案 无效的方案 无效做法 无效尝试 无效的尝试 错误做法 错误写法 错误示范 错误方案 错误的做法 "
        "不推荐做法 不推荐的做法 不推荐 不建议 弯路 走过的弯路 失败的尝试 失败尝试 已尝试的方法 "
        "已排除的方向 排除的方向 误判 误区 常见误区 不要这样做 别这样做 不要做 反例 旧写法 尝试过但无效 "
        "无效的办法 无效办法 错误的方向 错误方向"
    ),
    "related": (
        "参考 参考资料 参考文献 参考链接 参考文档 参考文章 引用 相关链接 相关文章 相关文档 相关阅读 "
        "相关问题 相关推荐 相关资料 资料 附录 附 链接 来源 推荐阅读 更多阅读 更多 更多资源 资源 相关资源 "
        "相关错误 阅读更多 文档链接 致谢"
    ),
    "toc": "目录 文章目录 本文目录 导航",
    "timeline": (
        "时间线 时间轴 事件时间线 故障时间线 处理时间线 事故时间线 故障经过 事故经过 事故回顾 故障回顾 事件回顾"
    ),
    "confusable": "容易混淆 易混淆 易混淆问题 不要混淆 与其他问题的区别 区别 相似问题 类似问题",
    "faq": "常见问题 常见问题解答 常见疑问 疑问 问答 faq 答疑 常见问答",
    "answer": "答案 解答 回答 答复 答",
    "": (
        "的 与 和 及 以及 、 / & 或 可能 可能的 根本 根本性 主要 常见 常见的 技术 核心 原始 深入 深度 "
        "最终 官方 推荐 推荐的 完整 完整的 正确 相关 关键 可行 可行的 有效 有效的 实际 具体 详细 初步 "
        "快速 直接 间接 深层 深层次 真正 真正的 产生 出现 发生 触发 导致 引发 引起 造成 建议 实现 实施 "
        "方案 说明 描述 如下 总结 优化 步骤 本次 该 此 此类 这个 两种 三种 几种 多种 两个 三个 几个 多个 "
        "四种 四个 验证 汇总 梳理 情况 问题 错误 故障 报错 异常 详解 示例 内容 一 二 三 四 五 六 部分 "
        "典型 代码 配置 层面 层面的 工程 用户 本 我的 最 简单 另一种 其他 其它 补充 备选 替代 首选 最佳 "
        "影响 一览 清单 列表 类 常用 现象 技术性 落地 过程 系统 环境 策略 方向 推测 最小 具体的 详细的 "
        "简要 手动 自动 临时 长期 短期 永久 一般 通用 处理 综合 原因 深入的 应急 紧急 潜在 潜在的 内部 "
        "外部 背后 背后的 上述 以上 遇到 遇到的 碰到 碰到的 踩到的 看到的 观察到的 我们 我们的 我 大家 "
        "大家的 线上 各 针对性 对应 对应的 标准"
    ),
}

PHRASES_EN: dict[str, str] = {
    "symptom": (
        "symptom|symptoms|symptom & impact|symptoms & impact|symptom and impact|problem|issue|"
        "error|errors|the error|error message|error messages|error log|error logs|error output|"
        "error text|full error|traceback|stack trace|describe the bug|bug description|describe the issue|"
        "bug|what happened|what happens|what went wrong|what you see|what we saw|what i saw|what broke|"
        "what failed|what we observed|what we noticed|what users reported|what is this issue|"
        "what is the issue|what users see|observable symptoms|observed behavior|observed behaviour|"
        "actual behavior|actual behaviour|current behavior|current behaviour|problem description|"
        "issue description|problem statement|problem background and error analysis|problem background|"
        "failure|failures|the failure|reproduce|to reproduce|reproduction|steps to reproduce|"
        "reproduction steps|how to reproduce|minimal reproduction|reproducer|repro|logs|log|log output|"
        "relevant log output|output|where you see it|how it shows|how it looks|what it looks like|"
        "messages|message|description|the problem|the issue|the symptom|alert|signs|incident|question"
    ),
    "cause": (
        "cause|causes|root cause|root causes|reason|reasons|why|why this happens|why it happens|"
        "why this occurs|why it occurs|why does this happen|why is this happening|why it fails|"
        "why this fails|why it broke|what causes this|what causes it|what turned out to be wrong|"
        "what was wrong|what is going on|what's going on|what is happening|what's happening|"
        "what actually happened|underlying cause|underlying problem|underlying issue|underlying reason|"
        "explanation|the reason|culprit|trigger|triggers|rca|root cause analysis|core problem analysis|"
        "core problem|where it comes from|what's actually wrong|what's wrong|what is wrong|"
        "diagnosis and cause|contributing factors|contributing factor"
    ),
    "fix": (
        "fix|fixes|solution|solutions|resolution|resolutions|workaround|workarounds|work-around|remedy|"
        "remedies|remediation|how to fix|how to fix it|how to fix this|how to solve it|how to solve this|"
        "how to resolve|how to resolve it|how to solve|how do i fix it|fixing it|do this|do this instead|"
        "what to do|what to do instead|what to do about it|what you can do|what fixed it|what we changed|"
        "what we did|what i did|what i changed|how we fixed them|how we solved it|how i fixed it|"
        "what worked|step-by-step fix|step by step fix|correct usage|the right way|mitigation|"
        "mitigations|corrective action|corrective actions|action|actions|actions taken|action taken|"
        "repair|recovery|recovery steps|how we fixed it|getting out of it|proposed fix|"
        "accepted solution|resolving the issue|resolving the problem|to fix|to resolve|"
        "change to make|the change|try this|options|approach|approaches|method|methods|steps to fix|"
        "steps to resolve|patch|cure|remedial action|resolution steps|fix steps|solution steps|"
        "immediate action|immediate actions|immediate fix"
    ),
    "analysis": (
        "analysis|problem analysis|error analysis|issue analysis|diagnosis|technical analysis|"
        "investigation result|findings|assessment|discussion"
    ),
    "background": (
        "background|introduction|intro|overview|context|preface|abstract|about|problem overview|scenario|"
        "summary of the issue|tl;dr|tldr|tl dr|in short|about this page|about this document|general|"
        "preamble|prerequisites|before you begin|before you start"
    ),
    "theory": (
        "theory|how it works|how this works|how does it work|background theory|technical background|"
        "technical details|technical detail|details|deep dive|going deeper|further reading|"
        "under the hood|internals|why it matters|why this matters|concepts|terminology|glossary|"
        "what is it|the misleading signal|the bigger picture|a note on|notes|note|design notes|"
        "more information|additional information|more details|additional details|technical summary|"
        "learn more|further information|good to know|aside"
    ),
    "prevention": (
        "prevention|preventive measures|preventing it|preventing this|prevent it|how to prevent|"
        "how to prevent it|how to prevent this|how to avoid|how to avoid it|how to avoid this|"
        "avoiding it|avoid it next time|prevention & hardening|prevention and hardening|hardening|"
        "best practice|best practices|recommendations|recommendation|tips|tip|tips and tricks|lessons|"
        "lessons learned|lessons learnt|what we learned|what we learnt|what we changed afterwards|"
        "follow-up|follow-ups|follow up|follow-up actions|follow up actions|action items|next steps|"
        "future work|improvements|monitoring|warning|warnings|caution|general advice|performance tips|"
        "good practice|good practices|takeaways|key takeaways|long-term improvements|"
        "preventative measures|preventive action|preventive actions"
    ),
    "diagnosis": (
        "diagnostic steps|diagnostics|diagnose it|diagnose|how to diagnose|how to diagnose it|diagnosing|"
        "quick triage|triage|how to detect|how to detect it|detection|how to check|how to confirm|"
        "how to confirm it|confirm it|confirming|check|checks|debug|debugging|investigation|"
        "troubleshooting steps|how to identify|how to recognise it|how to recognize it|how to tell|"
        "identify|identification|collecting information|data collection|debug steps|investigation steps|"
        "what we checked|confirm the diagnosis|checklist|quick check|quick checks|first checks"
    ),
    "environment": (
        "environment|environments|environment & reproduction|system info|system information|applies to|"
        "versions|version|affected versions|affected version|affected products|affected platforms|"
        "platform|platforms|setup|my setup|your environment|environment details|environment info|"
        "environment information|software versions|product|products|component|components|hardware|os|"
        "operating system|affects|tested with|tested on|configuration|affected systems"
    ),
    "summary": (
        "summary|conclusion|conclusions|wrap-up|wrap up|wrapping up|final thoughts|closing|"
        "closing thoughts|in summary|recap|bottom line|keywords|final words|closing remarks"
    ),
    "verification": (
        "verification|verify|verifying|verify the fix|verifying the fix|how to verify|validation|"
        "validate|test|testing|result|results|outcome|expected behavior|expected behaviour|"
        "expected result|expected|confirm the fix|confirmation|checking the fix|check that it worked|"
        "did it work|acceptance"
    ),
    "impact": ("impact|business impact|severity|scope|customer impact|user impact|blast radius|who is affected"),
    "progress": (
        "status|current status|progress|upstream status|update|updates|state of the issue|fix status|"
        "tracking|timeline for a fix|current state|fix version|fixed in|fixed versions|fix versions|"
        "official response|maintainer response|where things stand"
    ),
    "rejected": (
        "don't try|do not try|what does not work|what doesn't work|what did not work|what didn't work|"
        "what not to do|things that did not help|things that didn't help|dead ends|dead end|false leads|"
        "false lead|red herrings|red herring|ruled out|what we ruled out|rejected|rejected fixes|"
        "failed attempts|not a fix|not recommended|wrong|wrong way|bad advice|anti-patterns|"
        "common mistakes|what we tried|what i tried|attempts|things we tried|"
        "suggestions that did not help|does not help|don't do this|do not do this|avoid|rollback plan|"
        "rollback"
    ),
    "related": (
        "related|related errors|related issues|related pages|related articles|related topics|"
        "related links|see also|references|reference|further help|still not working|still stuck|sources|"
        "source|links|resources|additional resources|read more|more|get help|getting help|need help|"
        "support|contact support|related questions|related posts|appendix|acknowledgements|credits|"
        "feedback|external links|you might also like|more resources|still having trouble|disclaimer|"
        "legal|license"
    ),
    "toc": ("table of contents|contents|on this page|in this article|toc|page contents|in this guide|in this page"),
    "timeline": "timeline|incident timeline|chronology|sequence of events|event log",
    "confusable": (
        "not to be confused with|similar errors|similar problems|differences|do not confuse with|often confused with"
    ),
    "faq": ("faq|faqs|frequently asked questions|common questions|questions|q&a|q & a|questions and answers"),
    "answer": "answer|accepted answer|best answer|reply|our answer",
    "": (
        "the|a|an|of|and|&|or|/|your|this|that|is|it|for|to|possible|likely|common|main|primary|most|"
        "quick|alternative|alternatives|recommended|suggested|proposed|official|temporary|permanent|"
        "short|long|term|short-term|long-term|full|exact|actual|real|root|probable|potential|typical|"
        "technical|details|detail|detailed|in|step|steps|how|possibly|known|observed|reported|user|users|"
        "one|two|three|several|other|another|best|simple|easy|easiest|correct|final|code|configuration|"
        "config|analysis|description|summary|background|information|with|instead|underlying|general|"
        "overview|available|option|immediate|original|preferred|first|second|third|if|you|we|our|"
        "explained|secondary|minimal|brief|key|better|proper|clean|cleaner|safer|faster|slower|lasting|interim|stopgap|"
        "stop-gap|complete|partial|emergency|manual|automatic|default|custom|optional|#"
    ),
}

# Words that, with a number, name one of several issues: 问题一：, 坑1：, Issue 2:
TOPIC_WORDS_ZH = (
    "阶段",
    "第",
    "问题",
    "错误",
    "坑",
    "场景",
    "案例",
    "情形",
    "情况",
    "故障",
    "报错",
    "现象",
    "异常",
    "踩坑",
    "例",
    "bug",
    "issue",
    "病例",
    "症状",
    "关键错误",
    "常见错误",
    "常见问题",
    "疑难",
)
TOPIC_WORDS_EN = (
    "issue",
    "problem",
    "error",
    "case",
    "bug",
    "scenario",
    "pitfall",
    "gotcha",
    "failure",
    "symptom",
    "incident",
    "mistake",
)
