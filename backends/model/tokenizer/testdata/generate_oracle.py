#!/usr/bin/env python3
"""Writes vocab.json and oracle.json: texts, their ids and ids' texts by the tiktoken library, for oracle_test.cc.

Needs the Python package tiktoken and a checkout of Megatron-LM, whose two patterns are read from its TikTokenizer.

Usage: generate_oracle.py MEGATRON_LM_DIR [OUTPUT_DIR [TEXTS [SEED]]]
"""
import ast
import base64
import collections
import json
import pathlib
import random
import sys

import tiktoken

NUM_SPECIAL = 16
NAMED = ["<unk>", "<s>", "</s>", "<mask>", "<pad>", "<cls>", "<sep>"]
SPECIAL = NAMED + [f"<SPECIAL_{i}>" for i in range(len(NAMED), NUM_SPECIAL)]
PAIRS = 1200  # of the vocabulary: the commonest pairs of adjacent bytes
LONGER = 300  # and some longer strings, many of which no merge reaches: only a piece that is one maps to it

WORDS = ["the", "License", "GPLv3", "iOS", "camelCase", "ABC", "ABCdef", "don't", "I'LL", "x", "Z", "naïve", "ÀÉ", "ǅ",
         "ǅab", "straße", "ΣΑΣ", "Ёж", "中文", "日本語テスト", "한국어", "हिन्दी", "العربية", "שלום", "ไทย", "ʰʷ", "ªº", "ⅷⅧ",
         "½", "٣٤", "१२", "𝟘𝟙", "①", "x²", "１２", "👩‍👩‍👧‍👦", "🇫🇷🇩🇪", "❤️", "🙂", "é", "ñ̃̃", "̀", "⃣", "ா", "𐐀𐐨", "𞤀𞤢", "ﬁﬂ",
         "\ufeff", "\u200b", "\u200d", "\u00ad", "\u180e", "\ue000", "\U000f0000", "\U0010ffff", "\ufffd", "\ufffe",
         "\u0378", "\U0003ffff", "\U000e0001", "\x00", "\x7f", "\u0600", "\u202e", "_", "$", "€", "→", "—", "«", "”",
         "http://a.b/c?d=e#f", "/", "//", "./\n/", "!\n/", "\\", "<", ">", "<s", "s>", "<SPECIAL_", "<SPECIAL_1>", "1", "42", "3.14",
         "aaaaaaaa", "AAAA", "\U00010d50", "\U00010d70", "\u1c89", "\u1c8a", "\U00016ea0"]
SPACES = [" ", " ", " ", "  ", "   ", "\t", "\n", "\n\n", "\r\n", "\r", "\v", "\f", "\x1c", "\x1d", "\x1e", "\x1f",
          "\x85", "\xa0", "\u1680", "\u2000", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000", ""]


def some_code_point(rng):
    """Any scalar value, the small planes and blocks as often as the large ones."""
    top = rng.choice([0x80, 0x250, 0x530, 0x1000, 0x3000, 0x10000, 0x20000, 0x30000, 0x110000])
    while 0xD800 <= (c := rng.randrange(top)) < 0xE000:
        pass
    return chr(c)


def some_text(rng):
    parts = []
    kind = rng.randrange(6)
    for _ in range(rng.choice([1, 2, 3, 5, 8, 13])):
        roll = rng.random()
        if kind == 0:
            parts.append(some_code_point(rng))
        elif kind == 1:
            parts.append(rng.choice(SPACES + ["x", "/", "1", "."]))
        elif roll < 0.45:
            parts.append(rng.choice(WORDS))
        elif roll < 0.8:
            parts.append(rng.choice(SPACES))
        elif roll < 0.9:
            parts.append(some_code_point(rng) * rng.choice([1, 1, 2, 5]))
        elif roll < 0.95:
            parts.append(rng.choice(SPECIAL))
        else:
            special = rng.choice(SPECIAL)
            cut = rng.randrange(1, len(special))
            parts.append(special[:cut] + rng.choice([special, ""]) + special[cut:])
    return "".join(parts)


def make_vocab(texts, rng):
    """The single bytes, then tokens from over the whole texts, so that a piece cut in the wrong place shows; shuffled."""
    slices = collections.Counter()
    for text in texts:
        row = text.encode()
        slices.update(row[i : i + 2] for i in range(len(row) - 1))
    chosen = {pair for pair, _ in slices.most_common(PAIRS)}
    while len(chosen) < PAIRS + LONGER:
        row = rng.choice(texts).encode()
        begin, size = rng.randrange(len(row) + 1), rng.choice([3, 4, 5])
        token = rng.choice([row[begin : begin + size], (rng.choice(["", " "]) + rng.choice(WORDS)).encode()])
        if len(token) > 1:
            chosen.add(token)
    tokens = sorted(chosen)
    rng.shuffle(tokens)
    return [bytes([b]) for b in range(256)] + tokens


def patterns(megatron):
    source = pathlib.Path(megatron, "megatron/core/tokenizers/text/libraries/tiktoken_tokenizer.py").read_text()
    values = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and node.targets[0].id.startswith("_PATTERN_TIKTOKEN_"):
            values[node.targets[0].id[-2:].lower()] = ast.literal_eval(node.value)
    return values


def encodings(megatron, tokens, special):
    ranks = {token: len(special) + i for i, token in enumerate(tokens)}
    return {name: tiktoken.Encoding(name, pat_str=pattern, mergeable_ranks=ranks,
                                    special_tokens={s: i for i, s in enumerate(special)})
            for name, pattern in patterns(megatron).items()}


def main():
    megatron = sys.argv[1]
    out = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else pathlib.Path(__file__).parent)
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 400
    rng = random.Random(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    texts = [*WORDS, *(some_text(rng) for _ in range(count))]
    tokens = make_vocab([t for t in texts[:2000] if t], rng)
    vocab = [{"rank": i, "token_bytes": base64.b64encode(t).decode(), "token_str": None}
             for i, t in enumerate(tokens)]
    by_name = encodings(megatron, tokens, SPECIAL)
    encode = [{"text": t, **{n: e.encode(t, allowed_special="all") for n, e in by_name.items()}} for t in texts]
    decode = []
    for _ in range(count // 2):
        ids = [rng.choice([rng.randrange(NUM_SPECIAL + len(tokens)), NUM_SPECIAL + rng.randrange(0x80, 256),
                           NUM_SPECIAL + rng.choice(b"\xe0\xa0\x9f\xed\xf0\x90\x8f\xf4\xc2\xf5\xff")])
               for _ in range(rng.randrange(1, 9))]
        decode.append({"ids": ids, "text": by_name["v2"].decode(ids),
                       "text_only": by_name["v2"].decode([i for i in ids if i >= NUM_SPECIAL])})
    lines = lambda rows: "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]"
    (out / "vocab.json").write_text(lines(vocab) + "\n")
    (out / "oracle.json").write_text('{"encode": ' + lines(encode) + ', "decode": ' + lines(decode) + "}\n")


if __name__ == "__main__":
    main()
