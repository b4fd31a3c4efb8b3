#!/usr/bin/env bash
# Makes tests/fixtures/checkpoints/FORMAT: a checkpoint of the first version of docs/evolution.md's processor, as this host
# writes it, which tests/upgrade.rs then opens with the second version for ever.
#
#   scripts/make-checkpoint-fixture.sh             for the format in use, which must not have been released
#
#   TIDEMILL               the tidemill binary (default target/release/tidemill)
#   TIDEMILL_COMPONENTS    where components are (default target/components)
# `target` is CARGO_TARGET_DIR where that is set.
set -euo pipefail
cd "$(dirname "$0")/.."

format=1
host_target=${CARGO_TARGET_DIR:-target}
tidemill=$(realpath "${TIDEMILL:-$host_target/release/tidemill}")
component=$(realpath "${TIDEMILL_COMPONENTS:-$host_target/components}/visits-1.wasm")
page=$(realpath docs/evolution.md)
fixture=tests/fixtures/checkpoints/$format

# The text of a block of the page, by the file that it stands for.
block() { awk -v head="^\`\`\`[a-z]+ $1\$" '$0 ~ head { on = 1; next } /^```$/ { on = 0 } on' "$page"; }

# The record of a batch names the folder of its source and sink: one that says nothing of this machine.
made=/tmp/tidemill-checkpoint-fixture
rm -rf "$made"
mkdir -p "$made/visits"
cd "$made"
block query.toml >query.toml
block visits/1.jsonl >visits/1.jsonl
touch -d @1000000001 visits/1.jsonl query.toml
"$tidemill" run "$component" --config query.toml
# Of RocksDB's own diary nothing is read.
find checkpoint -name 'LOG*' -delete
rm -rf checkpoint/live checkpoint/tmp
cd - >/dev/null
rm -rf "$fixture"
mkdir -p "$(dirname "$fixture")"
mv "$made" "$fixture"
find "$fixture" -type f | sort
