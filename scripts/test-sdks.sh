#!/usr/bin/env bash
# Tests the SDKs, and the processors of examples and test guests, by the tools of their languages: no wasm is run.
#
#   scripts/test-sdks.sh             all languages of TIDEMILL_LANGUAGES (default "rust python js go")
#   scripts/test-sdks.sh python go   these
#
# mypy and pytest are installed into the cache the first time. JavaScript needs what `tidemill build` has installed.
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s nullglob

mypy=2.4.1
pytest=9.2.0
host_target=${CARGO_TARGET_DIR:-$PWD/target}
tidemill=${TIDEMILL:-$host_target/release/tidemill}
cache=${TIDEMILL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidemill}

say() { printf '\n-- %s\n' "$*"; }

test_rust() {
    cargo test --release --locked -p tidemill -p tidemill-derive -p script-guest -p 'example-*'
}

test_python() {
    local checkers=$cache/tools/checkers-mypy-$mypy-pytest-$pytest python folder
    if [ ! -e "$checkers/complete" ]; then
        rm -rf "$checkers"
        python3 -m venv "$checkers"
        "$checkers/bin/python" -m pip install --quiet --disable-pip-version-check "mypy==$mypy" "pytest==$pytest"
        touch "$checkers/complete"
    fi
    python=$checkers/bin/python
    (cd guest-sdk/python && "$python" -m mypy && "$python" -m pytest -q)
    for folder in {examples,tests/guests}/*/python; do
        compgen -G "$folder/test_*.py" >/dev/null || continue
        say "$folder"
        (cd "$folder" && "$python" -m pytest -q)
    done
}

test_js() {
    local tools folder
    tools=$("$tidemill" doctor --lang js --output json |
        node -p 'JSON.parse(fs.readFileSync(0)).languages[0].needs.at(-1).place ?? ""')
    [ -n "$tools" ] || { echo "test-sdks: build a guest first: scripts/build-guests.sh --lang js counter" >&2; exit 1; }
    (cd guest-sdk/js && "$tools/node_modules/.bin/tsc" --noEmit --strict --module esnext --target es2023 ./*.d.ts && node --test test/*.test.js)
    for folder in {examples,tests/guests}/*/{js,ts}; do
        [ -d "$folder/test" ] || continue
        say "$folder"
        node guest-sdk/js/build/test.mjs "$folder" --tools "$tools"
    done
}

test_go() {
    local module
    for module in guest-sdk/go/go.mod {examples,tests/guests}/*/go/go.mod; do
        say "$(dirname "$module")"
        (cd "$(dirname "$module")" && go vet ./... && go test ./...)
    done
    [ -z "$(gofmt -l guest-sdk/go examples tests/guests templates)" ] ||
        { echo "test-sdks: not formatted:"; gofmt -l guest-sdk/go examples tests/guests templates; exit 1; } >&2
}

languages=("$@")
[ $# -gt 0 ] || read -ra languages <<<"${TIDEMILL_LANGUAGES:-rust python js go}"
for language in "${languages[@]}"; do
    case $language in
    rust | python | js | go) say "$language"; "test_$language" ;;
    *) echo "test-sdks: unknown language $language; there are rust python js go" >&2; exit 2 ;;
    esac
done
