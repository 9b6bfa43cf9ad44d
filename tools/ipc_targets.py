#!/usr/bin/env python3
"""Prints Leat's speed targets beside other methods and systems, and what was measured, in Markdown.

    tools/ipc_targets.py bench/results

Ratios of the medians that `make bench-ipc` wrote there, and `make bench-peers` into the directory
peers below; of those only the runs in which the CPUs were near each other, and for one row far. bench/results/README.md has the tables; tools/readme_tables.py keeps them up to date.
"""
import json
import sys
from pathlib import Path
from statistics import median

SIZES = {1: "1 B", 100: "100 B", 1024: "1 KiB", 16384: "16 KiB"}
RIVALS_SIZES = {8: "8 B", 100: "100 B", 1024: "1 KiB"}
OURS = ("leat", "leat-group")
FAR_NS = 150  # As in leat bench: within a last-level cache a round trip of a line takes 40 to 100.
FEWEST_RUNS = 2  # Of one state, for a median.


class Rows:
    """The medians of one pattern and size."""

    def __init__(self, directory, pattern, size):
        report = json.loads((directory / f"{pattern}-{size}.json").read_text(encoding="utf-8"))
        self.commit = report["commit"]
        self.rows = [row for row in report["results"] if row["median"]]

    def one(self, method, variant, figure, batch=1):
        for row in self.rows:
            if (row["method"], row["variant"], row["batch"]) == (method, variant, batch):
                return row["median"][figure]
        sys.exit(f"no {variant} {method} in batches of {batch} among the results of commit {self.commit}")

    def others(self, figure, baseline):
        return [row["median"][figure] for row in self.rows if row["method"] not in OURS
                and row["baseline"] == baseline and row["batch"] == 1]


def figures_of(trips, one_way, size):
    """A column of the table: the cell of each line for one size."""
    def trip(figure):
        return trips.one("leat", "spinning", figure)

    def against(figure, baseline):
        return trip(figure) / min(trips.others(figure, baseline))

    def blocking(figure):
        return trips.one("leat", "blocking", figure) / trips.one("futex", "blocking", figure)

    def batched(variant):
        def rate(method):
            return one_way.one(method, variant, "messages_per_second", 64)
        return rate("leat") / rate("pipe")

    rate = "messages_per_second"
    fastest_other = max(one_way.others(rate, False) + one_way.others(rate, True))
    return {
        "spinning round trip, p50 ÷ best baseline": f"1.6 / {against('p50_ns', True):.2f}",
        "spinning round trip, p99 ÷ best baseline": f"1.6 / {against('p99_ns', True):.2f}",
        "spinning round trip, p99.9 ÷ best baseline": f"1.6 / {against('p999_ns', True):.2f}",
        "spinning round trip, p50 ÷ spinning POSIX semaphore (one of the baselines)":
            f"1 / {trip('p50_ns') / trips.one('sem-posix', 'spinning', 'p50_ns'):.2f}",
        "spinning round trip, p50 and p99 ÷ best other method":
            f"1 / {against('p50_ns', False):.2f}, {against('p99_ns', False):.2f}",
        "spinning round trip, p99.9 ÷ best other method":
            f"1 / {against('p999_ns', False):.2f}",
        "one way, one message at a time, messages/s ÷ best of all others":
            f"1 / {one_way.one('leat', 'spinning', rate) / fastest_other:.1f}",
        "blocking round trip, mean ÷ bare futex": f"1.1 / {blocking('mean_ns'):.2f}",
        "blocking round trip, CPU time ÷ bare futex": f"1.1 / {blocking('cpu_ns_per_message'):.2f}",
        "one way, batches of 64, messages/s ÷ pipe":
            f"2 / {batched('spinning'):.1f} spinning, {batched('blocking'):.1f} blocking"
            if size == 100 else "",
    }


def rivals_figures_of(results, size):
    """The same beside other systems: the ratio, and whose figure it is."""
    def figures_of_state(row, figure, is_far):
        # Older files do not say where the CPUs were.
        return [run[figure] for run in row["runs"] if ((run.get("line_ns") or 0) >= FAR_NS) == is_far]

    def of(pattern, figure, best, in_process, is_far=False):
        ours, others = None, []
        for row in results:
            is_wanted = row["median"] and (row["pattern"], row["size"], row["batch"]) == (pattern, size, 1)
            figures = figures_of_state(row, figure, is_far) if is_wanted else []
            if len(figures) < FEWEST_RUNS:
                continue
            if (row["method"], row["variant"]) == ("leat", "spinning"):
                ours = median(figures)
            elif row["method"] != "leat" and row.get("in_process", False) == in_process:
                others.append((median(figures), row["method"]))
        if ours is None or not others:
            return "1 / not measured"
        value, name = best(others)
        return f"1 / {ours / value:.2f} ({name})"

    figures = {}
    for in_process, where in ((False, ""), (True, ", threads of one process")):
        for figure in ("p50", "p99", "p99.9"):
            figures[f"spinning round trip, {figure} ÷ best rival{where}"] = \
                of("pingpong", f"{figure.replace('.', '')}_ns", min, in_process)
        figures[f"one way, one record at a time, records/s ÷ best rival{where}"] = \
            of("oneway", "messages_per_second", max, in_process)
    figures["one way, CPUs far from each other, one record at a time, records/s ÷ best rival"] = \
        of("oneway", "messages_per_second", max, False, is_far=True)
    return figures


def print_table(beside, sizes, commits, columns):
    print(f"Beside other {beside}. Wanted / measured at commit {', '.join(sorted(commits))}:\n")
    print(f"| | {' | '.join(sizes.values())} |")
    print("|---|" + "---|" * len(sizes))
    for title in columns[0]:
        print(f"| {title} | {' | '.join(column[title] for column in columns)} |")


def main():
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: tools/ipc_targets.py DIRECTORY, such as bench/results")
    directory = Path(sys.argv[1])
    columns, commits = [], set()
    for size in SIZES:
        trips, one_way = (Rows(directory, pattern, size) for pattern in ("pingpong", "oneway"))
        commits |= {trips.commit, one_way.commit}
        columns.append(figures_of(trips, one_way, size))
    print_table("methods, Leat divided by the other", SIZES, commits, columns)
    peers = json.loads((directory / "peers" / "results.json").read_text(encoding="utf-8"))
    print()
    print_table("systems, with CPUs near each other unless it says otherwise, Leat divided by the best of them, "
                "which is named in brackets",
                RIVALS_SIZES, {peers["commit"]},
                [rivals_figures_of(peers["results"], size) for size in RIVALS_SIZES])


if __name__ == "__main__":
    main()
