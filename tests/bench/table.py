"""The table that the benchmarks print, and the same as JSON: one result a line, with its budget.

A result is a dictionary: name, ratio, min, max, unit, n, what. A name may end in "/<shape>". A budget is
(limit, True when more is better), by the name without the shape. What misses its budget is marked.
"""
import json
from statistics import median

KEYS = ("name", "ratio", "min", "max", "unit", "n")


def result(name, unit, values, what):
    """The result of a list of measured values."""
    return {"name": name, "ratio": median(values), "min": min(values), "max": max(values), "unit": unit,
            "n": len(values), "what": what}


def heading():
    print(f"{'':40} {'median':>8} {'min':>8} {'max':>8}  n unit     budget")


def verdict(row, budgets):
    budget = budgets.get(row["name"].split("/")[0])
    if budget is None:
        return ""
    limit, more = budget
    good = row["ratio"] >= limit if more else row["ratio"] <= limit
    return f"{'>=' if more else '<='} {limit:g}{'' if good else ' MISSED'}"


def line(row, budgets):
    print(f"{row['name']:40} {row['ratio']:8.4g} {row['min']:8.4g} {row['max']:8.4g} {row['n']:2} "
          f"{row['unit']:8} {verdict(row, budgets):15} {row['what']}", flush=True)


def write(path, rows):
    with open(path, "w") as out:
        json.dump([{key: row[key] for key in KEYS} for row in rows], out, indent=1)
        out.write("\n")


def memory_available():
    with open("/proc/meminfo") as lines:
        for text in lines:
            if text.startswith("MemAvailable:"):
                return int(text.split()[1]) * 1024
    return 0
