"""`python -m kb` is `kb`: the console script, which answers Ctrl-C also while it is still being read."""

import sys


def main() -> None:
    try:
        from kb.cli import main as command

        command()
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT, as shells count


if __name__ == "__main__":
    main()
