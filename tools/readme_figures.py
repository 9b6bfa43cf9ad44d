#!/usr/bin/env python3
"""Measures again what the documents show: lines of the demo's output, and the log's own speed.

    tools/readme_figures.py [--leat build/leat] [--runs 5] [--busy]

Needs a machine that does nothing else: refuses when it is busy, unless told otherwise. Replaces the
output of `$ make demo` in README.md, and in bench/results/README.md what lies between the lines
`<!-- figures … -->` and `<!-- end of figures -->`. Every number comes from a command of Leat.
"""
import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Document, what comes before the figures, what comes after them.
DEMO = (ROOT / "README.md", r"\$ make demo\n", r"\n```")
SPEED = (ROOT / "bench" / "results" / "README.md",
         r"<!-- figures[^\n]*-->\n", r"\n<!-- end of figures -->")
SIZES = [8, 32, 100, 1024]
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


def log_row(report, title, mode, batch):
    found = {}
    for case in report["cases"]:
        parameters = case["parameters"]
        if (parameters["mode"], parameters["batch"], parameters["publishers"]) == (mode, batch, 1):
            found[parameters["size"]] = case["median"]["ns_per_record"]
    return [title, *(rate_text(found[size]) for size in SIZES)]


def rate_text(ns):
    rate = 1000 / ns
    return f"{rate:.1f} M/s, {ns:.1f} ns" if rate >= 1 else f"{rate:.2f} M/s, {ns:.0f} ns"


def floor_row(report):
    found = {case["parameters"]["size"]: case["floor"] for case in report["cases"]}
    return ["floor: a bare ring", *(rate_text(found[size]) for size in SIZES)]


def trip_row(report, title, value_of):
    found = {case["parameters"]["size"]: value_of(case) for case in report["cases"]}
    return [title, *(f"{found[size]:.0f} ns" if size in found else "" for size in SIZES)]


def kernel_rows(limits, channel, title):
    """Two rows for a kernel channel: time per message, and time for a message and its answer."""
    stream, trip = limits["median"][channel], limits["median"][f"{channel}_round_trip"]
    return ([title, *(rate_text(stream[str(size)]["ns_per_record"]) for size in SIZES)],
            [f"{title}, a message and its answer",
             *(f"{trip[str(size)]['round_trip_ns']:.0f} ns" if str(size) in trip else ""
               for size in SIZES)])


def figures(leat, runs, pin):
    log = json.loads(run(leat, "bench", "log", "--runs", runs, "--pin", pin, "--json"))
    latency = json.loads(run(leat, "bench", "latency", "--runs", runs, "--pin", pin, "--json"))
    limits = json.loads(run(leat, "bench", "limits", "--runs", runs, "--pin", pin, "--json"))
    pipe, pipe_trip = kernel_rows(limits, "pipe", "pipe")
    socket, socket_trip = kernel_rows(limits, "unix_socket", "Unix socket")
    rows = [
        ["records a second, time per record", *(f"{size} B" for size in SIZES)],
        ["---"] * 5,
        log_row(log, "Leat, exclusive publisher", "exclusive", 1),
        log_row(log, "Leat, the same in batches of 16", "exclusive", 16),
        log_row(log, "Leat, shared publisher", "shared", 1),
        floor_row(log),
        pipe,
        socket,
        trip_row(latency, "Leat, a message and its answer",
                 lambda case: case["median"]["round_trip_ns"]),
        trip_row(latency, "floor: the same through a single slot", lambda case: case["floor"]),
        pipe_trip,
        socket_trip,
    ]
    table = "\n".join(("| " + " | ".join(row) + " |").replace("|  |", "| |") for row in rows)
    machine = log["machine"]
    return (f"{table}\n\n"
            f"One publisher and one subscriber, separate processes, 8 MiB, median of {runs}: {machine['cpu']}, "
            f"{machine['cpus_online']} cores,\n{machine['kernel']}, {machine['compiler']}, commit "
            f"{log['commit']}; by `leat bench log --pin {pin}`,\n`leat bench latency --pin {pin}` and "
            f"`leat bench limits --pin {pin}`. Pipe and socket: one write for\neach message, both sides "
            f"sleep when they have to wait.\n\n{promises(leat, runs, pin)}")


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
    parser.add_argument("--pin", default="0,1")
    parser.add_argument("--busy", action="store_true", help="measure on a busy machine all the same")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    if load > BUSY_LOAD and not arguments.busy:
        sys.exit(f"this machine is busy (load {load}): figures would be wrong; wait, or say --busy")

    table = figures(arguments.leat, arguments.runs, arguments.pin)
    demo = demo_text(arguments.leat, arguments.runs)
    put(SPEED, table)
    put(DEMO, demo)
    print(table)


if __name__ == "__main__":
    main()
