"""Medians of runs, the JSON and the tables."""
import json
import statistics

from rivals import OURS
from scenarios import CRASH_SIZE, GROUP_EACH, GROUP_SIZE, ONE_WAY_SIZES, ROUND_TRIP_SIZES

TITLES = {"leat": "Leat"}
TITLE = 40  # Width of the first column.


def median_of(runs):
    """Key by key; None where a run has None."""
    if not runs:
        return None
    return {key: None if any(run[key] is None for run in runs) else statistics.median(run[key] for run in runs)
            for key in runs[0]}


def entry_of(case):
    """An entry of "results", as in `leat bench ipc --json`."""
    is_crash = case.pattern == "crash"
    each = 1 if is_crash else case.counts.records if case.counts else 0
    entry = {"method": case.method, "variant": case.variant, "baseline": False,
             "pattern": case.pattern, "size": case.size, "count": each * len(case.runs),
             "batch": case.batch, "rate": 0,
             "verified": bool(case.runs),
             "median": (median_of_trials if is_crash else median_of)(case.runs), "runs": case.runs,
             "note": case.note}
    if case.in_process:
        entry["in_process"] = True
    return entry


def median_of_trials(runs):
    """A trial that did not recover within the limit counts as longer than all others."""
    if not runs:
        return None
    recovered = sorted(run["recovery_ns"] for run in runs if run["recovery_ns"] is not None)
    never = len(runs) - len(recovered)
    ordered = recovered + [None] * never
    return {"recovery_ns": middle_of(ordered), "max_ns": ordered[-1], "never": never}


def middle_of(ordered):
    middle = (ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2])
    return None if None in middle else sum(middle) / 2


def write_json(report, file):
    text = json.dumps(report, indent=2) + "\n"
    if file == "-":
        print(text, end="")
    else:
        with open(file, "w", encoding="utf-8") as output:
            output.write(text)


# --- Tables ------------------------------------------------------------------------------------

def print_tables(report):
    """All tables of a report that --json wrote."""
    machine, entries = report["machine"], report["results"]
    runs = report["parameters"]["runs"]
    print(f"{machine['cpu']}, {machine['cpus_online']} CPUs, {machine['kernel']}; "
          f"Leat {report['version']} ({report['commit']})")
    by_pattern = {}
    for entry in entries:
        by_pattern.setdefault(entry["pattern"], []).append(entry)
    print_one_way(by_pattern.get("oneway", []), runs)
    print_round_trips(by_pattern.get("pingpong", []), runs)
    print_groups(by_pattern.get("group", []), runs)
    print_crashes(by_pattern.get("crash", []), report["parameters"]["crash_limit_seconds"])
    notes = []
    for entry in entries:
        if entry["note"]:
            alike = [other for other in by_pattern[entry["pattern"]]
                     if other["method"] == entry["method"]]
            name = f"{title_of(entry)}, {entry['pattern']}, {entry['size']} B"
            if all(other["note"] == entry["note"] for other in alike):  # One line for all its rows.
                name = f"{entry['method']}, {entry['pattern']}"
            if (name, entry["note"]) not in notes:
                notes.append((name, entry["note"]))
    if report["not_run"] or notes:
        print("\nNot measured:")
    for missing in report["not_run"]:
        print(f"  {missing['method']}: {missing['reason']}")
    for name, note in notes:
        print(f"  {name}: {note}")


def title_of(entry):
    title = TITLES.get(entry["method"], entry["method"])
    if entry["variant"] == "blocking":
        title += ", blocking"
    if entry["batch"] > 1:
        title += f", {entry['batch']} at a time"
    if entry["batch"] == 0:
        title += ", as many as are there"
    if entry.get("in_process"):
        title += " (in one process)"
    return title


def rate_text(per_second):
    millions = per_second / 1e6
    return f"{millions:.1f}" if millions >= 10 else f"{millions:.2f}"


def ns_text(ns):
    """With three digits and a unit: 135 ns, 12.5 us, 1.20 ms."""
    if ns is None:
        return "-"
    for unit, size in (("ns", 1), ("us", 1e3), ("ms", 1e6)):
        value = ns / size
        if value < 999.5:
            break
    else:
        unit, value = "s", ns / 1e9
    if unit == "ns" or value >= 99.95:
        return f"{value:.0f} {unit}"
    return f"{value:.1f} {unit}" if value >= 9.995 else f"{value:.2f} {unit}"


def ours_of(entries):
    """Leat's rows to compare with: of the same size and batch, waiting in the same way."""
    return {(entry["size"], entry["variant"], entry["batch"]): entry["median"] for entry in entries
            if entry["method"] == OURS.name and entry["median"]}


def print_one_way(entries, runs):
    rows = {}
    for entry in entries:
        if entry["median"]:
            row = (title_of(entry), entry["variant"], entry["batch"])
            rows.setdefault(row, {})[entry["size"]] = entry["median"]
    if not rows:
        return
    print(f"\nOne way, one to one: million records/s, median of {runs}; "
          "in brackets what part of Leat's that is, if that waits in the same way; CPU time of both "
          "sides, 100 B\n")
    print(f"{'':<{TITLE}}" + "".join(f"{size:>9} B       " for size in ONE_WAY_SIZES) + "      CPU")
    ours = ours_of(entries)
    for (title, variant, batch), medians in rows.items():
        line = f"{title:<{TITLE}}"
        for size in ONE_WAY_SIZES:
            line += rate_cell(medians.get(size), ours.get((size, variant, batch)))
        cpu = (medians.get(100) or {}).get("cpu_ns_per_message")
        print(f"{line}{ns_text(cpu):>9}".rstrip())


def rate_cell(median, ours):
    if not median:
        return f"{'-':>9}{'':>9}"
    rate = median["messages_per_second"]
    part = f"({rate / ours['messages_per_second']:.2f})" if ours else ""
    return f"{rate_text(rate):>9} {part:<8}"


def print_round_trips(entries, runs):
    columns = (("p50", "p50_ns"), ("p90", "p90_ns"), ("p99", "p99_ns"), ("p99.9", "p999_ns"),
               ("p99.99", "p9999_ns"), ("max", "max_ns"), ("mean", "mean_ns"),
               ("stddev", "stddev_ns"), ("CPU", "cpu_ns_per_message"))
    for size in ROUND_TRIP_SIZES:
        here = [entry for entry in entries if entry["size"] == size and entry["median"]]
        if not here:
            continue
        print(f"\nRound trip, {size} B, median of {runs}; in brackets: p50 in those of Leat's that "
              "waits in the same way\n")
        print(f"{'':<{TITLE}}" + "".join(f"{name:>9}" for name, _ in columns))
        ours_here = ours_of(here)
        for entry in here:
            median, ours = entry["median"], ours_here.get((size, entry["variant"], 1))
            cells = "".join(f"{ns_text(median[key]):>9}" for _, key in columns)
            part = f"  ({median['p50_ns'] / ours['p50_ns']:.1f})" if ours else ""
            print(f"{title_of(entry):<{TITLE}}{cells}{part}")


def print_groups(entries, runs):
    here = [entry for entry in entries if entry["median"]]
    if not here:
        return
    print(f"\nEach record to one of several: {GROUP_EACH} senders, {GROUP_EACH} receivers, "
          f"{GROUP_SIZE} B, median of {runs}; in brackets what part of Leat's that is\n")
    print(f"{'':<{TITLE}}{'M/s':>9}{'':>9}{'CPU':>9}")
    ours = ours_of(here)
    for entry in here:
        cell = rate_cell(entry["median"], ours.get((GROUP_SIZE, entry["variant"], entry["batch"])))
        print(f"{title_of(entry):<{TITLE}}{cell}{ns_text(entry['median']['cpu_ns_per_message']):>9}")


def print_crashes(entries, limit_seconds):
    here = [entry for entry in entries if entry["median"]]
    if not here:
        return
    print("\nA publisher is killed in the midst of publishing, until a subscriber has a new record of\n"
          f"another one ({CRASH_SIZE} B)\n")
    print(f"{'':<{TITLE}}{'trials':>9}{'median':>11}{'max':>11}")

    def text(ns):
        return ns_text(ns) if ns is not None else f"> {limit_seconds:g} s"
    for entry in here:
        title = title_of(entry)
        median = entry["median"]
        never = f"   {median['never']} not within {limit_seconds:g} s" if median["never"] else ""
        print(f"{title:<{TITLE}}{entry['count']:>9}{text(median['recovery_ns']):>11}"
              f"{text(median['max_ns']):>11}{never}")
