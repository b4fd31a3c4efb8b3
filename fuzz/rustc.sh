#!/bin/sh
# Cargo's RUSTC_WRAPPER: adds libFuzzer's instrumentation to our own crates, and leaves what they depend on, and what only runs
# while they are built, as it is.
case "${CARGO_PKG_NAME:-} ${CARGO_CRATE_NAME:-}" in
  *" build_script_"*) exec "$@" ;;
  "tidemill-host "* | "tidemill-fuzz "*)
    exec "$@" --cfg fuzzing -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
      -C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table \
      -C llvm-args=-sanitizer-coverage-trace-compares ;;
  *) exec "$@" ;;
esac
