#!/usr/bin/env bash
# Runs random queries through Spark's transformWithState (PySpark) and through Tidemill, and prints where they differ.
#
#   scripts/spark-diff.sh [--seed N] [--scenarios N]
#
#   TIDEMILL                 the tidemill binary (default: built here)
#   TIDEMILL_COMPONENTS      where script.wasm is (default target/components; built if it is missing)
#
# Spark's answers are left as cases of the test kit in target/spark-diff, to be read and to be run again with
# `tidemill test`. Spark is installed into ${XDG_CACHE_HOME:-$HOME/.cache}/tidemill/bench-spark, once: some 900 MB. It
# needs Java 17 or later and Python 3.10 or later.
set -euo pipefail
cd "$(dirname "$0")/.."

. scripts/with-spark.sh
script=$(component script)
folder=$target/spark-diff

rm -rf "$folder"
mkdir -p "$folder"
# What Spark's Python workers print goes to a file: it is much, and of use only when something fails.
exec "$python" tests/spark-diff/spark_diff.py --tidemill "$tidemill" --component "$script" --folder "$folder" "$@" \
    2>"$folder/spark.log"
