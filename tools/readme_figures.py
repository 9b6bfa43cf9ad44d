#!/usr/bin/env python3
"""Measures again what the documents show: lines of the demo's output, and the log's own speed.

    tools/readme_figures.py [--leat build/leat] [--runs 5] [--minutes 20] [--busy]

Needs a machine that does nothing else: refuses when it is busy, unless told otherwise. Replaces the
output of `$ make demo` in README.md, and in bench/results/README.md what lies between the lines
`<!-- figures … -->` and `<!-- end of figures -->`. Every number comes from a command of Leat.

A virtual machine's two CPUs may share a cache now and none a minute later. So log and latency are measured
one run after the other, for --minutes at most, until there are enough runs of both states.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
# Document, what comes before the figures, what comes after them.
DEMO = (ROOT / "README.md", r"\$ make demo\n", r"\n```")
SPEED = (ROOT / "bench" / "results" / "README.md",
         r"<!-- figures[^\n]*-->\n", r"\n<!-- end of figures -->")
SIZES = [8, 32, 100, 1024]
TRIP_SIZES = [8, 100, 1024]  # Of `leat bench latency`.
STATES = ["near", "far"]
BUSY_LOAD = 0.7  # Load average of the last minute.


def run(leat, *arguments):
    done = subprocess.run([leat, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"leat {' '.join(map(str, arguments))} exited with {done.returncode}: {done.stderr}")
    return done.stdout


def demo_text(leat, runs):
    """Four lines: the head, both sides of the first workload at the same time, the verdict."""
    lines = run(leat, "demo", "--runs", runs).rstrip("\n").split("\n")
    concurrent = next(i for i, line in enumerate(lines) if line.startswith("  concurrent"))
    sides = [line for line in lines[concurrent:]
             if line.startswith(("    publisher", "    subscriber"))][:2]
    return "\n".join([lines[0], "…", *sides, "…", lines[-1]])


class States:
    """Runs of `leat bench log` and `leat bench latency`, by where the CPUs were: near or far."""

    def __init__(self, leat, runs, minutes, pin):
        self.values = defaultdict(list)  # (state, what, size) -> nanoseconds, one for each run
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end and not all(self.has(state, runs) for state in STATES):
            self.report = self.add(leat, "log", pin)
            self.add(leat, "latency", pin)

    def add(self, leat, command, pin):
        report = json.loads(run(leat, "bench", command, "--runs", 1, "--pin", pin, "--json"))
        for case in report["cases"]:
            parameters, state = case["parameters"], case["cpus"]
            if parameters.get("publishers", 1) != 1:
                continue
            what = (parameters["mode"], parameters["batch"]) if command == "log" else command
            self.values[state, what, parameters["size"]].append(
                case["median"]["ns_per_record" if command == "log" else "round_trip_ns"])
            self.values[state, f"floor of {command}", parameters["size"]].append(case["floor"])
        return report

    def has(self, state, runs):
        return all(len(self.values[state, ("exclusive", 1), size]) >= runs for size in SIZES)

    def row(self, title, state, what, text_of):
        """A row of medians; a dash where the CPUs never were in this state."""
        found = [self.values[state, what, size] for size in SIZES]
        sizes = TRIP_SIZES if "latency" in str(what) else SIZES
        return [f"{title}, {state}", *(text_of(median(values)) if values else "–" if size in sizes else ""
                                       for size, values in zip(SIZES, found))]


def rate_text(ns):
    rate = 1000 / ns
    return f"{rate:.1f} M/s, {ns:.1f} ns" if rate >= 1 else f"{rate:.2f} M/s, {ns:.0f} ns"


def time_text(ns):
    return f"{ns:.0f} ns"


def kernel_rows(limits, channel, title):
    """Two rows for a kernel channel: time per message, and time for a message and its answer."""
    stream, trip = limits["median"][channel], limits["median"][f"{channel}_round_trip"]
    return ([title, *(rate_text(stream[str(size)]["ns_per_record"]) for size in SIZES)],
            [f"{title}, a message and its answer",
             *(f"{trip[str(size)]['round_trip_ns']:.0f} ns" if str(size) in trip else ""
               for size in SIZES)])


def figures(leat, runs, minutes, pin):
    states = States(leat, runs, minutes, pin)
    rows_of = lambda title, what, text_of: [states.row(title, state, what, text_of) for state in STATES]
    limits = json.loads(run(leat, "bench", "limits", "--runs", runs, "--pin", pin, "--json"))
    pipe, pipe_trip = kernel_rows(limits, "pipe", "pipe")
    socket, socket_trip = kernel_rows(limits, "unix_socket", "Unix socket")
    rows = [
        ["records a second, time per record", *(f"{size} B" for size in SIZES)],
        ["---"] * 5,
        *rows_of("Leat, exclusive publisher", ("exclusive", 1), rate_text),
        *rows_of("Leat, the same in batches of 16", ("exclusive", 16), rate_text),
        *rows_of("Leat, shared publisher", ("shared", 1), rate_text),
        *rows_of("floor: a bare ring", "floor of log", rate_text),
        pipe,
        socket,
        *rows_of("Leat, a message and its answer", "latency", time_text),
        *rows_of("floor: the same through a single slot", "floor of latency", time_text),
        pipe_trip,
        socket_trip,
    ]
    table = "\n".join(("| " + " | ".join(row) + " |").replace("|  |", "| |") for row in rows)
    machine, commit = states.report["machine"], states.report["commit"]
    counts = {state: len(states.values[state, ("exclusive", 1), 100]) for state in STATES}
    return (f"{table}\n\n"
            f"One publisher and one subscriber, separate processes, 8 MiB. *Near*: the two CPUs share a cache; *far*: they do "
            f"not.\nMedian of {counts['near']} runs near and {counts['far']} far: {machine['cpu']}, "
            f"{machine['cpus_online']} cores, {machine['kernel']},\n{machine['compiler']}, commit {commit}; by "
            f"`leat bench log --pin {pin}`, `leat bench latency --pin {pin}`\nand `leat bench limits --pin {pin}`. "
            f"Pipe and socket: one write for each message, both sides sleep when\nthey have to wait.\n\n"
            f"{promises(leat, runs, pin)}")


def promises(leat, runs, pin):
    """The text below the table: cost of many subscribers, of waiting, and of a killed process."""
    many = json.loads(run(leat, "bench", "log", "--size", 100, "--mode", "exclusive", "--subscribers", 8,
                          "--rate", 10_000, "--records", 30_000, "--runs", runs, "--pin", pin, "--json"))
    idle = json.loads(run(leat, "bench", "idle", "--json"))
    crash = json.loads(run(leat, "bench", "crash", "--json"))
    worst_us = max(kind["release_to_progress_us"] for kind in crash["median"].values())
    return (f"With eight subscribers awake, publishing costs {many['publisher_cpu_ratio_to_one']:.2f} times the CPU time "
            f"that it costs with one\n(`leat bench log --subscribers 8 --rate 10000`). Eight subscribers that wait use "
            f"{idle['median']['cpu_ms']:.1f} ms of CPU time in\n{idle['parameters']['seconds']:.0f} s "
            f"(`leat bench idle`). After a `kill -9` the others go on {worst_us / 1000:.1f} ms after the kernel has released "
            f"the\nvictim's lock (`leat bench crash`, the slowest of {len(crash['median'])} kinds, "
            f"median of {crash['parameters']['kills']}).")


def put(place, text):
    """Writes figures into their document."""
    document, before, after = place
    old = document.read_text(encoding="utf-8")
    new, count = re.subn(f"({before}).*?({after})",
                         lambda found: found.group(1) + text + found.group(2), old,
                         count=1, flags=re.S)
    if count != 1:
        sys.exit(f"{document.relative_to(ROOT)} has no place for this: {before}")
    document.write_text(new, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description="Measures again what the documents show.")
    parser.add_argument("--leat", default="build/leat")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=20, help="how long to wait for near and far")
    parser.add_argument("--pin", default="0,1")
    parser.add_argument("--busy", action="store_true", help="measure on a busy machine all the same")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    if load > BUSY_LOAD and not arguments.busy:
        sys.exit(f"this machine is busy (load {load}): figures would be wrong; wait, or say --busy")

    table = figures(arguments.leat, arguments.runs, arguments.minutes, arguments.pin)
    demo = demo_text(arguments.leat, arguments.runs)
    put(SPEED, table)
    put(DEMO, demo)
    print(table)


if __name__ == "__main__":
    main()
