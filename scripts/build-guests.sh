#!/usr/bin/env bash
# Builds the Rust guests (examples and test guests) and encodes each as a component, target/components/NAME.wasm.
#
#   scripts/build-guests.sh             all
#   scripts/build-guests.sh counter     these
#
#   TIDEMILL                 the tidemill binary (default: built here, in target/release)
#   TIDEMILL_GUEST_TARGET    where cargo builds guests (default target/guests: apart from the host's, which has other flags)
#   TIDEMILL_COMPONENTS      where components go (default target/components)
# `target` is CARGO_TARGET_DIR where that is set.
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
host_target=${CARGO_TARGET_DIR:-target}
guest_target=${TIDEMILL_GUEST_TARGET:-$host_target/guests}
components=${TIDEMILL_COMPONENTS:-$host_target/components}
cache=${TIDEMILL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidemill}

say() { printf 'build-guests: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# Name -> package: examples/NAME/rust is example-NAME, tests/guests/NAME is NAME-guest.
package_of() {
    if [ -e "examples/$1/rust/Cargo.toml" ]; then echo "example-$1"
    elif [ -e "tests/guests/$1/Cargo.toml" ]; then echo "$1-guest"
    else return 1
    fi
}

all_names() {
    local folder
    for folder in examples/*/rust/; do basename "$(dirname "$folder")"; done
    for folder in tests/guests/*/; do basename "$folder"; done
}

[ -e "$cache/wasm-std.env" ] || scripts/setup.sh
tidemill=${TIDEMILL:-$host_target/release/tidemill}
if [ -z "${TIDEMILL:-}" ]; then
    say "building the host (the first time, this takes long)"
    cargo build --release -p tidemill-host
fi

names=("$@")
[ $# -gt 0 ] || mapfile -t names < <(all_names)
packages=()
for name in "${names[@]}"; do
    package=$(package_of "$name") || die "there is no guest '$name'; there are: $(all_names | tr '\n' ' ')"
    packages+=(-p "$package")
done

say "compiling ${names[*]}"
(
    set -a
    # shellcheck source=/dev/null
    . "$cache/wasm-std.env"
    cargo build --locked --profile guest --target $target --target-dir "$guest_target" "${packages[@]}"
)

mkdir -p "$components"
for name in "${names[@]}"; do
    "$tidemill" build "$guest_target/$target/guest/${name//-/_}.wasm" --out "$components/$name.wasm"
done
