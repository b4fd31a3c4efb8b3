#!/usr/bin/env bash
# Builds the guests (examples and test guests) of all languages into components:
# NAME.wasm (Rust), NAME-python.wasm, NAME-js.wasm (JavaScript or TypeScript), NAME-go.wasm.
#
#   scripts/build-guests.sh                        all
#   scripts/build-guests.sh counter                these, in every language that they are in
#   scripts/build-guests.sh --lang python counter  in this language; may be given again
#
#   TIDEMILL                 the tidemill binary (default: built here, in target/release)
#   TIDEMILL_LANGUAGES       languages where none is given (default "rust python js go")
#   TIDEMILL_GUEST_TARGET    where cargo builds guests (default target/guests: apart from the host's, which has other flags)
#   TIDEMILL_COMPONENTS      where components go (default target/components)
# `target` is CARGO_TARGET_DIR where that is set.
#
# Rust guests are built together by one cargo. Each other one is a project that `tidemill build` builds; it is left as it is
# while nothing has changed that it was made from: its files, the SDK, the world, and how projects are built.
set -euo pipefail
cd "$(dirname "$0")/.."

target=wasm32-unknown-unknown
host_target=${CARGO_TARGET_DIR:-$PWD/target}
guest_target=${TIDEMILL_GUEST_TARGET:-$host_target/guests}
components=${TIDEMILL_COMPONENTS:-$host_target/components}
cache=${TIDEMILL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidemill}

say() { printf 'build-guests: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

languages=()
names=()
while [ $# -gt 0 ]; do
    case $1 in
    --lang) languages+=("${2:?--lang needs a language}"); shift ;;
    -*) die "unknown option $1" ;;
    *) names+=("$1") ;;
    esac
    shift
done
[ ${#languages[@]} -gt 0 ] || read -ra languages <<<"${TIDEMILL_LANGUAGES:-rust python js go}"

for language in "${languages[@]}"; do
    case $language in
    rust | python | js | go) ;;
    *) die "unknown language '$language'; there are rust, python, js (TypeScript too) and go" ;;
    esac
done

# --- which guests there are

# Folder of a guest in a language; fails if it is not in that language.
folder_of() { # LANGUAGE NAME
    local folder
    case $1 in
    rust)
        for folder in "examples/$2/rust" "tests/guests/$2"; do
            [ ! -e "$folder/Cargo.toml" ] || { echo "$folder"; return; }
        done ;;
    js)
        for folder in {examples,tests/guests}/"$2"/{js,ts}; do
            [ ! -e "$folder/package.json" ] || { echo "$folder"; return; }
        done ;;
    python | go)
        for folder in {examples,tests/guests}/"$2/$1"; do
            [ ! -d "$folder" ] || { echo "$folder"; return; }
        done ;;
    esac
    return 1
}

all_names() {
    local folder
    for folder in examples/*/ tests/guests/*/; do basename "$folder"; done | sort -u
}

[ ${#names[@]} -gt 0 ] || mapfile -t names < <(all_names)
for name in "${names[@]}"; do
    [ -d "examples/$name" ] || [ -d "tests/guests/$name" ] ||
        die "there is no guest '$name'; there are: $(all_names | tr '\n' ' ')"
done

# --- how they are built

tidemill=${TIDEMILL:-$host_target/release/tidemill}
if [ -z "${TIDEMILL:-}" ]; then
    say "building the host (the first time, this takes long)"
    cargo build --release -p tidemill-host
fi
mkdir -p "$components/inputs"

build_rust() {
    local name folder packages=() built=()
    for name in "${names[@]}"; do
        folder=$(folder_of rust "$name") || continue
        packages+=(-p "$(sed -n 's/^name = "\(.*\)"/\1/p' "$folder/Cargo.toml" | head -1)")
        built+=("$name")
    done
    [ ${#built[@]} -gt 0 ] || return 0
    [ -e "$cache/wasm-std.env" ] || TIDEMILL_LANGUAGES=rust scripts/setup.sh
    say "rust: ${built[*]}"
    (
        set -a
        # shellcheck source=/dev/null
        . "$cache/wasm-std.env"
        cargo build --locked --profile guest --target $target --target-dir "$guest_target" "${packages[@]}"
    )
    for name in "${built[@]}"; do
        "$tidemill" build "$guest_target/$target/guest/${name//-/_}.wasm" --out "$components/$name.wasm" >/dev/null
    done
}

# Names and bytes of all that a component is made from.
inputs_of() { # LANGUAGE FOLDER
    find "$2" "guest-sdk/$1" wit/world.wit host/src/project host/src/runtime/componentize.rs \
        \( -name node_modules -o -name __pycache__ -o -name '.*_cache' -o -path "$2/build" \) -prune -o -type f -print0 |
        sort -z | xargs -0 sha256sum | sha256sum
}

build_project() { # LANGUAGE NAME FOLDER
    local component=$components/$2-$1.wasm note=$components/inputs/$2-$1 inputs
    inputs=$(inputs_of "$1" "$3")
    if [ -e "$component" ] && [ "$(cat "$note" 2>/dev/null)" = "$inputs" ]; then return 0; fi
    say "$1: $2"
    rm -f "$note"
    "$tidemill" build "$3" --out "$component" >/dev/null
    printf '%s\n' "$inputs" >"$note"
}

# As many at a time as there are cores; the first to need a tool installs it, and the others wait for that.
build_projects() { # LANGUAGE
    local name folder pid failed=0 running=()
    for name in "${names[@]}"; do
        folder=$(folder_of "$1" "$name") || continue
        if [ ${#running[@]} -ge "$(nproc)" ]; then
            wait "${running[0]}" || failed=1
            running=("${running[@]:1}")
        fi
        build_project "$1" "$name" "$folder" &
        running+=($!)
    done
    for pid in "${running[@]}"; do wait "$pid" || failed=1; done
    return "$failed"
}

for language in "${languages[@]}"; do
    if [ "$language" = rust ]; then build_rust; else build_projects "$language"; fi
done
