"""hfhub-cached-download-removed#1: cached_download has gone since 0.26; hf_hub_download takes its place."""

import sys

import huggingface_hub


def error() -> None:
    from huggingface_hub import cached_download

    assert cached_download


def cure() -> None:
    assert callable(huggingface_hub.hf_hub_download)


if __name__ == "__main__":
    {"error": error, "cure": cure}[sys.argv[1]]()
