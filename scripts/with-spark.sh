# Sourced by the scripts that compare with Spark: checks what PySpark needs, installs it once, finds or builds Tidemill.
#
# Sets `cache`, `python` (with PySpark), `target`, `components`, `tidemill`; gives `say`, `die` and `component NAME`. Reads
# TIDEMILL, TIDEMILL_COMPONENTS and CARGO_TARGET_DIR, as the scripts say.
# shellcheck shell=bash disable=SC2034

spark=4.3.0
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tidemill/bench-spark
target=${CARGO_TARGET_DIR:-target}
components=${TIDEMILL_COMPONENTS:-$target/components}

say() { printf '%s: %s\n' "$(basename "$0" .sh)" "$*" >&2; }
die() { say "$*"; exit 1; }

command -v java >/dev/null || die "Spark needs Java 17 or later; install it with your system's package manager"
command -v python3 >/dev/null || die "PySpark needs Python 3.10 or later"

python=$cache/venv-$spark/bin/python
if [ ! -e "$cache/venv-$spark/complete" ]; then
    say "installing PySpark $spark into $cache (some 900 MB, once)"
    rm -rf "$cache/venv-$spark"
    python3 -m venv "$cache/venv-$spark"
    "$python" -m pip install --quiet "pyspark==$spark" pyarrow pandas numpy protobuf grpcio
    touch "$cache/venv-$spark/complete"
fi

tidemill=${TIDEMILL:-$target/release/tidemill}
if [ -z "${TIDEMILL:-}" ]; then
    say "building the host (the first time, this takes long)"
    cargo build --release --locked -p tidemill-host
fi

# Prints the path of a test guest's component, which is built if it is missing.
component() {
    [ -e "$components/$1.wasm" ] || TIDEMILL=$tidemill scripts/build-guests.sh --lang rust "$1" >&2
    printf '%s\n' "$components/$1.wasm"
}
