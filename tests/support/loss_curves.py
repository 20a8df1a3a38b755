#!/usr/bin/env python3
"""Are two loss curves the same but for rounding? usage: loss_curves.py FILE FILE LARGEST-DIFFERENCE

Each file has lines "step loss", the loss as a hexadecimal float, as train --losses writes them.
Exit 0 when both have the same steps and no two losses differ by more; else 1, and the difference is printed.
"""
import sys


def read(path):
    with open(path, encoding="ascii") as lines:
        return {int(step): float.fromhex(loss) for step, loss in map(str.split, lines)}


def main():
    one, other, limit = read(sys.argv[1]), read(sys.argv[2]), float(sys.argv[3])
    if one.keys() != other.keys():
        sys.exit(f"different steps: {sorted(one.keys() ^ other.keys())[:5]} ...")
    worst = max(one, key=lambda step: abs(one[step] - other[step]))
    difference = abs(one[worst] - other[worst])
    print(f"largest difference: {difference:.4f} at step {worst}")
    sys.exit(difference > limit)


main()
