#!/usr/bin/env python3
"""Open the shards of a step directory as plain safetensors: read_shards.py DIRECTORY

Nothing here comes from slurm-ckpt. Prints one line per tensor: file, name, dtype, shape, offsets.
Exits 1 with one line if a file is no safetensors or says nothing of where a tensor lies.
"""
import json
import math
import pathlib
import struct
import sys

BYTES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "F16": 2, "BF16": 2, "I32": 4, "U32": 4, "F32": 4,
         "I64": 8, "U64": 8, "F64": 8}


def read(path):
    data = path.read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length].decode("utf-8"))
    metadata = header.pop("__metadata__")
    places = json.loads(metadata["DCP_SHARDING_INFO"])
    assert metadata["format"] == "pt" and set(places) == set(header), "DCP_SHARDING_INFO is incomplete"
    end = 0
    for name, tensor in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, next_end = tensor["data_offsets"]
        offsets = places[name]["saved_offsets"]
        assert begin == end, f"{name}: a hole or an overlap"
        assert next_end - begin == BYTES[tensor["dtype"]] * math.prod(tensor["shape"]), f"{name}: wrong size"
        assert len(offsets) == len(tensor["shape"]), f"{name}: wrong saved_offsets"
        end = next_end
        print(path.name, name, tensor["dtype"], tensor["shape"], offsets)
    assert 8 + length + end == len(data), "the tensors do not end with the file"


for shard in sorted(pathlib.Path(sys.argv[1]).glob("*.safetensors")) or sys.exit("no shards"):
    try:
        read(shard)
    except (AssertionError, KeyError, ValueError, struct.error) as error:
        sys.exit(f"{shard}: {type(error).__name__}: {error}")
