"""Runs every system over the same files, turn by turn, and prints how they compare.

    compare.py SCRATCH INPUT TURNS TIDEMILL COMPONENT [COUNT_JAR]

A system's rate is taken over the batches behind the first WARM_UP, in which Spark compiles and starts its workers; the
best turn counts. CPU time is that of the whole run, its start included, with all child processes; Spark's Python
workers are among them as far as they have ended by themselves.
"""

import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyspark

# Java is the parent of Python then, so that the CPU time of both is seen.
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable

HERE = Path(__file__).parent
CORES = str(os.cpu_count())
# Batches that do not count.
WARM_UP = 5


@dataclass
class Run:
    rows_per_second: float
    wall_s: float
    cpu_s: float


def main(scratch: str, source: str, turns: int, tidemill: str, component: str, jar: str | None = None) -> None:
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--driver-memory", "2g"]
    systems = {
        "Tidemill (Rust)": lambda place: [
            tidemill, "run", component, "--input", source, "--format", "parquet", "--schema", "key STRING, n BIGINT",
            "--key", "key", "--time-mode", "none", "--output-mode", "update", "--workers", CORES,
            "--set", "limits.files_per_batch=1", "--sink", f"{place}/rows", "--sink-format", "parquet",
            "--checkpoint", f"{place}/checkpoint", "--progress", f"{place}/progress",
        ],
        "Spark (Python, rows)": lambda place: [
            *submit, str(HERE / "count.py"), source, f"{place}/checkpoint", f"{place}/progress", CORES,
        ],
    }
    if jar:
        systems["Spark (Scala)"] = lambda place: [
            *submit, "--class", "Count", jar, source, f"{place}/checkpoint", f"{place}/progress", CORES,
        ]
    runs: dict[str, list[Run]] = {name: [] for name in systems}
    for turn in range(turns):
        for name, command in systems.items():
            run = measure(Path(scratch) / "run", command)
            runs[name].append(run)
            print(f"turn {turn + 1}  {name:<22} {run.rows_per_second:>12,.0f} rows/s"
                  f"  {run.wall_s:7.1f} s  {run.cpu_s:7.1f} CPU-s", flush=True)
    report(runs)


def measure(place: Path, command) -> Run:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    used, begun = cpu_s(), time.monotonic()
    with open(place / "stderr", "w") as errors:
        code = subprocess.run(command(place), stdout=subprocess.DEVNULL, stderr=errors, check=False).returncode
    wall_s, used = time.monotonic() - begun, cpu_s() - used
    if code != 0:
        sys.exit(f"{command(place)[0]} failed:\n{(place / 'stderr').read_text()[-4000:]}")
    batches = [json.loads(line) for line in (place / "progress").read_text().splitlines()]
    counted = [batch for batch in batches if batch["numInputRows"] > 0][WARM_UP:]
    rows = sum(batch["numInputRows"] for batch in counted)
    busy_ms = sum(batch["durationMs"]["triggerExecution"] for batch in counted)
    return Run(rows / busy_ms * 1000, wall_s, used)


def cpu_s() -> float:
    """CPU time of all child processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def report(runs: dict[str, list[Run]]) -> None:
    ours, *others = runs
    rate = {name: max(run.rows_per_second for run in of) for name, of in runs.items()}
    wall = {name: min(run.wall_s for run in of) for name, of in runs.items()}
    cpu = {name: min(run.cpu_s for run in of) for name, of in runs.items()}
    print(f"\n{ours} against     rows/s in steady state   whole run   CPU time")
    for name in others:
        print(f"{name:<24} {rate[ours] / rate[name]:>15.1f} x {wall[name] / wall[ours]:>14.1f} x"
              f" {cpu[name] / cpu[ours]:>8.1f} x")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
