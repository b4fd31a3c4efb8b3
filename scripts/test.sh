#!/usr/bin/env bash
# Checks everything: set-up, format, lints, docs, tests of the host and of the SDKs, examples built and run.
#
#   scripts/test.sh            all of it
#   scripts/test.sh STEP...    some of it: setup guests format lint test sdks docs
#
#   TIDEMILL_LANGUAGES         languages of guests and SDKs (default "rust python js go")
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}"
export TIDEMILL_COMPONENTS="$CARGO_TARGET_DIR/components"

say() { printf '\n== %s\n' "$*"; }

setup() { say "set-up"; scripts/setup.sh; }
guests() { say "components"; scripts/build-guests.sh; }
format() { say "format"; cargo fmt --all --check; }
lint() {
  say "lints"
  cargo clippy --release --locked -p tidemill-host --all-targets -- -D warnings
  cargo clippy --release --locked -p tidemill -p tidemill-derive -p 'example-*' -p '*-guest' --all-targets -- -D warnings
}
docs() {
  say "docs"
  # The host's docs are for those who work on it, so private items are in them; the SDK's are for authors.
  RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" cargo doc --release --locked --no-deps -p tidemill-host --lib --document-private-items
  RUSTDOCFLAGS="-D warnings" cargo doc --release --locked --no-deps -p tidemill
}
test_() { say "tests of the host"; cargo test --release --locked --no-fail-fast -p tidemill-host; }
sdks() { say "tests of the SDKs and the processors, without wasm"; scripts/test-sdks.sh; }

for step in "${@:-setup guests format lint test sdks docs}"; do
  for one in $step; do
    case $one in
      setup|guests|format|lint|docs|sdks) "$one" ;;
      test) test_ ;;
      *) echo "unknown step $one; there are: setup guests format lint test sdks docs" >&2; exit 2 ;;
    esac
  done
done
say "all green"
