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

spark=4.3.0
target=${CARGO_TARGET_DIR:-target}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tidemill/bench-spark
components=${TIDEMILL_COMPONENTS:-$target/components}
folder=$target/spark-diff

say() { printf 'spark-diff: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

command -v java >/dev/null || die "Spark needs Java 17 or later; install it with your system's package manager"
command -v python3 >/dev/null || die "PySpark needs Python 3.10 or later"

python=$cache/venv-$spark/bin/python
if [ ! -e "$cache/venv-$spark/complete" ]; then
    say "installing PySpark $spark into $cache (some 900 MB, once)"
    rm -rf "$cache/venv-$spark"
    python3 -m venv "$cache/venv-$spark"
    "$python" -m pip install --quiet "pyspark==$spark" pyarrow pandas numpy protobuf grpcio
    touch "$cache/venv-$spark/complete"
fi

tidemill=${TIDEMILL:-$target/release/tidemill}
if [ -z "${TIDEMILL:-}" ]; then
    say "building the host (the first time, this takes long)"
    cargo build --release --locked -p tidemill-host
fi
[ -e "$components/script.wasm" ] || TIDEMILL=$tidemill scripts/build-guests.sh script

rm -rf "$folder"
mkdir -p "$folder"
# What Spark's Python workers print goes to a file: it is much, and of use only when something fails.
exec "$python" tests/spark-diff/spark_diff.py --tidemill "$tidemill" --component "$components/script.wasm" --folder "$folder" "$@" \
    2>"$folder/spark.log"
