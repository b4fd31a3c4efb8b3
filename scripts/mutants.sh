#!/usr/bin/env bash
# Proves that the conformance cases can fail: puts one fault after another into the engine, in a copy of the repository,
# and runs the case that each must turn red (tests/conformance/mutants).
#
#   scripts/mutants.sh              all of them
#   scripts/mutants.sh NAME ...     these
#
#   TIDEMILL_MUTANTS_TARGET   where they are built (default target/mutants): cargo takes two copies of one workspace for the
#                             same, so not where the repository itself is
#
# Needs the components (scripts/build-guests.sh). A fault costs an incremental build without optimisation, about a minute;
# the first one that of all dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."

repository=$PWD
mutants=$repository/tests/conformance/mutants
export TIDEMILL_COMPONENTS=${TIDEMILL_COMPONENTS:-${CARGO_TARGET_DIR:-$repository/target}/components}
export CARGO_TARGET_DIR=${TIDEMILL_MUTANTS_TARGET:-${CARGO_TARGET_DIR:-$repository/target}/mutants}
export CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_DEBUG=0

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(cd "$mutants" && basename -s .patch -- *.patch)

copy=$(mktemp -d)
trap 'git worktree remove --force "$copy/tidemill"; rm -rf "$copy"' EXIT
git worktree add --quiet --detach "$copy/tidemill" HEAD
cd "$copy/tidemill"

# Runs a case; fails if it does.
run_case() {
    TIDEMILL_CASE=$1 cargo test --quiet --release --locked -p tidemill-host --test all conformance::every_case_passes \
        >"$copy/said" 2>&1
}

survivors=()
for name in "${names[@]}"; do
    patch=$mutants/$name.patch
    case=$(sed -n 's/^case: //p' "$patch")
    file=$(sed -n 's/^file: //p' "$patch")
    python3 "$mutants/apply.py" "$patch" "$file"
    if ! cargo test --quiet --release --locked -p tidemill-host --test all --no-run >"$copy/said" 2>&1; then
        echo "$name: does not build"
        cat "$copy/said"
        survivors+=("$name")
    elif run_case "$case"; then
        echo "$name: SURVIVED $case"
        survivors+=("$name")
    elif grep -q "^$case FAILED" "$copy/said"; then
        echo "$name: killed by $case"
    else
        echo "$name: something else than $case failed"
        tail -20 "$copy/said"
        survivors+=("$name")
    fi
    git checkout --quiet -- "$file"
done

echo "${#names[@]} faults, ${#survivors[@]} survived: ${survivors[*]:-none}"
[ ${#survivors[@]} -eq 0 ]
