"""What stands in front of a message in a line of a log: rank, worker, time, level and place in the source.

Launchers and loggers put these there, and they differ between machines and runs.
"""

from __future__ import annotations

import re

__all__ = ["HEAD_CHARS", "strip_prefix"]

HEAD_CHARS = 200  # of a line: prefixes stand in these
_MAX_PREFIXES = 6

_PREFIX = re.compile(
    r"\s*(?:"
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?: [DEPT]P\d{1,4}){1,4}\]"  # SGLang: [2025-02-25 11:20:18 DP0 TP3]
    r"|\[?\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[.,\d]{0,10}(?:Z|[+-]\d\d:?\d\d)?\]?:?"  # 2025-02-25T11:20:18+00:00
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,60} [\w./-]{1,60}(?:\[\d{1,9}\])?:"  # Feb 25 11:20:18 node7 x[88]:
    r"|\[?\d\d:\d\d:\d\d[.,\d]{0,10}\]?"  # 11:20:18
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d[.\d]{0,10}(?: {1,9}\d{1,9})?(?: [\w./-]{1,120}:\d{1,6}\])?"  # E0225 11:20:18 9 x:7]
    r"|\[(?:rank|Rank|default) ?\d{1,5}\]:?|\[\d{1,5}\]:|(?:worker|rank|node)[-_ ]?\d{1,5}:"  # [rank3]: worker-1:
    r"|\[\d{1,5},\d{1,5}\]<std(?:out|err)>:|\d{1,5}:(?= {1,20}\S)"  # mpirun: [1,3]<stderr>: srun --label: 3:
    r"|[\w.-]{1,60} {2,60}\|(?= |$)|\[pod/[\w./-]{1,160}\]"  # docker compose: api-1  | kubectl --prefix: [pod/a/b]
    r"|[^\t\n]{1,80}\t[^\t\n]{1,80}\t(?=\d{4}-\d\d-\d\dT)"  # gh run view --log: job, step, time
    r"|\([\w.-]{1,40} (?:pid|rank|TP|PP)=?[^()]{1,60}\)"  # (VllmWorker pid=88)
    r"|\[(?:INFO|DEBUG|WARN|WARNING|ERROR|CRITICAL|FATAL)(?:[|:][^\]]{1,120})?\]"  # [INFO|trainer.py:2452]
    r"|(?:\[[\w .:#@/-]{1,60}\] {1,2})?(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL) {1,3}(?:\[[\w .:#@/-]{1,60}\] {1,2})?"
    r"[\w$]{1,60}(?:[.:][\w$]{1,60}){1,12} {1,3}-{1,2}(?= )"  # Java: [main] ERROR org.x.Foo - , ERROR [main] A.java:9 -
    r"|\([^()\n]{1,80}(?:\([^()\n]{0,20}\)[^()\n]{0,20})?\|\d{1,9}\)"  # (thread|9)
    r"|\[[\w$.<>]{1,100}\(\):\d{1,6}\]"  # [Foo.run():9]
    r"|(?:INFO|DEBUG|WARN|WARNING|ERROR|CRITICAL)(?=[ :]\s*(?:\d\d-\d\d|\[|\(|\d{1,9} --- ))[: ]"  # ERROR 02-25 ...
    r"|\d{1,9} --- \[[^\]\n]{1,60}\] [\w.$/\[\]-]{1,80} {0,40}:(?= )"  # Spring: 88 --- [exec-1] o.a.Foo :
    r"|\d\d-\d\d \d\d:\d\d:\d\d(?: \[?[\w./-]{1,60}:\d{1,6}\]?)?"  # vLLM: 02-25 11:20:18 [core.py:390]
    r"|\[[\w./-]{1,60}\.(?:py|cpp|cc|cu|java|scala|go|rs):\d{1,6}(?::\w{1,60})?\]"  # [loss_scaler.py:183:update_scale]
    r"|\[[IWEF](?:\d{3,4} \d\d:\d\d:\d\d[.\d]{0,10})? [\w./-]{1,60}:\d{1,6}\]"  # [E225 11:20:18.142 Group.cpp:616]
    r"|(?:>>|[|+│])(?=\s)|E {3}(?=\s{0,80}\S)"  # the bars of a group or box, a shell's trace, pytest
    r")[ \t]?"  # one space: what is indented behind it stays indented
)


def strip_prefix(line: str) -> str:
    """The line without its prefixes, at most six of them; what is indented behind them stays indented."""
    at = 0
    for _ in range(_MAX_PREFIXES):
        found = _PREFIX.match(line, at)
        if found is None or found.end() == at:
            break
        at = found.end()
    return line[at:]
