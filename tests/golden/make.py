#!/usr/bin/env python3
"""Write the golden files of json/, safetensors/ and shard/: each name is the defect.

The unit tests json, safetensors and shard replay them and say what text is expected. Names that
begin with "good-" are accepted. Running this again changes nothing: no clock, no chance.
"""

import json
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))

JSON = {
    "good-empty-object": b"{}",
    "good-white-space-around": b" \t\r\n{ \"a\" : [ 1 , 2 ] }\n",
    "good-every-kind-of-value": b'{"n":null,"t":true,"f":false,"i":-0,"d":1.5e-3,"s":"x","a":[],"o":{}}',
    "good-integers-in-other-forms": b'{"a":1e3,"b":5.0,"c":10E+2,"d":90071992547409910e-1}',
    "good-escapes": b'{"s":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\ud83d\\ude00"}',
    "good-utf8-of-each-length": '{"s":"A\u00e9\u20ac\U0001f600\ud7ff\ue000\U0010ffff"}'.encode(),
    "good-depth-16": b'{"a":' + b"[" * 15 + b"]" * 15 + b"}",
    "good-keys-that-differ-in-case": b'{"a":1,"A":2}',
    "empty": b"",
    "only-white-space": b" \n",
    "array-at-top": b"[1]",
    "string-at-top": b'"x"',
    "number-at-top": b"1",
    "null-at-top": b"null",
    "byte-order-mark": b"\xef\xbb\xbf{}",
    "utf16": "{}".encode("utf-16-le"),
    "cut-in-object": b'{"a":1',
    "cut-in-array": b'{"a":[1,',
    "cut-in-string": b'{"a":"b',
    "cut-in-escape": b'{"a":"\\',
    "cut-in-hex": b'{"a":"\\u12',
    "cut-in-word": b'{"a":tru',
    "cut-after-key": b'{"a"',
    "cut-after-minus": b'{"a":-',
    "cut-in-utf8": b'{"a":"\xe2\x82',
    "trailing-object": b"{}{}",
    "trailing-comma-after-object": b"{},",
    "trailing-nul": b"{}\0",
    "trailing-comma-in-object": b'{"a":1,}',
    "trailing-comma-in-array": b'{"a":[1,]}',
    "comma-first": b'{,"a":1}',
    "missing-comma": b'{"a":1 "b":2}',
    "missing-colon": b'{"a" 1}',
    "missing-value": b'{"a":}',
    "key-without-quotes": b"{a:1}",
    "key-in-single-quotes": b"{'a':1}",
    "comment": b'{"a":1/*x*/}',
    "line-comment": b'{"a":1 // x\n}',
    "closed-by-bracket": b'{"a":1]',
    "array-closed-by-brace": b'{"a":[1}',
    "number-leading-zero": b'{"a":01}',
    "number-negative-leading-zero": b'{"a":-01}',
    "number-dot-last": b'{"a":1.}',
    "number-dot-first": b'{"a":.5}',
    "number-plus-sign": b'{"a":+1}',
    "number-two-minus-signs": b'{"a":--1}',
    "number-empty-exponent": b'{"a":1e}',
    "number-exponent-sign-only": b'{"a":1e+}',
    "number-hex": b'{"a":0x10}',
    "number-nan": b'{"a":NaN}',
    "number-infinity": b'{"a":Infinity}',
    "number-two-dots": b'{"a":1.2.3}',
    "number-of-64-characters": b'{"a":' + b"1" * 64 + b"}",
    "word-upper-case": b'{"a":True}',
    "word-with-a-tail": b'{"a":nullx}',
    "form-feed-as-white-space": b'{\f"a":1}',
    "nul-between-values": b'{"a":\0001}',
    "tab-in-string": b'{"a":"b\tc"}',
    "newline-in-string": b'{"a":"b\nc"}',
    "nul-in-string": b'{"a":"b\0c"}',
    "escape-nul": b'{"a":"b\\u0000c"}',
    "escape-nul-in-key": b'{"a\\u0000b":1}',
    "escape-unknown": b'{"a":"\\x41"}',
    "escape-upper-u": b'{"a":"\\U0041"}',
    "escape-hex-digit": b'{"a":"\\u12g4"}',
    "surrogate-high-alone": b'{"a":"\\ud83d"}',
    "surrogate-high-twice": b'{"a":"\\ud83d\\ud83d"}',
    "surrogate-high-then-letter": b'{"a":"\\ud83dx"}',
    "surrogate-low-first": b'{"a":"\\ude00\\ud83d"}',
    "utf8-lone-continuation": b'{"a":"\x80"}',
    "utf8-overlong-slash": b'{"a":"\xc0\xaf"}',
    "utf8-overlong-three-bytes": b'{"a":"\xe0\x80\xaf"}',
    "utf8-overlong-four-bytes": b'{"a":"\xf0\x80\x80\xaf"}',
    "utf8-surrogate": b'{"a":"\xed\xa0\x80"}',
    "utf8-beyond-10ffff": b'{"a":"\xf4\x90\x80\x80"}',
    "utf8-byte-fe": b'{"a":"\xfe"}',
    "utf8-latin1": b'{"a":"caf\xe9"}',
    "utf8-bad-between-values": b'{"a":\xff}',
    "depth-17": b'{"a":' + b"[" * 16 + b"]" * 16 + b"}",
    "depth-10000": b'{"a":' + b"[" * 10000,
    "duplicate-key": b'{"a":1,"b":2,"a":3}',
    "duplicate-key-deep": b'{"x":[{"y":{"a":1,"a":1}}]}',
    "duplicate-key-escaped": b'{"ab":1,"a\\u0062":2}',
    "duplicate-key-of-many": b"{"
    + b",".join(b'"k%d":0' % i for i in range(50))
    + b',"k7":1}',
    "duplicate-first-key-of-many": b'{"a":0,'
    + b",".join(b'"k%d":0' % i for i in range(50))
    + b',"a":1}',
    "duplicate-empty-key": b'{"":1,"":2}',
}


def tensor(dtype, shape, begin, end, **more):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end], **more}


def container(header, data=b"", pad=0, length=None):
    """A safetensors file; header is an object, or the bytes of one."""
    if not isinstance(header, bytes):
        header = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    header += b" " * pad
    return struct.pack("<Q", len(header) if length is None else length) + header + data


F4 = tensor("F32", [1], 0, 4)
SAFETENSORS = {
    "good-no-tensors": container({}),
    "good-one-tensor": container({"w": tensor("F32", [2, 2], 0, 16)}, bytes(16)),
    "good-padded": container({"w": F4}, bytes(4), pad=100),
    "good-scalar": container({"w": tensor("F64", [], 0, 8)}, bytes(8)),
    "good-zero-size": container(
        {"a": tensor("F32", [0, 7], 0, 0), "b": F4, "c": tensor("U8", [0], 4, 4)}, bytes(4)
    ),
    "good-zero-in-an-overflowing-shape": container(
        {"a": tensor("F32", [2**40, 2**40, 0], 0, 0)}
    ),
    "good-not-in-order-of-offsets": container(
        {"b": tensor("U8", [3], 4, 7), "a": F4}, bytes(7)
    ),
    "good-metadata": container({"__metadata__": {"format": "pt", "k": ""}, "w": F4}, bytes(4)),
    "good-unknown-field": container({"w": {**F4, "more": {"x": []}}}, bytes(4)),
    "good-integers-in-other-forms": container(
        b'{"w":{"dtype":"U8","shape":[1e1],"data_offsets":[0.0,10.0]}}', bytes(10)
    ),
    "good-name-not-ascii": container({"pond\u00e9r\u00e9": F4}, bytes(4)),
    "good-ndim-32": container({"w": tensor("F32", [1] * 32, 0, 4)}, bytes(4)),
    "empty-file": b"",
    "seven-bytes": b"\2\0\0\0\0\0\0",
    "header-longer-than-file": container({"w": F4}, bytes(4), length=1000),
    "header-one-byte-longer-than-file": container({}, length=3),
    "header-of-no-bytes": container(b""),
    "n-over-limit": container({}, length=100000001),
    "n-all-ones": container({}, length=2**64 - 1),
    "header-not-brace": container(b' {"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "header-is-an-array": container(b"[]"),
    "header-is-binary": container(bytes(range(128, 160))),
    "header-cut": container(b'{"w":{"dtype":"F32","shape":[1],"data_off', bytes(4)),
    "header-padded-with-nul": container(b"{}\0\0\0\0\0\0"),
    "header-followed-by-text": container(b"{}x"),
    "not-utf8": container(b'{"\xff":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', bytes(4)),
    "duplicate-name": container(
        b'{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},'
        b'"w":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}}',
        bytes(4),
    ),
    "duplicate-field": container(
        b'{"w":{"dtype":"U8","dtype":"I8","shape":[2],"data_offsets":[0,2]}}', bytes(2)
    ),
    "duplicate-metadata": container(b'{"__metadata__":{},"__metadata__":{}}'),
    "duplicate-metadata-key": container(b'{"__metadata__":{"a":"1","a":"2"}}'),
    "hole-between-tensors": container({"a": F4, "b": tensor("U8", [1], 5, 6)}, bytes(6)),
    "hole-at-the-front": container({"a": tensor("U8", [4], 1, 5)}, bytes(5)),
    "overlap": container({"a": F4, "b": tensor("U8", [4], 2, 6)}, bytes(6)),
    "the-same-bytes-twice": container({"a": F4, "b": F4}, bytes(4)),
    "trailing-bytes": container({"w": F4}, bytes(5)),
    "trailing-bytes-without-tensors": container({}, bytes(1)),
    "data-cut": container({"w": F4}, bytes(3)),
    "unknown-dtype": container({"w": tensor("F12", [1], 0, 4)}, bytes(4)),
    "dtype-in-lower-case": container({"w": tensor("f32", [1], 0, 4)}, bytes(4)),
    "dtype-of-four-bits": container({"w": tensor("F4", [2], 0, 1)}, bytes(1)),
    "dtype-is-a-number": container({"w": tensor(4, [1], 0, 4)}, bytes(4)),
    "dtype-missing": container({"w": {"shape": [1], "data_offsets": [0, 4]}}, bytes(4)),
    "shape-missing": container({"w": {"dtype": "F32", "data_offsets": [0, 4]}}, bytes(4)),
    "shape-is-a-number": container({"w": tensor("F32", 1, 0, 4)}, bytes(4)),
    "shape-negative": container({"w": tensor("F32", [-1, -1], 0, 4)}, bytes(4)),
    "shape-fraction": container({"w": tensor("F32", [1.5], 0, 6)}, bytes(6)),
    "shape-of-texts": container({"w": tensor("F32", ["1"], 0, 4)}, bytes(4)),
    "shape-2-to-53": container({"w": tensor("U8", [2**53], 0, 4)}, bytes(4)),
    "shape-overflow": container({"w": tensor("F32", [2**32, 2**32], 0, 0)}),
    "shape-overflow-in-bytes": container({"w": tensor("F64", [2**52, 2**10], 0, 0)}),
    "ndim-33": container({"w": tensor("F32", [1] * 33, 0, 4)}, bytes(4)),
    "offsets-missing": container({"w": {"dtype": "F32", "shape": [1]}}, bytes(4)),
    "offsets-reversed": container({"w": tensor("F32", [1], 4, 0)}, bytes(4)),
    "offsets-of-one-value": container(
        {"w": {"dtype": "F32", "shape": [1], "data_offsets": [4]}}, bytes(4)
    ),
    "offsets-of-three-values": container(
        {"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4, 4]}}, bytes(4)
    ),
    "offsets-past-the-file": container({"w": tensor("F32", [2], 0, 8)}, bytes(4)),
    "offsets-negative": container({"w": tensor("F32", [1], -4, 0)}, bytes(4)),
    "size-differs-from-shape": container({"w": tensor("F32", [2], 0, 4)}, bytes(4)),
    "scalar-of-no-bytes": container({"w": tensor("F32", [], 0, 0)}),
    "tensor-is-not-an-object": container({"w": [1]}),
    "tensor-is-null": container({"w": None}),
    "metadata-not-string": container({"__metadata__": {"a": 1}}),
    "metadata-nested": container({"__metadata__": {"a": {"b": "c"}}}),
    "metadata-is-a-text": container({"__metadata__": "a"}),
    "metadata-is-null": container({"__metadata__": None}),
    "deeper-than-16": container(b'{"w":' + b"[" * 20 + b"]" * 20 + b"}"),
}


def shard(tensors, dcp=None, ckpt=None, drop=(), align=4096, **meta):
    """
    A part of rank 0. tensors: name -> (dtype, shape, offsets, kind, global shape); dcp and ckpt
    replace the maps that follow from it.
    """
    size = {"U8": 1, "F16": 2, "F32": 4}
    header, data = {}, b""
    if dcp is None:
        dcp = {n: {"saved_offsets": t[2]} for n, t in tensors.items()}
    if ckpt is None:
        ckpt = {n: {"kind": t[3], "global_shape": t[4]} for n, t in tensors.items()}
    texts = {"format": "pt", "DCP_SHARDING_INFO": dcp, "ckpt": ckpt, **meta}
    header["__metadata__"] = {
        k: v if isinstance(v, str) else json.dumps(v) for k, v in texts.items() if k not in drop
    }
    for name, (dtype, shape, *_) in tensors.items():
        count = size[dtype]
        for extent in shape:
            count *= extent
        header[name] = tensor(dtype, shape, len(data), len(data) + count)
        data += bytes((i * 7 + 1) & 255 for i in range(count))
    if "__metadata__" in drop:
        del header["__metadata__"]
    text = json.dumps(header, separators=(",", ":")).encode()
    return container(text, data, pad=-(8 + len(text)) % align)


W = ("F32", [2, 2], [2, 0], "sharded", [4, 2])
RNG = ("U8", [3], [0], "per-rank", None)
GOOD = {"w": W, "rank-0/rng": RNG}


def one(*fields):
    return shard({"w": fields})


SHARD = {
    "good": shard(GOOD),
    "good-no-tensors": shard({}),
    "good-scalar": one("F32", [], [], "sharded", []),
    "good-per-rank-of-no-bytes": shard({"rank-0/rng": ("U8", [0], [0], "per-rank", None)}),
    "good-unknown-metadata": shard(GOOD, more="x", DCP_VERSION="1.0"),
    "no-metadata": shard(GOOD, drop=["__metadata__"]),
    "no-format": shard(GOOD, drop=["format"]),
    "format-np": shard(GOOD, format="np"),
    "no-dcp-sharding-info": shard(GOOD, drop=["DCP_SHARDING_INFO"]),
    "no-ckpt": shard(GOOD, drop=["ckpt"]),
    "data-not-aligned": shard(GOOD, align=512),
    "dcp-is-not-json": shard(GOOD, dcp="{"),
    "dcp-is-an-array": shard(GOOD, dcp=[]),
    "dcp-duplicate-name": shard(
        {"w": W}, dcp='{"w":{"saved_offsets":[2,0]},"w":{"saved_offsets":[0,0]}}'
    ),
    "dcp-lacks-a-tensor": shard(GOOD, dcp={"w": {"saved_offsets": [2, 0]}}),
    "dcp-has-one-more": shard(
        {"w": W}, dcp={"w": {"saved_offsets": [2, 0]}, "x": {"saved_offsets": []}}
    ),
    "dcp-has-another-name": shard({"w": W}, dcp={"v": {"saved_offsets": [2, 0]}}),
    "dcp-entry-is-a-list": shard({"w": W}, dcp={"w": [2, 0]}),
    "dcp-without-saved-offsets": shard({"w": W}, dcp={"w": {}}),
    "dcp-offsets-too-few": shard({"w": W}, dcp={"w": {"saved_offsets": [2]}}),
    "dcp-offsets-too-many": shard({"w": W}, dcp={"w": {"saved_offsets": [2, 0, 0]}}),
    "dcp-offset-negative": shard({"w": W}, dcp={"w": {"saved_offsets": [-1, 0]}}),
    "dcp-offset-is-a-text": shard({"w": W}, dcp={"w": {"saved_offsets": ["2", 0]}}),
    "block-leaves-the-tensor": one("F32", [2, 2], [3, 0], "sharded", [4, 2]),
    "block-far-outside": one("F32", [2, 2], [2**53 - 1, 0], "sharded", [4, 2]),
    "block-larger-than-the-tensor": one("F32", [5, 2], [0, 0], "sharded", [4, 2]),
    "block-is-empty": one("F32", [0, 2], [0, 0], "sharded", [4, 2]),
    "ckpt-is-not-json": shard(GOOD, ckpt="x"),
    "ckpt-lacks-a-tensor": shard(GOOD, ckpt={"w": {"kind": "sharded", "global_shape": [4, 2]}}),
    "ckpt-has-another-name": shard({"w": W}, ckpt={"v": {"kind": "sharded", "global_shape": [4, 2]}}),
    "ckpt-entry-is-null": shard({"w": W}, ckpt={"w": None}),
    "kind-missing": shard({"w": W}, ckpt={"w": {"global_shape": [4, 2]}}),
    "kind-unknown": one("F32", [2, 2], [2, 0], "replicated", [4, 2]),
    "kind-is-a-number": one("F32", [2, 2], [2, 0], 1, [4, 2]),
    "global-shape-missing": shard({"w": W}, ckpt={"w": {"kind": "sharded"}}),
    "global-shape-null": one("F32", [2, 2], [2, 0], "sharded", None),
    "global-shape-of-other-ndim": one("F32", [2, 2], [2, 0], "sharded", [4, 2, 1]),
    "global-shape-overflows": one("F32", [2, 2], [2, 0], "sharded", [2**40, 2**40]),
    "global-shape-of-2-to-53-bytes": one("F32", [2], [2], "sharded", [2**51]),
    "per-rank-of-another-rank": shard({"rank-1/rng": RNG}),
    "per-rank-with-a-leading-zero": shard({"rank-00/rng": RNG}),
    "per-rank-without-prefix": shard({"rng": RNG}),
    "per-rank-without-a-name": shard({"rank-0/": RNG}),
    "per-rank-with-a-reserved-name": shard({"rank-0/rank-1/rng": RNG}),
    "per-rank-of-floats": shard({"rank-0/rng": ("F32", [3], [0], "per-rank", None)}),
    "per-rank-of-two-dimensions": shard({"rank-0/rng": ("U8", [3, 1], [0, 0], "per-rank", None)}),
    "per-rank-with-a-global-shape": shard({"rank-0/rng": ("U8", [3], [0], "per-rank", [3])}),
    "per-rank-at-an-offset": shard({"rank-0/rng": ("U8", [3], [1], "per-rank", None)}),
    "sharded-with-a-reserved-name": shard({"rank-0/w": W}),
    "name-empty": shard({"": W}),
    "name-with-a-control-character": shard({"a\x1b[2J": W}),
    "name-of-1025-bytes": shard({"n" * 1025: W}),
    "empty-file": b"",
    "header-longer-than-file": shard(GOOD)[:2000],
    "data-cut": shard(GOOD)[:-1],
    "trailing-bytes": shard(GOOD) + b"x",
}


def write(path, data):
    path = os.path.join(HERE, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def main():
    for name, data in JSON.items():
        write(f"json/{name}.json", data)
    for name, data in SAFETENSORS.items():
        write(f"safetensors/{name}.safetensors", data)
    for name, data in SHARD.items():
        write(f"shard/{name}/rank-00000.0.safetensors", data)


if __name__ == "__main__":
    main()
