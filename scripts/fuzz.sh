#!/usr/bin/env bash
# Fuzzes one thing that parses bytes from outside, with libFuzzer, until it finds a fault or the time is over.
#
#   scripts/fuzz.sh                     what can be fuzzed
#   scripts/fuzz.sh TARGET [SECONDS]    begins with fuzz/corpus/TARGET; 60 seconds
#   scripts/fuzz.sh TARGET FILE         runs one input
#
# It needs a stable Rust and a C++ compiler. An input that failed is kept in fuzz/corpus/TARGET, where the tests replay it.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"

if [ $# -eq 0 ]; then ls fuzz/corpus; exit; fi
target=$1
[ -f "fuzz/fuzz_targets/$target.rs" ] || { echo "no target $target; there are:" $(ls fuzz/corpus) >&2; exit 2; }
command -v "${CXX:-c++}" >/dev/null || { echo "a C++ compiler is missing, for libFuzzer: apt-get install g++, or set CXX" >&2; exit 2; }

# The versions of the product, so that what is built for it serves here as well.
cp Cargo.lock fuzz/Cargo.lock
RUSTC_WRAPPER="$PWD/fuzz/rustc.sh" cargo build --release --manifest-path fuzz/Cargo.toml --bin "$target"
if [ -f "${2:-}" ]; then exec "$CARGO_TARGET_DIR/release/$target" "$2"; fi

# What is found beside faults stays in the target folder, so that the next run begins there.
found="$CARGO_TARGET_DIR/fuzz/$target"
mkdir -p "$found"
if [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
exec "$CARGO_TARGET_DIR/release/$target" "$found" "fuzz/corpus/$target" -max_total_time="${2:-60}" -max_len=4096 \
  -timeout=10 -rss_limit_mb=3072 -artifact_prefix="fuzz/corpus/$target/" -print_final_stats=1
