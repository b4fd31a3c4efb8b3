#!/usr/bin/env bash
# The demo: builds the host and a processor, runs it over real flights, kills it in the middle, starts it again, and
# shows that the rows are the same as if nothing had happened.
#
# The first build compiles RocksDB and wasmtime; that takes a while.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }

say "1. Set-up: compiler for RocksDB's bindings, WebAssembly standard library"
TIDEMILL_LANGUAGES=rust scripts/setup.sh
say "2. Building the host (the first time takes minutes)"
cargo build --release --locked -p tidemill-host
say "3. Building the processor: examples/flights/rust -> a WebAssembly component"
scripts/build-guests.sh --lang rust flights

tidemill=$CARGO_TARGET_DIR/release/tidemill
demo=$CARGO_TARGET_DIR/demo
rm -rf "$demo" && mkdir -p "$demo"
# A clone gives files the time of the clone; input is read in order of time, then name.
cp -r examples/flights/input "$demo/input"
find "$demo/input" -type f -exec touch -d 2013-01-01T00:00:00Z {} +

run() { # NAME: runs the query with checkpoint and output of that name
  "$tidemill" run --config examples/flights/query.toml \
    --set processor.component="$CARGO_TARGET_DIR/components/flights.wasm" \
    --input "$demo/input" --checkpoint "$demo/$1/checkpoint" --sink "$demo/$1/rows"
}

say "4. Running it, and killing it between the commit of a batch and its publication"
mkdir -p "$demo/killed" "$demo/undisturbed"
(export TIDEMILL_CRASH_AT=commit.after-sync:3; run killed) 2>/dev/null || echo "(killed)"
echo "published so far: $(cat "$demo"/killed/rows/part-* 2>/dev/null | wc -l) rows in $(ls "$demo/killed/rows" 2>/dev/null | wc -l) files"

say "5. Starting it again: it publishes what was committed, and goes on"
run killed
echo "published now: $(cat "$demo"/killed/rows/part-* | wc -l) rows in $(ls "$demo/killed/rows" | wc -l) files"

say "6. The same query, never disturbed, for comparison"
run undisturbed
diff -r "$demo/killed/rows" "$demo/undisturbed/rows" --exclude='.*' && echo "byte for byte the same"

say "7. Some of the rows: departures with the delay that the aircraft brought along, and aircraft not seen for three days"
rows() { cat "$demo"/killed/rows/part-*; }
rows | grep '"event":"departed"' | grep -v '"carried_delay":null' | tail -n 6
rows | grep '"event":"not seen"' | tail -n 4
