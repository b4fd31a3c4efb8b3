#!/usr/bin/env bash
# Makes a machine ready to build Tidemill and its guests. Run it as often as you like: what is there is left alone.
#
#   TIDEMILL_LANGUAGES         the guests' languages (default "rust python js go"); what they need beyond this, `tidemill
#                              build` installs into the cache
#   TIDEMILL_WASM_STD=auto     (default) use the wasm32 target if it is installed, else Debian's, else say what to do
#   TIDEMILL_WASM_STD=rustup   install the target with rustup
#   TIDEMILL_WASM_STD=debian   build it from Debian's rustc-web packages, which needs no more than the package mirror
#
# What guests are built with is noted in wasm-std.env in the cache folder (TIDEMILL_CACHE, else ~/.cache/tidemill), for
# build-guests.sh and `tidemill build`.
set -euo pipefail

target=wasm32-unknown-unknown
wanted=${TIDEMILL_WASM_STD:-auto}
cache=${TIDEMILL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidemill}
env_file=$cache/wasm-std.env
apt_is_fresh=no

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

has_apt() { command -v apt-get >/dev/null && command -v dpkg >/dev/null; }

# Before the first `apt-get update` of a bare machine, no package is found.
refresh_apt() {
    [ "$apt_is_fresh" = no ] || return 0
    say "refreshing the list of packages"
    as_root apt-get update -qq
    apt_is_fresh=yes
}

is_installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

install_packages() {
    local missing=() package
    for package in "$@"; do is_installed "$package" || missing+=("$package"); done
    [ ${#missing[@]} -gt 0 ] || return 0
    refresh_apt
    say "installing ${missing[*]}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# RocksDB is C++, and its bindings are made with libclang.
system_packages() {
    if has_apt; then
        install_packages clang libclang-dev g++ make
    elif ! command -v clang >/dev/null || ! command -v make >/dev/null; then
        die "install clang with libclang, a C++ compiler and make with your system's package manager, then run this again"
    fi
}

rust() {
    command -v cargo >/dev/null && command -v rustc >/dev/null ||
        die "no Rust here: install it from https://rustup.rs, then run this again"
    say "using $(rustc -V)"
}

target_is_installed() {
    local libs
    libs=$(rustc --print target-libdir --target $target 2>/dev/null) && compgen -G "$libs/libstd-*.rlib" >/dev/null
}

use_installed_target() {
    mkdir -p "$cache"
    printf '# %s has the target %s\n' "$(rustc -V)" $target >"$env_file"
    say "guests are built with the installed target $target"
}

# A linker for wasm: the one inside the Rust toolchain, or Debian's.
wasm_linker() {
    local host linker
    host=$(rustc -vV | sed -n 's/^host: //p')
    linker=$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld
    [ -x "$linker" ] || linker=$(command -v wasm-ld || compgen -G '/usr/bin/wasm-ld-*' | sort -V | tail -1 || true)
    if [ -z "$linker" ]; then
        install_packages lld >&2
        linker=$(command -v wasm-ld)
    fi
    printf '%s' "$linker"
}

debian_has_rustc_web() {
    has_apt || return 1
    apt-cache show rustc-web >/dev/null 2>&1 || refresh_apt
    apt-cache show rustc-web >/dev/null 2>&1
}

# Debian's compiler comes with the source of its standard library, but not with the library for wasm: build that once per compiler.
build_debian_std() {
    local rustc linker version sysroot libs scratch
    install_packages rustc-web rust-web-src libstd-rust-web-dev
    rustc=$(dpkg -L rustc-web | grep -E '/bin/rustc$' | head -1)
    linker=$(wasm_linker)
    version=$("$rustc" -V | tr ' ' '-' | tr -cd 'A-Za-z0-9._-')
    sysroot=$cache/sysroot-$version
    if [ ! -e "$sysroot/complete" ]; then
        say "building the standard library for $target with $("$rustc" -V); this takes a minute or two, once"
        libs=$sysroot/lib/rustlib/$target/lib
        scratch=$cache/build-std
        rm -rf "$sysroot" "$scratch"
        mkdir -p "$libs" "$scratch/src"
        : >"$scratch/src/lib.rs"
        cat >"$scratch/Cargo.toml" <<'TOML'
[package]
name = "build-std"
version = "0.0.0"
edition = "2024"

[profile.release]
panic = "abort"

[workspace]
TOML
        # An unstable flag of cargo, so the compiler is told to allow it; guests need stable flags only.
        (cd "$scratch" && env RUSTC="$rustc" RUSTC_BOOTSTRAP=1 RUSTFLAGS='-Cembed-bitcode=yes -Cstrip=debuginfo' \
            cargo build --release --target $target -Zbuild-std=std,panic_abort --target-dir "$scratch/target" >&2)
        cp "$scratch/target/$target/release/deps/"*.rlib "$libs/"
        rm -rf "$libs"/libbuild_std* "$scratch"
        touch "$sysroot/complete"
    fi
    cat >"$env_file" <<ENV
RUSTC=$rustc
CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=$linker
CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS=--sysroot=$sysroot
ENV
    say "guests are built with $("$rustc" -V) and the standard library in $sysroot"
}

wasm_std() {
    case $wanted in
    auto)
        if target_is_installed; then
            use_installed_target
        elif debian_has_rustc_web; then
            build_debian_std
        else
            die "the Rust target $target is missing. Run: rustup target add $target"
        fi
        ;;
    rustup)
        command -v rustup >/dev/null || die "no rustup here: install it from https://rustup.rs"
        target_is_installed || rustup target add $target
        use_installed_target
        ;;
    debian)
        debian_has_rustc_web || die "this machine's package mirror has no rustc-web"
        build_debian_std
        ;;
    *) die "TIDEMILL_WASM_STD is '$wanted'; it is one of auto, rustup, debian" ;;
    esac
}

# Whether a version (1.24.3) is at least another (1.24).
is_at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -1)" = "$2" ]; }

# The first version that a command tells: `v20.20.2`, `go version go1.26.8 linux/amd64`, `Python 3.11.7`.
version_of() { "$@" 2>/dev/null | grep -Eo '[0-9]+(\.[0-9]+)+' | head -1; }

# A toolchain that is new enough: the one on the path, else Debian's.
toolchain() { # VERSION URL PACKAGE... -- COMMAND...
    local wanted=$1 url=$2 packages=() found offered
    shift 2
    while [ "$1" != -- ]; do packages+=("$1"); shift; done
    shift
    found=$(version_of "$@" || true)
    if [ -n "$found" ] && is_at_least "$found" "$wanted"; then
        say "using $1 $found"
        return
    fi
    if has_apt; then
        refresh_apt
        offered=$(apt-cache policy "${packages[0]}" | sed -nE 's/^ *Candidate: ([0-9]+:)?([0-9.]+).*/\2/p')
        if [ -n "$offered" ] && is_at_least "$offered" "$wanted"; then
            install_packages "${packages[@]}"
            hash -r
            found=$(version_of "$@" || true)
            if [ -n "$found" ] && is_at_least "$found" "$wanted"; then return; fi
        fi
    fi
    die "$1 $wanted or later is needed, and $([ -n "$found" ] && echo "$found is here" || echo "there is none"): install it from $url," \
        "or leave its language out with TIDEMILL_LANGUAGES='rust ...'"
}

# `python3 -m venv` needs a package of its own on Debian.
python_toolchain() {
    toolchain 3.10 https://www.python.org/downloads python3 python3-venv -- python3 --version
    python3 -c 'import ensurepip, venv' 2>/dev/null && return
    has_apt || die "the Python here cannot make virtual environments: install its module venv"
    install_packages python3-venv
}

node_toolchain() {
    toolchain 20 https://nodejs.org/en/download nodejs -- node --version
    # Debian has it apart; other packages of Node.js bring it along.
    command -v npm >/dev/null || ! has_apt || install_packages npm
    command -v npm >/dev/null || die "there is no npm beside node: install it from https://nodejs.org/en/download"
}

system_packages
rust
for language in ${TIDEMILL_LANGUAGES:-rust python js go}; do
    case $language in
    rust) wasm_std ;;
    python) python_toolchain ;;
    js) node_toolchain ;;
    go) toolchain 1.24 https://go.dev/doc/install golang-go -- go version ;;
    *) die "TIDEMILL_LANGUAGES names '$language'; there are rust, python, js (TypeScript too) and go" ;;
    esac
done
