"""Makes up plausible results in the format of `leat bench ipc`, for tests of the commands that read them.

    python3 tests/system/sample_results.py DIRECTORY   # one file with all methods
"""
import json
import random
import sys
from pathlib import Path

# Round trip of 100 B in ns, spinning and blocking; None where there is no such variant.
METHODS = {
    "tcp": (19800, 31200), "domain": (9400, 14100), "seqpacket": (9700, 14500),
    "dgram": (9900, 14800), "socketpair": (9200, 13900), "udp": (17500, 28600),
    "pipe": (7600, 11200), "fifo": (7700, 11300), "shm": (82, None), "mmap": (84, None),
    "mq-sysv": (None, 12900), "mq-posix": (None, 13300), "eventfd": (6900, 10800),
    "signal": (None, 15400), "futex": (79, 10100), "condvar": (None, 17300),
    "sem-posix": (None, 10500), "sem-sysv": (None, 12100), "zeromq-ipc": (None, 44800),
    "zeromq-tcp": (None, 52300), "nng": (None, 61000), "boost-mq": (1900, 12500),
    "io_uring": (8800, 13200), "splice": (None, 18300), "vm-readv": (1500, 11800),
    "leat": (151, 10900), "leat-group": (390, 11900),
    # Programs of bench/peers.
    "aeron": (172, None), "iceoryx2": (905, 13900), "chronicle": (640, None),
    "disruptor": (118, 9800),
}
BASELINES = {("shm", "spinning"), ("mmap", "spinning"), ("futex", "spinning")}
SIZES = (1, 100, 1000, 16384, 65536)
LARGEST = {"mq-sysv": (8192, "kernel.msgmax is 8192 bytes"),
           "mq-posix": (8192, "fs.mqueue.msgsize_max is 8192 bytes")}
PERCENTILES = (("p50_ns", 1), ("p90_ns", 1.12), ("p99_ns", 1.6), ("p999_ns", 4.1),
               ("p9999_ns", 19), ("max_ns", 160))


def latency(p50, per_message_cpu, noise, blocking):
    run = {"min_ns": p50 * 0.85}
    for name, times in PERCENTILES:
        run[name] = p50 * (1 + (times - 1) * (0.4 if blocking else 1)) * noise()
    ordered = sorted(run.values())
    run = dict(zip(run, ordered))
    run.update(mean_ns=p50 * 1.2, stddev_ns=p50 * 0.9, messages_per_second=1e9 / (p50 * 1.2))
    return {**run, **costs(per_message_cpu, 0 if not blocking else 2)}


def costs(cpu, switches):
    return {"cpu_ns_per_message": cpu, "sender_cpu_ns_per_message": cpu * 0.45,
            "receiver_cpu_ns_per_message": cpu * 0.55, "context_switches_per_message": switches}


def throughput(per_second, cpu):
    return {**{name: None for name, _ in PERCENTILES}, "min_ns": None, "mean_ns": None,
            "stddev_ns": None, "messages_per_second": per_second, **costs(cpu, 0.01)}


def median(runs):
    middle = {}
    for name in runs[0]:
        values = sorted(run[name] for run in runs) if runs[0][name] is not None else [None]
        middle[name] = values[len(values) // 2]
    return middle


def result(method, variant, pattern, size, batch, rate, runs, note=""):
    return {"method": method, "variant": variant, "baseline": (method, variant) in BASELINES,
            "pattern": pattern, "size": size, "count": 50000, "batch": batch, "rate": rate,
            "verified": bool(runs), "median": median(runs) if runs else None, "runs": runs,
            "note": note, **({"in_process": True} if method == "disruptor" else {})}


def sample(sizes=SIZES, patterns=("pingpong", "oneway", "rate"), methods=None, runs=5, seed=1,
           slower=None):
    """A complete report. slower: {method: factor} makes methods slower, for reports that differ."""
    dice = random.Random(seed)

    def noise():
        return dice.uniform(0.97, 1.05)

    results = []
    for method, times in METHODS.items():
        if methods is not None and method not in methods:
            continue
        for variant, base in zip(("spinning", "blocking"), times):
            if base is None:
                continue
            for size in sizes:
                for pattern, batch, rate in (("pingpong", 1, 0), ("oneway", 1, 0),
                                             ("oneway", 64, 0), ("rate", 1, 100000)):
                    if pattern not in patterns or (method, variant) in BASELINES and batch > 1:
                        continue
                    limit, why = LARGEST.get(method, (1 << 40, ""))
                    if size > limit:
                        results.append(result(method, variant, pattern, size, batch, rate, [],
                                              f"not supported: {why}"))
                        continue
                    p50 = (base + size * 0.12) * (slower or {}).get(method, 1)
                    blocking = variant == "blocking"
                    cpu = 0.7 * p50 if blocking else 2 * p50
                    made = []
                    for _ in range(runs):
                        if pattern == "oneway":
                            one = (p50 / 14 + size * 0.05) / (1 if batch == 1 else 6)
                            made.append(throughput(1e9 / one * noise(), one * 1.9 * noise()))
                        else:
                            part = 1 if pattern == "pingpong" else 0.5
                            made.append(latency(p50 * part * noise(), cpu * noise(), noise,
                                                blocking))
                    results.append(result(method, variant, pattern, size, batch, rate, made))
    return {"machine": {"cpu": "Example CPU 9000", "architecture": "x86_64", "cpus_online": 2,
                        "cpus_usable": [0, 1], "kernel": "Linux 6.1.0", "hypervisor": "KVMKVMKVM",
                        "governor": "unknown", "memory": "8000000 kB",
                        "caches": {"L1": "32K for CPUs 0", "L2": "512K for CPUs 0"},
                        "mitigations": {"spectre_v2": "Mitigation: Retpolines"},
                        "load_average_1min": 0.2},
            "version": "0.1.0", "commit": "0123456789ab", "date": "2026-11-23T02:32:39Z",
            "command": "leat bench ipc --method all --sweep sizes=1..64KiB --out results/",
            "parameters": {"count": 50000, "runs": runs}, "results": results}


def write(path, report):
    path.write_text(json.dumps(report))
    return path


if __name__ == "__main__":
    write(Path(sys.argv[1]) / "sample.json", sample())
