"""Packs the vocabularies and the dictionary that the engine compiles in, from what their makers publish.

    python3 pack.py FOLDER

FOLDER holds OpenAI's cl100k_base.tiktoken and o200k_base.tiktoken, and dict.txt of jieba 0.42.1. README.md says
what the results are.
"""

import base64
import gzip
import hashlib
import sys
from pathlib import Path

SHA256 = {
    "cl100k_base.tiktoken": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base.tiktoken": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    "dict.txt": "7197c3211ddd98962b036cdf40324d1ea2bfaa12bd028e68faa70111a88e12a8",
}
HERE = Path(__file__).parent


def published(folder: Path, name: str) -> bytes:
    data = (folder / name).read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != SHA256[name]:
        sys.exit(f"{name} has the SHA-256 {found}, not {SHA256[name]}")
    return data


def parts(token: bytes, rank: int, ranks: dict[bytes, int]) -> list[bytes]:
    """The two tokens that the last merge of byte-pair encoding makes a token from."""
    pieces = [token[at : at + 1] for at in range(len(token))]
    while len(pieces) > 2:
        merges = ((ranks.get(pieces[at] + pieces[at + 1], rank), at) for at in range(len(pieces) - 1))
        first, at = min(merges)
        assert first < rank, f"token {rank} cannot be merged from earlier ones"
        pieces[at : at + 2] = [pieces[at] + pieces[at + 1]]
    return pieces


def leb128(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def pack_vocabulary(folder: Path, name: str) -> None:
    lines = published(folder, f"{name}.tiktoken").splitlines()
    tokens = [base64.b64decode(line.split()[0]) for line in lines]
    ranks = {token: rank for rank, token in enumerate(tokens)}
    packed = bytearray().join(tokens[:256])
    assert len(packed) == 256, "the first 256 tokens are the bytes"
    for rank in range(256, len(tokens)):
        left, right = parts(tokens[rank], rank, ranks)
        packed += leb128(ranks[left]) + leb128(ranks[right])
    (HERE / f"{name}.bpe").write_bytes(packed)


def pack_dictionary(folder: Path) -> None:
    lines = published(folder, "dict.txt").decode().splitlines()
    # A word and its frequency; what part of speech it is, nobody asks. One word is there twice.
    entries = sorted({tuple(line.split()[:2]) for line in lines})
    text = "".join(f"{word} {frequency}\n" for word, frequency in entries)
    (HERE / "jieba.txt.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    pack_vocabulary(folder, "cl100k_base")
    pack_vocabulary(folder, "o200k_base")
    pack_dictionary(folder)
