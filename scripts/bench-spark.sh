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

. scripts/with-spark.sh
bench=$(component bench)
files=${FILES:-15} rows=${ROWS:-100000} keys=${KEYS:-100000} turns=${TURNS:-3}
here=host/benches/spark

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
"$python" "$here/compare.py" "$scratch" "$input" "$turns" "$tidemill" "$bench" "${scala[@]}"
