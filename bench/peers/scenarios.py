"""The scenarios: each measures a rival, or Leat, once and returns a run as in `leat bench ipc --json`.

    run = one_way(rival, "blocking", size=100, batch=1, counts=Counts(), setup=setup)
"""
import array
import json
import math
import os
import random
import statistics
from dataclasses import dataclass
from pathlib import Path

from roles import Failed, Workplace, measure, measure_kill, run_command


ONE_WAY_SIZES = (8, 32, 100, 1024)
ROUND_TRIP_SIZES = (8, 100, 1024)
GROUP_SIZE = 100
GROUP_EACH = 2            # Senders, and receivers.
CRASH_SIZE = 64
ENOUGH_FOR_P9999 = 10_000  # With fewer round trips in a run it would be the longest of them.
LATENCIES = ("p50_ns", "p90_ns", "p99_ns", "p999_ns", "p9999_ns", "min_ns", "max_ns", "mean_ns",
             "stddev_ns")
RATES = ("messages_per_second", "cpu_ns_per_message", "sender_cpu_ns_per_message",
         "receiver_cpu_ns_per_message", "context_switches_per_message")
NOTHING = dict.fromkeys((*LATENCIES, *RATES))


@dataclass
class Setup:
    cpus: list
    leat: Path
    limit_seconds: float = 60
    crash_limit_seconds: float = 20

    @property
    def allowed(self):
        return set(self.cpus)


@dataclass
class Counts:
    """Records of one run; calibrated to take about `seconds`, unless fixed."""
    records: int
    warm_up: int


def calibrated(rival, probe, per_second, seconds, largest, bytes_each):
    """Counts for a run of about so many seconds, from the rate of a short run."""
    records = int(min(max(per_second * seconds, probe.records), largest,
                      rival.max_bytes // bytes_each))
    return Counts(records, max(probe.warm_up, records // 5))


def options_of(counts, size, **more):
    return {"size": size, "records": counts.records, "warm-up": counts.warm_up, **more}


def usage_of(results, senders, receivers, messages):
    """The CPU time of helpers counts in the sum only."""
    def cpu(names):
        return sum(results[name]["cpu_ns"] for name in names) / messages
    return {"cpu_ns_per_message": cpu(results), "sender_cpu_ns_per_message": cpu(senders),
            "receiver_cpu_ns_per_message": cpu(receivers),
            "context_switches_per_message":
                sum(result["context_switches"] for result in results.values()) / messages}


def run_roles(rival, variant, place, setup, named):
    """named: [(role, cpu, options)]; the receivers first."""
    roles = [*rival.helpers(place)]
    for name, cpu, options in named:
        other = setup.cpus[-1] if rival.in_process else None
        roles.append(rival.role(name, place, cpu, variant, options, other))
    return measure(roles, setup.allowed, setup.limit_seconds, rival.environment())


def one_way(rival, variant, size, batch, counts, setup):
    options = options_of(counts, size, batch=batch)
    first, last = setup.cpus[0], setup.cpus[-1]
    with Workplace() as place:
        if rival.in_process:
            named, writer, reader = [("oneway", first, options)], "oneway", "oneway"
        else:
            named = [("reader", last, options), ("writer", first, options)]
            writer, reader = "writer", "reader"
        results = run_roles(rival, variant, place, setup, named)
    elapsed_ns = results[reader]["ended_ns"] - results[writer]["started_ns"]
    usage = usage_of(results, [writer], [reader], counts.records)
    if rival.in_process:
        usage.update(sender_cpu_ns_per_message=None, receiver_cpu_ns_per_message=None)
    return {**NOTHING, "messages_per_second": counts.records * 1e9 / elapsed_ns, **usage}


def latencies_of(samples_file, mean_ns):
    samples = array.array("I")
    samples.frombytes(Path(samples_file).read_bytes())
    if not samples:
        raise Failed("the caller left no samples")
    ordered = sorted(samples)

    def at(part):  # Nearest rank, as in `leat bench`.
        return ordered[max(math.ceil(part * len(ordered)), 1) - 1]
    return {"p50_ns": at(0.5), "p90_ns": at(0.9), "p99_ns": at(0.99), "p999_ns": at(0.999),
            "p9999_ns": at(0.9999) if len(ordered) >= ENOUGH_FOR_P9999 else None,
            "min_ns": ordered[0], "max_ns": ordered[-1], "mean_ns": mean_ns,
            "stddev_ns": statistics.pstdev(ordered)}


def round_trip(rival, variant, size, counts, setup):
    options = options_of(counts, size)
    first, last = setup.cpus[0], setup.cpus[-1]
    with Workplace() as place:
        if rival.in_process:
            named, caller, answerer = [("pingpong", first, options)], "pingpong", "pingpong"
        else:
            named = [("answerer", last, options), ("caller", first, options)]
            caller, answerer = "caller", "answerer"
        results = run_roles(rival, variant, place, setup, named)
        elapsed_ns = results[caller]["ended_ns"] - results[caller]["started_ns"]
        latencies = latencies_of(place.path / "samples", elapsed_ns / counts.records)
    usage = usage_of(results, [caller], [answerer], 2 * counts.records)  # Two passes.
    if rival.in_process:
        usage.update(sender_cpu_ns_per_message=None, receiver_cpu_ns_per_message=None)
    return {**NOTHING, **latencies, "messages_per_second": counts.records * 1e9 / elapsed_ns, **usage}


def group(rival, variant, batch, counts, setup):
    """Several senders, several workers: each record goes to one worker; none is lost or doubled."""
    common = {"senders": GROUP_EACH, "workers": GROUP_EACH, "batch": batch}
    first, last = setup.cpus[0], setup.cpus[-1]
    each = Counts(-(-counts.records // GROUP_EACH), -(-counts.warm_up // GROUP_EACH))
    workers = [f"worker {i}" for i in range(GROUP_EACH)]
    senders = [f"sender {i}" for i in range(GROUP_EACH)]
    named = [(name, cpu, options_of(each, GROUP_SIZE, index=i, **common))
             for names, cpu in ((workers, last), (senders, first)) for i, name in enumerate(names)]
    with Workplace() as place:
        results = run_roles(rival, variant, place, setup, named)
        check_receipts([place.path / f"received.{i}" for i in range(GROUP_EACH)],
                       (each.records + each.warm_up) * GROUP_EACH)
    started_ns = min(results[name]["started_ns"] for name in senders)
    ended_ns = max(results[name]["ended_ns"] for name in workers)
    records = each.records * GROUP_EACH
    return {**NOTHING, "messages_per_second": records * 1e9 / (ended_ns - started_ns),
            **usage_of(results, senders, workers, records)}


def check_receipts(files, expected):
    received = array.array("Q")
    for file in files:
        received.frombytes(file.read_bytes())
    if sorted(received) != list(range(expected)):
        raise Failed(f"{len(received)} records were received instead of {expected} different ones")


def crash(rival, variant, setup):
    """How long until the others go on; None if they do not within the limit."""
    with Workplace() as place:
        roles = [*rival.helpers(place)]
        for name, cpu in (("watcher", setup.cpus[-1]), ("survivor", setup.cpus[-1]),
                          ("victim", setup.cpus[0])):
            roles.append(rival.role(name, place, cpu, variant, {"size": CRASH_SIZE}))
        recovery_ns = measure_kill(roles, setup.allowed, random.uniform(0.02, 0.2),
                                   setup.limit_seconds, setup.crash_limit_seconds, rival.environment())
        return {"recovery_ns": recovery_ns}


# --- By `leat bench` -----------------------------------------------------------------------------

def leat_bench(setup, *arguments):
    with Workplace() as place:
        output = run_command(
            [setup.leat, "bench", *arguments, "--runs", 1, "--pin", ",".join(map(str, setup.cpus)),
             "--json"], setup.limit_seconds, {**os.environ, "LEAT_DIR": str(place.path)})
    return json.loads(output)


def line_ns(setup):
    """How far apart the CPUs are at the moment: the median round trip of 8 B in bare shared memory."""
    try:
        report = leat_bench(setup, "ipc", "--method", "shm", "--busy", "-s", 8, "-c", 20_000)
        return report["results"][0]["median"]["p50_ns"]
    except (Failed, TypeError):  # Not worth losing a run.
        return None
