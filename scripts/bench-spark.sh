#!/usr/bin/env bash
# Counts per key over the same generated files with Tidemill and with Spark's transformWithState (Python, and Scala if it
# can be compiled), side by side, and prints the ratios. See docs/benchmarks.md.
#
#   scripts/bench-spark.sh
#
#   FILES=15 ROWS=100000 KEYS=100000   files (one per batch), rows of each, different keys
#   TURNS=3                            how often each system runs; the best turn counts
#   TIDEMILL                           the tidemill binary (default: built here)
#   TIDEMILL_COMPONENTS                where bench.wasm is (default target/components; built if it is missing)
#
# Spark is installed into ${XDG_CACHE_HOME:-$HOME/.cache}/tidemill/bench-spark, once: some 900 MB. It needs Java 17 or later
# and Python 3.10 or later.
set -euo pipefail
cd "$(dirname "$0")/.."

spark=4.3.0
files=${FILES:-15} rows=${ROWS:-100000} keys=${KEYS:-100000} turns=${TURNS:-3}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tidemill/bench-spark
components=${TIDEMILL_COMPONENTS:-target/components}
here=host/benches/spark

say() { printf 'bench-spark: %s\n' "$*" >&2; }
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

tidemill=${TIDEMILL:-${CARGO_TARGET_DIR:-target}/release/tidemill}
if [ -z "${TIDEMILL:-}" ]; then
    say "building the host (the first time, this takes long)"
    cargo build --release --locked -p tidemill-host
fi
[ -e "$components/bench.wasm" ] || TIDEMILL=$tidemill scripts/build-guests.sh bench

# PySpark comes with the Scala compiler that Spark itself was made with.
jar=$cache/count-$spark.jar
if [ ! -e "$jar" ] || [ "$here/Count.scala" -nt "$jar" ]; then
    say "compiling $here/Count.scala"
    jars=$("$python" -c 'import os, pyspark; print(os.path.join(os.path.dirname(pyspark.__file__), "jars"))')
    if ! java -Xmx1500m -cp "$jars/*" scala.tools.nsc.Main -usejavacp -nowarn -d "$jar" "$here/Count.scala"; then
        say "Scala could not be compiled here; going on without"
        rm -f "$jar"
    fi
fi

input=$cache/input-$files-$rows-$keys
if [ ! -e "$input" ]; then
    say "making $files files of $rows rows over $keys keys"
    rm -rf "$input.new"
    "$python" "$here/generate.py" "$input.new" "$files" "$rows" "$keys"
    mv "$input.new" "$input"
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[ -e "$jar" ] && scala=("$jar") || scala=()
"$python" "$here/compare.py" "$scratch" "$input" "$turns" "$tidemill" "$components/bench.wasm" "${scala[@]}"
