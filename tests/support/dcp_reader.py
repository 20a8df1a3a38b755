#!/usr/bin/env python3
"""Read a step directory as PyTorch's HuggingFaceStorageReader does, and reshard it.

usage: dcp_reader.py STEP_DIRECTORY RANKS WANTED_DIRECTORY

The algorithm, with nothing but the standard library: open every *.safetensors of the folder; a tensor's chunk
is at the saved_offsets of DCP_SHARDING_INFO, as large as its shape; its global size is the largest offset plus
size; chunks are found by name and offset. Then each of RANKS ranks wants a slab of the first dimension of each
tensor (all of a scalar) and copies it together from slices of the chunks. What each has is compared with
WANTED_DIRECTORY/want-<name>, the whole tensor as raw bytes. Exits 1 at the first difference.
"""
import json
import os
import struct
import sys

SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "I16": 2, "I32": 4, "I64": 8, "F16": 2, "BF16": 2, "F32": 4, "F64": 8,
         "U16": 2, "U32": 4, "U64": 8, "C64": 8, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
         "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1}


def read_metadata(folder):
    """{name: {"size", "itemsize", "chunks": {offset: (path, begin, shape)}}}"""
    tensors = {}
    for file in sorted(os.listdir(folder)):
        if not file.endswith(".safetensors"):
            continue
        path = os.path.join(folder, file)
        with open(path, "rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            header = json.loads(stream.read(length))
        offsets = json.loads(header.pop("__metadata__")["DCP_SHARDING_INFO"])
        for name, entry in header.items():
            offset = tuple(offsets[name]["saved_offsets"])
            shape = tuple(entry["shape"])
            tensor = tensors.setdefault(name, {"size": [0] * len(shape), "chunks": {}})
            tensor["itemsize"] = SIZES[entry["dtype"]]
            tensor["size"] = [max(old, at + n) for old, at, n in zip(tensor["size"], offset, shape)]
            if offset in tensor["chunks"]:
                sys.exit(f"{file}: {name}: a second chunk at {offset}")
            tensor["chunks"][offset] = (path, 8 + length + entry["data_offsets"][0], shape)
    return tensors


def copy_slice(whole, whole_at, whole_shape, chunk, chunk_at, chunk_shape, itemsize):
    """Copy what a chunk shares with a destination box, run by run of the last dimension."""
    low = [max(a, b) for a, b in zip(whole_at, chunk_at)]
    high = [min(a + n, b + m) for a, n, b, m in zip(whole_at, whole_shape, chunk_at, chunk_shape)]
    if any(a >= b for a, b in zip(low, high)):
        return
    if not low:
        whole[:] = chunk
        return

    def linear(index, at, shape):
        place = 0
        for i, a, n in zip(index, at, shape):
            place = place * n + (i - a)
        return place * itemsize

    index, run = list(low), (high[-1] - low[-1]) * itemsize
    while True:
        to, source = linear(index, whole_at, whole_shape), linear(index, chunk_at, chunk_shape)
        whole[to:to + run] = chunk[source:source + run]
        for d in range(len(index) - 2, -1, -1):
            index[d] += 1
            if index[d] < high[d]:
                break
            index[d] = low[d]
        else:
            return


def load(tensor, at, shape):
    count = 1
    for n in shape:
        count *= n
    out = bytearray(b"\xee" * (count * tensor["itemsize"]))
    for offset, (path, begin, chunk_shape) in tensor["chunks"].items():
        size = tensor["itemsize"]
        for n in chunk_shape:
            size *= n
        with open(path, "rb") as stream:
            stream.seek(begin)
            copy_slice(out, at, shape, stream.read(size), offset, chunk_shape, tensor["itemsize"])
    return bytes(out)


def main():
    folder, ranks, wanted = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    count = 0
    for name, tensor in sorted(read_metadata(folder).items()):
        if name.startswith("rank-"):
            continue
        with open(os.path.join(wanted, "want-" + name), "rb") as stream:
            want = stream.read()
        got = b""
        size = tensor["size"]
        for rank in range(ranks):
            if not size:
                got = load(tensor, [], [])
                continue
            begin, end = size[0] * rank // ranks, size[0] * (rank + 1) // ranks
            got += load(tensor, [begin] + [0] * (len(size) - 1), [end - begin] + size[1:])
        if got != want:
            sys.exit(f"{name}: differs")
        count += 1
    print(f"{count} tensors, {ranks} ranks: equal")


if __name__ == "__main__":
    main()
