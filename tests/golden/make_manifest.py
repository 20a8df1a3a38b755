#!/usr/bin/env python3
"""Write the golden manifests of manifest/: each name is the defect.

tests/unit/manifest.c replays them and says what text is expected. Names that begin with "good-"
are accepted. Running this again changes nothing: no clock, no chance.
"""

import json
import os
import shutil

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "manifest")
MIB16 = 16 << 20


def shard(rank, part, bytes_, offset, numel, chunk_bytes=MIB16):
    chunks = -(-bytes_ // chunk_bytes)
    return {
        "rank": rank,
        "path": f"rank-{rank:05d}.{part}.safetensors",
        "sha256": f"{rank}{part}" * 32,
        "param_shard_offset": offset,
        "param_shard_numel": numel,
        "bytes": bytes_,
        "crc32": "89abcdef",
        "chunk_bytes": chunk_bytes,
        "chunk_crc32": "".join(f"{rank:02x}{part:02x}{i:04x}" for i in range(chunks)),
    }


def base():
    return {
        "schema_version": 1,
        "world_size": 2,
        "step": 1234,
        "wall_clock_seconds": 3600.25,
        "run_id": "0123456789abcdef" * 2,
        "run": "bert-large",
        "generation": 3,
        "save_id": "fedcba9876543210" * 2,
        "job": {
            "cluster": "atlas",
            "id": "4711",
            "restart_count": 2,
            "step_id": "0",
            "nodes": "n[1-2]",
        },
        "created": "2026-11-29T20:37:50Z",
        "writer": "slurm-ckpt 0.1.0",
        "user": {"lr": 0.001, "note": "warm-up"},
        "flat": "params",
        "items": [
            {"name": "params", "dtype": "F32", "kind": "sharded", "global_shape": [100]},
            {"name": "rng", "dtype": "U8", "kind": "per-rank", "global_shape": None},
            {"name": "scale", "dtype": "F64", "kind": "sharded", "global_shape": []},
        ],
        "shards": [
            shard(0, 0, 4496, 0, 60),
            shard(1, 0, 3 * MIB16 + 1, 60, 30),
            shard(1, 1, 4136, 90, 10),
        ],
    }


MISSING = object()
FILES = {}


def text(manifest):
    return json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"


def change(name, *path_value):
    """The base manifest with the member at a path set to a value (MISSING: taken out)."""
    *path, value = path_value
    manifest = base()
    at = manifest
    for key in path[:-1]:
        at = at[key]
    if value is MISSING:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    FILES[name] = text(manifest)


def edit(name, old, new):
    """The text of the base manifest with one piece replaced."""
    before = text(base())
    assert before.count(old) >= 1, (name, old)
    FILES[name] = before.replace(old, new, 1)


def make_good():
    FILES["good-base"] = text(base())
    for key in ("user", "flat"):
        manifest = base()
        manifest["flat"] = None
        for file in manifest["shards"]:
            file["param_shard_offset"] = file["param_shard_numel"] = 0
        del manifest[key]
        FILES[f"good-without-{key}"] = text(manifest)
    manifest = base()
    manifest["later"] = {"any": [1, {"thing": None}]}
    manifest["job"]["account"] = "x"
    manifest["items"][0]["layout"] = "strided"
    manifest["shards"][0]["node"] = "n1"
    FILES["good-unknown-members"] = text(manifest)
    change("good-user-null", "user", None)
    change("good-user-depth-15", "user", nested(15))
    change("good-largest-integers", "user", {"a": 2**53 - 1, "b": -(2**53 - 1)})
    change("good-step-0", "step", 0)
    change("good-chunks-of-4096", "shards", 1, shard(1, 0, 5 * 4096 - 1, 60, 30, 4096))
    FILES["good-without-white-space"] = json.dumps(base(), separators=(",", ":"))


def nested(levels):
    value = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def make_bad_heads():
    change("schema-version-2", "schema_version", 2)
    change("schema-version-0", "schema_version", 0)
    change("schema-version-text", "schema_version", "1")
    for key in base():
        if key not in ("user", "flat"):
            change(f"missing-{key.replace('_', '-')}", key, MISSING)
    for key in ("cluster", "id", "restart_count", "step_id"):
        change(f"missing-job-{key.replace('_', '-')}", "job", key, MISSING)
    change("world-size-0", "world_size", 0)
    change("world-size-beyond-limit", "world_size", 1048577)
    change("world-size-text", "world_size", "2")
    change("step-2-to-53", "step", 2**53)
    change("step-negative", "step", -1)
    change("step-fraction", "step", 1.5)
    change("step-text", "step", "1234")
    change("step-null", "step", None)
    change("generation-0", "generation", 0)
    change("generation-2-to-53", "generation", 2**53)
    change("wall-clock-negative", "wall_clock_seconds", -0.5)
    change("wall-clock-text", "wall_clock_seconds", "3600")
    edit("wall-clock-infinite", "3600.25", "1e999")
    change("wall-clock-beyond-2-to-53", "wall_clock_seconds", 1e16)
    change("run-id-short", "run_id", "0123456789abcdef")
    change("run-id-upper-case", "run_id", "0123456789ABCDEF" * 2)
    change("save-id-long", "save_id", "f" * 33)
    change("run-control-character", "run", "a\u001b[31m")
    change("run-too-long", "run", "x" * 192)
    change("job-text", "job", "4711")
    change("job-id-number", "job", "id", 4711)
    change("job-nodes-c1-control", "job", "nodes", "n1\u009b")
    change("created-without-z", "created", "2026-11-29T20:37:50")
    change("created-offset", "created", "2026-11-29T20:37:50+01:00")
    change("created-fraction", "created", "2026-11-29T20:37:50.5Z")
    change("created-february-30", "created", "2026-02-30T20:37:50Z")
    change("created-number", "created", 1764448670)
    change("writer-null", "writer", None)
    change("user-array", "user", [1])
    change("user-text", "user", "{}")
    change("user-integer-2-to-53", "user", {"seed": 2**53})
    change("user-depth-16", "user", nested(16))
    edit("user-key-with-escapes", '"user"', '"\\u0075ser"')
    edit("duplicate-key", '"step": 1234,', '"step": 1234,\n "step": 1235,')
    edit("duplicate-key-in-shard", '"rank": 0,', '"rank": 0, "rank": 0,')
    edit("duplicate-key-in-user", '"lr": 0.001,', '"lr": 0.001, "lr": 0.002,')
    edit("not-utf8", '"bert-large"', '"bert-\udc80"')
    FILES["array-at-top"] = "[]\n"
    FILES["cut"] = text(base())[:-20]
    FILES["empty"] = ""
    FILES["two-manifests"] = text(base()) * 2


def make_bad_items():
    params = {"name": "params", "dtype": "F32", "kind": "sharded", "global_shape": [100]}
    rng = {"name": "rng", "dtype": "U8", "kind": "per-rank", "global_shape": None}
    for key in params:
        change(f"item-missing-{key.replace('_', '-')}", "items", 0, key, MISSING)
    change("item-not-an-object", "items", 0, "params")
    change("item-twice", "items", [params, params])
    change("item-unsorted", "items", [rng, params])
    change("item-name-empty", "items", [{**params, "name": ""}, params])
    change("item-name-control", "items", [{**params, "name": "\n"}, params])
    change("item-name-reserved", "items", 1, {**rng, "name": "rank-3/rng"})
    change("item-name-metadata", "items", [{**params, "name": "__metadata__"}, params])
    change("item-name-too-long", "items", 2, {**params, "name": "z" * 1025})
    change("item-dtype-unknown", "items", 0, {**params, "dtype": "F33"})
    change("item-dtype-4-bit", "items", 0, {**params, "dtype": "F4"})
    change("item-kind-unknown", "items", 0, {**params, "kind": "replicated"})
    change("item-shape-null", "items", 0, {**params, "global_shape": None})
    change("item-shape-negative", "items", 0, {**params, "global_shape": [-1]})
    change("item-shape-2-to-53", "items", 0, {**params, "global_shape": [2**53]})
    change("item-shape-text", "items", 0, {**params, "global_shape": ["100"]})
    change("item-shape-33-dimensions", "items", 2, {**params, "name": "z", "global_shape": [1] * 33})
    change("item-shape-overflow", "items", 2,
           {**params, "name": "z", "global_shape": [2**31, 2**31, 2**31]})
    change("per-rank-with-shape", "items", 1, {**rng, "global_shape": [5]})
    change("per-rank-f32", "items", 1, {**rng, "dtype": "F32"})
    change("flat-unknown", "flat", "weights")
    change("flat-number", "flat", 1)
    change("flat-per-rank", "flat", "rng")
    change("flat-scalar", "flat", "scale")
    change("param-shard-beyond-flat", "shards", 2, "param_shard_numel", 11)
    change("param-shard-offset-alone", "shards", 2, "param_shard_numel", 0)
    change("param-shard-without-flat", "flat", None)


def make_bad_shards():
    first, second, third = base()["shards"]
    for key in first:
        change(f"shard-missing-{key.replace('_', '-')}", "shards", 0, key, MISSING)
    change("shard-not-an-object", "shards", 0, None)
    change("shards-object", "shards", {})
    change("shards-empty", "shards", [])
    change("rank-out-of-range", "world_size", 1)
    change("rank-0-without-file", "shards", [second, third])
    change("rank-1-without-file", "shards", [first, shard(2, 0, 4096, 0, 0)])
    FILES["rank-1-without-file"] = FILES["rank-1-without-file"].replace(
        '"world_size": 2', '"world_size": 3')
    change("last-rank-without-file", "world_size", 3)
    change("rank-negative", "shards", 0, "rank", -1)
    change("rank-text", "shards", 0, "rank", "0")
    change("part-0-missing", "shards", [first, third])
    change("part-0-of-rank-0-missing", "shards", 0, shard(0, 1, 4496, 0, 60))
    change("part-gap", "shards", 2, shard(1, 2, 4136, 90, 10))
    change("parts-unordered", "shards", [first, third, second])
    change("ranks-unordered", "shards", [second, third, first])
    change("ranks-unordered-later", "shards", [first, second, first])
    change("path-twice", "shards", [first, second, second])
    change("path-of-another-rank", "shards", 1, "path", "rank-00000.0.safetensors")
    change("path-absolute", "shards", 0, "path", "/etc/rank-00000.0.safetensors")
    change("path-with-slash", "shards", 0, "path", "a/rank-00000.0.safetensors")
    change("path-dot", "shards", 0, "path", ".")
    change("path-dot-dot", "shards", 0, "path", "..")
    change("path-up", "shards", 0, "path", "../rank-00000.0.safetensors")
    change("path-empty", "shards", 0, "path", "")
    change("path-other-suffix", "shards", 0, "path", "rank-00000.0.bin")
    change("path-few-digits", "shards", 0, "path", "rank-0.0.safetensors")
    change("path-control-character", "shards", 0, "path", "rank-00000.0.safetensors\u0007")
    change("path-too-long", "shards", 0, "path", "rank-" + "0" * 60)
    change("sha256-upper-case", "shards", 0, "sha256", "AB" * 32)
    change("sha256-short", "shards", 0, "sha256", "ab" * 31)
    change("sha256-no-hex", "shards", 0, "sha256", "xy" * 32)
    change("crc32-upper-case", "shards", 0, "crc32", "89ABCDEF")
    change("crc32-short", "shards", 0, "crc32", "89abcde")
    change("crc32-number", "shards", 0, "crc32", 0x89abcdef)
    change("bytes-negative", "shards", 0, "bytes", -4496)
    change("bytes-2-to-53", "shards", 0, "bytes", 2**53)
    change("chunk-bytes-no-power-of-two", "shards", 0, "chunk_bytes", MIB16 + 4096)
    change("chunk-bytes-2048", "shards", 0, "chunk_bytes", 2048)
    change("chunk-bytes-0", "shards", 0, "chunk_bytes", 0)
    change("chunk-crc32-short", "shards", 1, "chunk_crc32", "00000000" * 3)
    change("chunk-crc32-long", "shards", 1, "chunk_crc32", "00000000" * 5)
    change("chunk-crc32-odd", "shards", 1, "chunk_crc32", "0" * 31)
    change("chunk-crc32-upper-case", "shards", 1, "chunk_crc32", "0000000A" * 4)
    change("chunk-crc32-array", "shards", 0, "chunk_crc32", ["00000000"])
    change("param-shard-offset-2-to-53", "shards", 0, "param_shard_offset", 2**53)
    change("param-shard-numel-fraction", "shards", 0, "param_shard_numel", 0.5)


def main():
    make_good()
    make_bad_heads()
    make_bad_items()
    make_bad_shards()
    shutil.rmtree(FOLDER, ignore_errors=True)
    os.makedirs(FOLDER)
    for name, content in FILES.items():
        with open(os.path.join(FOLDER, name + ".json"), "wb") as file:
            file.write(content.encode("utf-8", "surrogateescape"))


main()
