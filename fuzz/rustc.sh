#!/bin/sh
# Cargo's RUSTC_WRAPPER: adds libFuzzer's instrumentation to our own crates, and leaves what they depend on as it is built.
case "${CARGO_PKG_NAME:-}" in
  tidemill-host | tidemill-fuzz)
    exec "$@" --cfg fuzzing -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
      -C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table \
      -C llvm-args=-sanitizer-coverage-trace-compares ;;
  *) exec "$@" ;;
esac
