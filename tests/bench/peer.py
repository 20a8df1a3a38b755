"""One rank of a job that saves and loads as others do, when told.

    peer.py KIND DIRECTORY RANKS MIB RANK       KIND: dcp, torch_save or course

Commands and answers are those of job.c: "save NAME" and "load NAME"; begin, may go on, end. Each save is
on disk when it ends: files and directory are synced as far as the peer itself does not.
"""
import dataclasses
import hashlib
import json
import os
import pickle
import sys
import time

TENSORS = 16


def publish(path, write):
    """A file is written under another name, synced, and renamed."""
    with open(path + ".tmp", "wb") as out:
        write(out)
        out.flush()
        os.fsync(out.fileno())
    os.rename(path + ".tmp", path)


def sync_directory(path):
    fd = os.open(path, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


class Course:
    """The course's scheme: pickle, SHA-256, write, sync, rename; check before use."""

    def __init__(self, rank, ranks, elements, directory):
        import numpy
        random = numpy.random.default_rng(rank)
        self.rank = rank
        self.state = {f"layer.{i}": random.random(elements, numpy.float32) for i in range(TENSORS)}

    def save(self, path):
        os.makedirs(path, exist_ok=True)
        data = pickle.dumps(self.state)
        entry = json.dumps({"rank": self.rank, "sha256": hashlib.sha256(data).hexdigest()}).encode()
        publish(f"{path}/rank-{self.rank}.pkl", lambda out: out.write(data))
        publish(f"{path}/rank-{self.rank}.json", lambda out: out.write(entry))
        sync_directory(path)

    def load(self, path):
        with open(f"{path}/rank-{self.rank}.json") as entry, open(f"{path}/rank-{self.rank}.pkl", "rb") as file:
            data = file.read()
            if hashlib.sha256(data).hexdigest() != json.load(entry)["sha256"]:
                raise ValueError(f"{path}: rank {self.rank}: the file is not what was written")
            return pickle.loads(data)

    def spoil(self):
        """What load does not bring anew."""

    def sums(self, state):
        return [int(tensor.view("int32").sum(dtype="int64")) for tensor in state.values()]


class TorchSave:
    """torch.save, with what makes it durable. It checks nothing."""

    def __init__(self, rank, ranks, elements, directory):
        import torch
        torch.manual_seed(rank)
        self.torch = torch
        self.rank = rank
        self.state = {f"layer.{i}": torch.rand(elements) for i in range(TENSORS)}

    def save(self, path):
        os.makedirs(path, exist_ok=True)
        publish(f"{path}/rank-{self.rank}.pt", lambda out: self.torch.save(self.state, out))
        sync_directory(path)

    def load(self, path):
        return self.torch.load(f"{path}/rank-{self.rank}.pt")

    def spoil(self):
        """What load does not bring anew."""

    def sums(self, state):
        return [int(tensor.view(self.torch.int32).sum()) for tensor in state.values()]


def import_distributed_checkpoint():
    """PyTorch 1.13 has it under another name, with defaults of dataclasses that Python 3.11 refuses."""
    try:
        from torch.distributed import checkpoint
        return checkpoint
    except ImportError:
        pass
    strict = dataclasses.dataclass

    def hashable(cls=None, /, **options):
        def decorate(cls):
            made = strict(cls, **options)
            if made.__hash__ is None:
                made.__hash__ = object.__hash__
            return made
        return decorate if cls is None else decorate(cls)

    dataclasses.dataclass = hashable
    try:
        from torch.distributed._shard import checkpoint
    finally:
        dataclasses.dataclass = strict
    return checkpoint


class Dcp(TorchSave):
    """PyTorch's distributed checkpoint: each tensor in shards by rank. It checks nothing."""

    def __init__(self, rank, ranks, elements, directory):
        super().__init__(rank, ranks, elements, directory)
        self.checkpoint = import_distributed_checkpoint()
        from torch import distributed
        from torch.distributed._shard import sharded_tensor
        distributed.init_process_group("gloo", init_method=f"file://{directory}/rendezvous", rank=rank,
                                       world_size=ranks)
        self.sharded = {}
        for name, tensor in self.state.items():
            shard = sharded_tensor.Shard.from_tensor_and_offsets(tensor, [elements * rank], rank)
            self.sharded[name] = sharded_tensor.init_from_local_shards([shard], [elements * ranks])

    def save(self, path):
        self.checkpoint.save_state_dict(self.sharded, self.checkpoint.FileSystemWriter(path, sync_files=True))
        sync_directory(path)

    def spoil(self):
        for tensor in self.state.values():
            tensor.zero_()

    def load(self, path):
        self.checkpoint.load_state_dict(self.sharded, self.checkpoint.FileSystemReader(path))
        return self.state


def load(peer, path):
    """Times, and whether what was loaded is what was saved."""
    before = peer.sums(peer.state)
    peer.spoil()
    begin = time.monotonic()
    loaded = peer.load(path)
    end = time.monotonic()
    if peer.sums(loaded) != before:
        sys.exit(f"{path}: another state was loaded")
    return begin, end


def save(peer, path):
    begin = time.monotonic()
    peer.save(path)
    return begin, time.monotonic()


def main():
    kinds = {"dcp": Dcp, "torch_save": TorchSave, "course": Course}
    kind, directory, ranks, mib, rank = *sys.argv[1:3], *map(int, sys.argv[3:])
    peer = kinds[kind](rank, ranks, (mib << 20) // 4 // TENSORS, directory)
    print("ready", flush=True)
    for line in sys.stdin:
        command, name = line.split()
        begin, end = {"save": save, "load": load}[command](peer, f"{directory}/{name}")
        print(f"{begin:.6f} {end:.6f} {end:.6f}", flush=True)


main()
