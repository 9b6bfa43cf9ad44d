#!/usr/bin/env python3
"""What was wanted of the log among all ways of talking, and what it is, as a table in Markdown.

    tools/ipc_targets.py bench/results

Quotients of the medians that `make bench-ipc` wrote there. docs/ARCHITECTURE.md has the table, and
tools/readme_tables.py keeps it up to date.
"""
import json
import sys
from pathlib import Path

SIZES = {1: "1 B", 100: "100 B", 1024: "1 KiB", 16384: "16 KiB"}
OURS = ("leat", "leat-group")


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
    """What each line of the table says about one size."""
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
        "spinning round trip, p50: times the best baseline": f"1.6 / {against('p50_ns', True):.2f}",
        "the same, p99": f"1.6 / {against('p99_ns', True):.2f}",
        "the same, p99.9": f"1.6 / {against('p999_ns', True):.2f}",
        "spinning p50: times a spinning POSIX semaphore, one slot, which is among the baselines here":
            f"1 / {trip('p50_ns') / trips.one('sem-posix', 'spinning', 'p50_ns'):.2f}",
        "spinning p50 and p99: times the best that is no baseline":
            f"1 / {against('p50_ns', False):.2f}, {against('p99_ns', False):.2f}",
        "spinning p99.9: likewise": f"1 / {against('p999_ns', False):.2f}",
        "one way, one at a time: times the best other":
            f"1 / {one_way.one('leat', 'spinning', rate) / fastest_other:.1f}",
        "blocking round trip: mean, times the bare futex": f"1.1 / {blocking('mean_ns'):.2f}",
        "blocking CPU time: times the bare futex": f"1.1 / {blocking('cpu_ns_per_message'):.2f}",
        "batches of 64, one way: times the pipe":
            f"2 / {batched('spinning'):.1f} spinning, {batched('blocking'):.1f} blocking"
            if size == 100 else "",
    }


def main():
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: tools/ipc_targets.py DIRECTORY, such as bench/results")
    directory = Path(sys.argv[1])
    columns, commits = [], set()
    for size in SIZES:
        trips, one_way = (Rows(directory, pattern, size) for pattern in ("pingpong", "oneway"))
        commits |= {trips.commit, one_way.commit}
        columns.append(figures_of(trips, one_way, size))
    print(f"Wanted / measured at commit {', '.join(sorted(commits))}:\n")
    print(f"| | {' | '.join(SIZES.values())} |")
    print("|---|" + "---|" * len(SIZES))
    for title in columns[0]:
        print(f"| {title} | {' | '.join(column[title] for column in columns)} |")


if __name__ == "__main__":
    main()
