"""Which lines a program prints to say that it failed, and which it prints for other reasons."""

from __future__ import annotations

import pytest

from kb.articles.errors import errors_in
from kb.logs.classify import is_command, is_error_line
from kb.logs.errors import error_lines, quoted_errors
from kb.scraped import parse

ERRORS = """
RuntimeError: Expected to mark a variable ready only once.
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB
absl.flags._exceptions.UnrecognizedFlagError: Unknown command line flag 'task_index'
java.io.IOException: Broken pipe
Exception in thread "main" java.lang.NullPointerException: null
Caused by: java.net.ConnectException: Connection refused
KeyError: 'model'
UserWarning: cache_position starts at 37
Caught signal 8 (Floating point exception: integer divide by zero)
error: unrecognized arguments: --data_url=obs://bucket/cifar10/
ERROR: Could not find a version that satisfies the requirement torch==9
fatal: not a git repository (or any of the parent directories): .git
[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=235, OpType=BROADCAST) ran for 1800956 ms
undefined reference to `tensorrt_llm::common::fmtstr'
Unsupported class file major version 65
touch: cannot touch 'a.txt': No space left on device
npm ERR! code ERESOLVE
Exitcode -9
2024-05-01 10:00:00 [ERROR] worker: lost connection
panic: runtime error: invalid memory address or nil pointer dereference
Error response from daemon: pull access denied for x
Segmentation fault (core dumped)
[Errno 13] Permission denied: '/data'
NCCL WARN Error: failed to extend /dev/shm
curl: (56) Recv failure: Connection reset by peer
error TS2307: Cannot find module 'x'
E0515 10:00:00 controller.go:1] failed to sync
bash: nvcc: command not found
nginx: [emerg] bind() to 0.0.0.0:80 failed (98: Address already in use)
""".strip().split("\n")

OTHERS = """
Traceback (most recent call last):
  File "train.py", line 6, in <module>
    at com.example.Main.run(Main.java:12)
    raise ValueError("no error here")
100%|██████████| 3/3 [00:00<00:00, 12.1it/s]
Epoch 3: loss 0.41
pip install --upgrade error-tools
$ grep -r "error: foo" .
sudo systemctl restart nginx
python train.py --fail-fast
import traceback
0 errors, 2 warnings
Build finished with no errors
# RuntimeError happens here
Downloading model weights
INFO: server started
Try increasing `gpu_memory_utilization`
""".strip("\n").split("\n")


@pytest.mark.parametrize("line", ERRORS)
def test_error_line(line: str) -> None:
    assert is_error_line(line)
    assert error_lines(f"starting\n  {line}\n") == [line]


@pytest.mark.parametrize("line", OTHERS)
def test_other_line(line: str) -> None:
    assert not is_error_line(line)


def test_each_line_once_in_order() -> None:
    text = "KeyError: 'b'\nfine\nKeyError: 'a'\nKeyError: 'b'\n"
    assert error_lines(text) == ["KeyError: 'b'", "KeyError: 'a'"]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ('系统报出了"pop from an empty deque"错误。', ["pop from an empty deque"]),
        (
            "多卡训练时报 “ValueError: Please specify dataset_dir” ，单卡没事",
            ["ValueError: Please specify dataset_dir"],
        ),
        ("提示「No space left on device」后退出", ["No space left on device"]),
        ("刚开始就提示 CUDA out of memory，7B 模型", ["CUDA out of memory"]),
        ("It ends with `Fatal: unable to open config`.", ["Fatal: unable to open config"]),
        ("The page returned `upstream connect error or disconnect`.", ["upstream connect error or disconnect"]),
        ('Both ‘KeyError: 1’ and "KeyError: 2" appear', ["KeyError: 1", "KeyError: 2"]),
        ("`npm run dev` 一切正常，`npm run build` 直接失败", []),
        ("set `--max-model-len 8192` and restart", []),
        ("把“插件”页面打开", []),
        ("The job ends with exit code 137 at night", ["exit code 137"]),
        (
            "What do I do when the error occurs: ERROR 1064 (HY000): no such class?",
            ["ERROR 1064 (HY000): no such class"],
        ),
        ("If the following error appears: Failed to scan tablet 7", ["Failed to scan tablet 7"]),
        ("`worker died: exit code 137`, so exit code 137", ["worker died: exit code 137"]),
    ],
)
def test_errors_inside_a_sentence(sentence: str, expected: list[str]) -> None:
    assert quoted_errors(sentence) == expected


@pytest.mark.parametrize(
    "line", ["$ ls -l", "root@host:~# rm -rf x", "docker ps", "export A=1", "NCCL_DEBUG=INFO python x.py"]
)
def test_commands(line: str) -> None:
    assert is_command(line)
    assert not is_command("KeyError: 'docker'")


@pytest.mark.parametrize(
    ("title", "errors"),
    [
        ("TiKV 启动报错：duplicated store address", ["duplicated store address"]),
        ("物化视图构建失败: fail to allocate memory", ["fail to allocate memory"]),
        ("truncate 失败，报错信息为 create partition timeout", ["create partition timeout"]),
        ("类型错误 (Type error)", []),
        ("启动失败：nginx", []),
        ("安装失败：pip install -U torch", []),
        ("The rows of `select B from tbl order by A` differ after `alter table`", []),
        ("The state of `drop table` says `drop table failed`", ["drop table failed"]),
    ],
)
def test_a_title_that_ends_with_a_message(title: str, errors: list[str]) -> None:
    assert errors_in(title, []) == errors


def test_a_wrapped_sentence_is_no_message() -> None:
    page = """# Alarms

## The node stops accepting messages

### Symptom

It happens when the node can run out of memory and the clients cannot be served
any more, so that a program may print

could not be served: the node is full

### Fix

Add memory.
"""
    (record,) = parse(page.encode(), path="a.md").records
    assert record.errors == ("could not be served: the node is full",)


def test_a_title_that_quotes_a_message_is_no_message() -> None:
    page = "".join(
        f'## Why does the error "failed to get the state of {name}" occur when I start it?\n\n'
        "The service is not running. Start it.\n\n"
        for name in ("lamps", "pumps", "doors")
    )
    for record in parse(page.encode(), path="a.md").records:
        assert len(record.errors) == 1
        assert record.errors[0].startswith("failed to get the state of")
