#!/usr/bin/env python3
"""Prints what a record costs in each language, beside what is wanted, in Markdown.

    tools/clients_table.py bench/results/clients/results.json

The file is what `leat bench clients --peers --json=FILE` wrote. docs/clients.md has the table; tools/readme_tables.py keeps it
up to date.
"""
import json
import sys
from pathlib import Path

TITLES = {"cpp": "C++", "c": "C", "rust": "Rust", "python": "Python", "go": "Go", "java": "Java", "ruby": "Ruby",
          "node": "Node", "lua": "Lua", "luajit": "LuaJIT"}
PARTS = ["publish", "batch", "read", "view"]


def cell(result, part):
    """Nanoseconds, then in brackets wanted / measured times the neighbour; in bold if missed."""
    ns = result[f"{part}_ns"]
    if ns is None:
        return "–"
    ratio, wanted = result["ratio"][part], result.get("target", {}).get(part)
    if ratio is None:
        return f"{ns:.0f}"
    if wanted is None:
        return f"{ns:.0f} ({ratio:.1f})"
    measured = f"{ratio:.2f}"
    return f"{ns:.0f} ({wanted:g} / {f'**{measured}**' if ratio > wanted else measured})"


def peer_row(peer):
    rate = f"{peer['records_per_second'] / 1e6:.2f} M/s"
    if "times_pyzmq" not in peer:
        return f"| {peer['title']} | {rate} | |"
    times = f"{peer['times_pyzmq']:.1f}"
    wanted = peer.get("target")
    if wanted is None:
        return f"| {peer['title']} | {rate} | {times} |"
    return f"| {peer['title']} | {rate} | {wanted:g} / {f'**{times}**' if peer['times_pyzmq'] < wanted else times} |"


def main():
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_file():
        sys.exit("usage: tools/clients_table.py FILE, such as bench/results/clients/results.json")
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    machine, parameters = report["machine"], report["parameters"]
    print("| ns a record | one by one | batches of 64 | reading copies | reading in place | |")
    print("|---|---|---|---|---|---|")
    for result in report["results"]:
        cells = " | ".join(cell(result, part) for part in PARTS)
        print(f"| {TITLES[result['language']]} | {cells} | {result['runtime']} |")
    missing = [*report["not_built"], *report["failed"]]
    if missing:
        print(f"\nNot measured: {', '.join(TITLES.get(one['language'], one['language']) for one in missing)}.")
    if "peers" in report:
        print("\n| Python between two processes | records a second | times pyzmq |")
        print("|---|---|---|")
        print("\n".join(map(peer_row, report["peers"])))
    print(f"\nMedian of {parameters['runs']} runs of {parameters['records']:,} records of {parameters['size']} B: "
          f"{machine['cpu']}, {machine['cpus_online']} CPUs, {machine['kernel']},\ncommit {report['commit']}, by "
          f"`{report['command']}`, at a load of {machine['load_average_1min']:.1f}.")


if __name__ == "__main__":
    main()
