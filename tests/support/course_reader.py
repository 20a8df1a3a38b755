#!/usr/bin/env python3
"""Check a step directory knowing only the course's five fields: course_reader.py DIRECTORY

The fields are schema_version, world_size, step, wall_clock_seconds and shards[] with rank, path,
sha256, param_shard_offset and param_shard_numel. Each file must have its digest, each rank a file,
and the parameter ranges must tile [0, P). Prints "step S, R ranks, F files, P parameters".
"""
import hashlib
import json
import pathlib
import sys


def fail(text):
    sys.exit(f"course_reader: {text}")


directory = pathlib.Path(sys.argv[1])
manifest = json.loads((directory / "manifest.json").read_text())
if manifest["schema_version"] != 1 or manifest["wall_clock_seconds"] < 0:
    fail("schema_version or wall_clock_seconds")
shards = manifest["shards"]
if {shard["rank"] for shard in shards} != set(range(manifest["world_size"])):
    fail(f"world_size is {manifest['world_size']}, ranks are {sorted({s['rank'] for s in shards})}")
for shard in shards:
    path = directory / shard["path"]
    if not path.is_file():
        fail(f"{shard['path']}: missing")
    if hashlib.sha256(path.read_bytes()).hexdigest() != shard["sha256"]:
        fail(f"{shard['path']}: sha256 differs")
end = 0
for begin, numel in sorted((s["param_shard_offset"], s["param_shard_numel"]) for s in shards):
    if numel and begin != end:
        fail(f"parameters: [{begin}, {begin + numel}) follows {end}")
    end = max(end, begin + numel)
print(f"step {manifest['step']}, {manifest['world_size']} ranks, {len(shards)} files, {end} parameters")
