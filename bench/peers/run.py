#!/usr/bin/env python3
"""Other systems on the scenarios of `leat bench`, in turns with Leat: what `make bench-peers` runs.

    bench/peers/run.py [--only NAME,…] [--patterns …] [--quick] [--runs 5] [--json FILE]

Builds what can be built (below build/peers) and says why the rest cannot. Every rival sends the same
payloads between separate processes on the same CPUs, and every record is checked. README.md in this
folder gives the settings of each and the reasons.
"""
import argparse
import json
import os
import shlex
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path

import report
import scenarios
from rivals import OURS, RIVALS, ROOT, CannotBuild
from roles import Failed
from scenarios import Counts, Setup

EXIT_FAILED, EXIT_USAGE, EXIT_NOT_FOUND, EXIT_INTERRUPTED = 1, 2, 3, 130
PATTERNS = ("oneway", "pingpong", "group", "crash")
PROBES = 4
PROBE = {"oneway": Counts(20_000, 2_000), "pingpong": Counts(2_000, 500), "group": Counts(20_000, 2_000)}
QUICK = {"oneway": Counts(5_000, 500), "pingpong": Counts(500, 50), "group": Counts(4_000, 400)}
LARGEST = {"oneway": 50_000_000, "pingpong": 5_000_000, "group": 2_000_000}


@dataclass
class Case:
    """One row of one table; measured once in each turn."""
    rival: object
    pattern: str
    variant: str
    size: int
    batch: int = 1
    counts: Counts = None
    runs: list = field(default_factory=list)
    note: str = ""

    @property
    def method(self):
        return self.rival.name

    @property
    def in_process(self):
        return self.rival.in_process

    def measure(self, counts, setup):
        if self.pattern == "crash":
            return scenarios.crash(self.rival, self.variant, setup)
        if self.pattern == "group":
            return scenarios.group(self.rival, self.variant, self.batch, counts, setup)
        if self.pattern == "pingpong":
            run = scenarios.round_trip(self.rival, self.variant, self.size, counts, setup)
        else:
            run = scenarios.one_way(self.rival, self.variant, self.size, self.batch, counts, setup)
        return {**run, "line_ns": scenarios.line_ns(setup)}

    def probe(self, setup, quick, seconds):
        """Chooses the counts, by runs whose figures are not used."""
        if self.pattern == "crash":
            return
        probe = (QUICK if quick else PROBE)[self.pattern]
        records_each = 2 if self.pattern == "pingpong" else 1
        at_least = 1 if quick else self.rival.warm_up // records_each
        self.counts = probe = Counts(probe.records, max(probe.warm_up, at_least))
        # Repeated with more records: a JVM compiles during its first run, which is therefore slow.
        for _ in range(0 if quick else PROBES):
            before = self.counts.records
            per_second = self.measure(self.counts, setup)["messages_per_second"]
            # A round trip is two records, and there are two passes.
            written = self.size * (4 if self.pattern == "pingpong" else 1)
            self.counts = scenarios.calibrated(self.rival, probe, per_second, seconds,
                                               LARGEST[self.pattern], written)
            if self.counts.records < 2 * before:
                break


def groups_of_cases(rivals, patterns):
    """Lists of cases; those of one list are measured in turns."""
    if "oneway" in patterns:
        for size in scenarios.ONE_WAY_SIZES:
            yield [Case(rival, "oneway", variant, size, batch) for rival in rivals
                   for variant in rival.variants for batch in rival.batches]
    if "pingpong" in patterns:
        for size in scenarios.ROUND_TRIP_SIZES:
            yield [Case(rival, "pingpong", variant, size) for rival in rivals
                   for variant in rival.variants]
    if "group" in patterns:
        yield [Case(rival, "group", "blocking", scenarios.GROUP_SIZE, batch) for rival in rivals
               for batch in rival.group_batches]
    if "crash" in patterns:
        yield [Case(rival, "crash", rival.variants[0], scenarios.CRASH_SIZE) for rival in rivals]


def measure_in_turns(cases, setup, options, progress):
    """A case that fails gets a note with the reason, and is not measured again."""
    def try_it(case, what, action):
        progress(f"{case.pattern}, {case.size} B, {what}: {case.method} {case.variant}")
        try:
            return action()
        except Failed as failure:
            case.note, case.runs = str(failure), []
            return None

    for case in cases:
        case.note = case.rival.lacks.get(case.pattern, "")
        if not case.note:
            try_it(case, "first", lambda: case.probe(setup, options.quick, options.seconds))
    turns = options.trials if cases[0].pattern == "crash" else options.runs
    for turn in range(1, turns + 1):
        for case in cases:
            if case.note:
                continue
            run = try_it(case, f"run {turn} of {turns}",
                         lambda case=case: case.measure(case.counts, setup))
            if not case.note:
                case.runs.append(run)


def build_all(rivals, progress):
    """The rivals that could be built, and why the others could not."""
    there, not_run = [], {}
    for rival in rivals:
        progress(f"building {rival.name}")
        try:
            rival.build()
            there.append(rival)
        except CannotBuild as failure:
            not_run[rival.name] = str(failure)
    return there, not_run


def progress(what):
    if sys.stderr.isatty():
        print(f"\r\033[K{what}", end="", file=sys.stderr, flush=True)


def fail(code, sentence):
    progress("")
    print(f"run.py: {sentence}", file=sys.stderr)
    sys.exit(code)


class Parser(argparse.ArgumentParser):
    def error(self, message):
        fail(EXIT_USAGE, f"{message}; --help shows what there is")


def parse_arguments():
    parser = Parser(prog="run.py", description=__doc__.split("\n")[0], allow_abbrev=False)
    parser.add_argument("--only", metavar="NAME,…", help="these rivals only, of: "
                        + ", ".join(rival.name for rival in RIVALS))
    parser.add_argument("--patterns", default=",".join(PATTERNS), metavar="PATTERN,…",
                        help="of: %(default)s")
    parser.add_argument("--quick", action="store_true",
                        help="few records, one run, two kills: to see that all works, not how fast")
    parser.add_argument("--runs", type=int, help="of each, in turns [5]")
    parser.add_argument("--trials", type=int, help="kills of each [20]")
    parser.add_argument("--seconds", type=float, default=0.5, help="of one run, about [%(default)s]")
    parser.add_argument("--limit", type=float, default=60, metavar="SECONDS",
                        help="for one run, warm-up included [%(default)g]")
    parser.add_argument("--crash-limit", type=float, default=20, metavar="SECONDS",
                        help="to wait for others after a kill [%(default)g]")
    parser.add_argument("--pin", default=None, metavar="A,B", help="CPUs of writer and reader")
    parser.add_argument("--leat", type=Path, default=ROOT / "build/leat", help="the executable of Leat")
    parser.add_argument("--json", metavar="FILE", help="also write all runs there; - is stdout")
    parser.add_argument("--show", metavar="FILE", help="measure nothing: print the tables of that JSON")
    options = parser.parse_args()
    if options.runs is None:
        options.runs = 1 if options.quick else 5
    if options.trials is None:
        options.trials = 2 if options.quick else 20
    return options


def chosen(text, known, what):
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            fail(EXIT_USAGE, f"no {what} is named '{name}'; there are: {', '.join(known)}")
    if not names:
        fail(EXIT_USAGE, f"no {what} was named; there are: {', '.join(known)}")
    return names


def chosen_cpus(text):
    usable = sorted(os.sched_getaffinity(0))
    if text is None:
        return usable[:2]
    cpus = text.split(",")
    if not all(cpu.isdigit() and int(cpu) in usable for cpu in cpus):
        fail(EXIT_USAGE, f"--pin takes CPUs of this process, {usable[0]} to {usable[-1]}, "
                         f"such as 0,1; not '{text}'")
    return [int(cpu) for cpu in cpus]


def head_of(setup):
    """Machine, version, commit and date, as `leat bench` reports them."""
    facts = scenarios.leat_bench(setup, "log", "--size", 8, "--records", 1000)
    return {key: facts[key] for key in ("machine", "version", "commit", "date")}


def run(options):
    names = [rival.name for rival in RIVALS]
    wanted = chosen(options.only, names, "rival") if options.only is not None else names
    patterns = chosen(options.patterns, PATTERNS, "pattern")
    if min(options.runs, options.trials, options.seconds, options.limit, options.crash_limit) <= 0:
        fail(EXIT_USAGE, "--runs, --trials, --seconds and the limits are more than 0")
    setup = Setup(chosen_cpus(options.pin), options.leat, options.limit, options.crash_limit)
    if not os.access(options.leat, os.X_OK):
        fail(EXIT_NOT_FOUND, f"{options.leat} is missing: run `make build` first")
    if options.json not in (None, "-"):
        try:
            open(options.json, "a", encoding="utf-8").close()
        except OSError as error:
            fail(EXIT_NOT_FOUND, f"cannot write {options.json}: {error.strerror}")

    try:
        head = head_of(setup)
    except Failed as failure:
        fail(EXIT_FAILED, failure)
    # Leat first, since the others are compared with it.
    rivals, not_run = build_all([OURS, *(rival for rival in RIVALS if rival.name in wanted)], progress)
    if not rivals:
        fail(EXIT_FAILED, f"nothing could be built: {next(iter(not_run.values()))}")
    parameters = {"runs": options.runs, "trials": options.trials, "pin": setup.cpus,
                  "seconds": options.seconds, "limit_seconds": options.limit,
                  "crash_limit_seconds": options.crash_limit, "quick": options.quick}
    settings = {rival.name: rival.described() for rival in rivals}
    whole = {**head, "command": shlex.join(["bench/peers/run.py", *sys.argv[1:]]),
             "parameters": parameters, "results": [],
             "not_run": [{"method": name, "reason": reason} for name, reason in not_run.items()],
             "settings": settings}
    for cases in groups_of_cases(rivals, patterns):
        measure_in_turns(cases, setup, options, progress)
        whole["results"] += [report.entry_of(case) for case in cases]
        if options.json not in (None, "-"):  # Kept even if the rest fails.
            report.write_json(whole, options.json)
    progress("")
    if options.json == "-":
        report.write_json(whole, "-")
        return
    report.print_tables(whole)
    if options.json:
        print(f"\nAll runs: {options.json}")


def show(file):
    """Prints the tables of an earlier run."""
    try:
        with open(file, encoding="utf-8") as earlier:
            report.print_tables(json.load(earlier))
    except OSError as error:
        fail(EXIT_NOT_FOUND, f"cannot read {file}: {error.strerror}")
    except (ValueError, KeyError, TypeError):
        fail(EXIT_FAILED, f"{file} is not what --json wrote")


def main():
    options = parse_arguments()
    # Both end the run by an exception, so that everything is cleaned up.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if options.show:
            show(options.show)
        else:
            run(options)
    except KeyboardInterrupt:
        progress("")
        print("run.py: interrupted", file=sys.stderr)
        sys.exit(EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
