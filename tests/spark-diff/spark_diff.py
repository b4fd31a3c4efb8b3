#!/usr/bin/env python3
"""Random queries through Spark's transformWithState and through Tidemill; prints where they differ.

Spark's answers become cases of Tidemill's test kit (FOLDER/*.toml), which `tidemill test` then runs; so a difference is
read, run again and kept like any other case. Rows are compared per step, in order per key.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

import scenarios
import spark_side

SETTINGS = """about = "Random scenarios, seed {name}; what is expected is what Spark answered"
{initial}
[settings.query]
key = ["key"]
time_mode = "{time_mode}"
output_mode = "{output_mode}"
{watermark}{parameters}
[settings.source]
schema = "scenario STRING, key STRING, op STRING NOT NULL, arg STRING, ts TIMESTAMP"
{initial_schema}"""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time of day; it is printed")
    parser.add_argument("--scenarios", type=int, default=504, help="how many; default 504")
    parser.add_argument("--per-query", type=int, default=12, help="scenarios that share a Spark query; default 12")
    parser.add_argument("--tidemill", required=True, help="the tidemill binary")
    parser.add_argument("--component", required=True, help="script.wasm")
    parser.add_argument("--folder", required=True, help="where the cases are written; those there are kept")
    args = parser.parse_args()
    queries = -(-args.scenarios // args.per_query)
    os.makedirs(args.folder, exist_ok=True)
    print(f"seed {args.seed}: {queries} queries of {args.per_query} scenarios, by the same seed again with --seed {args.seed}")
    with tempfile.TemporaryDirectory() as scratch:
        spark = spark_side.session(scratch)
        for number in range(queries):
            query = scenarios.query(args.seed, number, args.per_query)
            path = os.path.join(args.folder, f"{query.name}.toml")
            if os.path.exists(path):
                continue
            answers = asked(spark, query, scratch)
            with open(path, "w", encoding="utf-8") as file:
                file.write(case(query, answers))
            rows = sum(len(rows) for rows, _ in answers)
            print(f"spark: query {number + 1} of {queries}, {query.time_mode}, {len(query.steps)} steps, {rows} rows out", flush=True)
        spark.stop()
    print("tidemill:", flush=True)
    return subprocess.run([args.tidemill, "test", args.folder, "--component", args.component], check=False).returncode


def asked(spark, query, scratch):
    """What Spark answers; its Python workers sometimes fail to connect on a busy machine, so it is asked again."""
    for attempt in range(3):
        try:
            return spark_side.run(spark, query, scratch)
        except RuntimeError as error:
            print(f"spark: query {query.name}: {str(error)[:200]}", flush=True)
            if attempt == 2:
                raise


def case(query, answers):
    """A query as a case of the test kit, with what Spark answered."""
    event = query.time_mode == "event-time"
    text = SETTINGS.format(
        name=query.name,
        initial=lines("initial_state", query.initial) if query.initial else "",
        initial_schema='\n[settings.initial_state]\nschema = "key STRING, op STRING, arg STRING"\n' if query.initial else "",
        time_mode=query.time_mode,
        output_mode=query.output_mode,
        watermark=f'watermark = {{ column = "ts", delay = "{query.delay_ms}ms" }}\n' if event else "",
        parameters=f'\n[settings.processor.parameters]\nttl_ms = "{query.ttl_ms}"\n' if query.ttl_ms else "",
    )
    # Spark leaves the removed entry in its index of expiries, and counts it when its time comes.
    miscounted = any(row["op"] == "ttl.map.remove" for step in query.steps for row in step.rows)
    for step, (rows, metrics) in zip(query.steps, answers):
        if miscounted:
            metrics.pop("numValuesRemovedDueToTTLExpiry", None)
        text += "\n[[step]]\n"
        if step.restart:
            text += 'restart = "clean"\n'
        text += f"clock = {step.clock_ms}\n"
        if step.rows:
            text += lines("rows", ({**row, "ts": spark_side.instant(row["ts"])} for row in step.rows))
        if metrics:
            text += f"metrics = {{ {', '.join(f'{name} = {value}' for name, value in metrics.items())} }}\n"
        if rows:
            text += lines("expect", (dict(zip(("key", "op", "result"), row)) for row in rows))
    return text


def lines(name, rows):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    return f"{name} = '''\n{text}'''\n"


if __name__ == "__main__":
    sys.exit(main())
