# shellcheck shell=bash
# Sourced by the scripts beside it: goes to the root of the tree and offers what they share.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Where cargo builds: relative to the root, or absolute when that lies elsewhere.
TARGET=$(realpath --no-symlinks --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
if [ -n "${CARGO_TARGET_DIR:-}" ]; then export CARGO_TARGET_DIR=$TARGET; fi
TARGET=${TARGET#"$PWD/"}
if [ -t 1 ]; then export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-always}; fi

# Says what happens next.
say() { printf '==> %s\n' "$*"; }

# Says why the script ends, and ends it.
stop() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# The version of the workspace.
version() { sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1; }

# Prints the comment at the top of a script, which is its help.
help_of() { sed -n '2,/^$/s/^# \{0,1\}//p' "$1"; }

# Whether the files of a directory that write something, and what they are made with, are newer than what they wrote last.
are_newer() { [ ! -e "$2" ] || [ -n "$(find "$1" -newer "$2" -name '*.[pt][yx]*')" ]; }

# Writes what ops have to give, where that is missing or old.
write_operator_cases() {
    are_newer tests/operators "$TARGET/operator-cases/onnx.jsonl" || return 0
    say 'what ops have to give, of onnx, NumPy and onnxruntime'
    scripts/export-operator-cases
}

# Whether Python is one that Paddle has no packages for, and that old versions of pip do not run with.
is_python_new() { python3 -c 'import sys; sys.exit(sys.version_info < (3, 13))' 2>/dev/null; }

# Writes what models of Paddle have to give, where that is missing or old.
write_paddle_models() {
    are_newer tests/paddle "$TARGET/paddle-models/models.jsonl" || return 0
    say 'what models have to give, of Paddle'
    scripts/export-paddle-models
}

# Whether a C compiler is there together with the headers of the C library.
can_compile() { printf '#include <stdio.h>\n' | "$1" -x "$2" -fsyntax-only - 2>/dev/null; }

# Whether something that the scripts need is installed. Each name is that of a Debian package.
installed() {
    case $1 in
    gcc) can_compile gcc c && command -v cc >/dev/null ;;
    g++) can_compile g++ c++ ;;
    clang) can_compile clang c && can_compile clang++ c++ ;;
    pocl-opencl-icd) compgen -G '/etc/OpenCL/vendors/*.icd' >/dev/null ;;
    libopenblas0-pthread) ldconfig -p | grep -q 'libopenblas\.so\.0' ;;
    binutils) command -v objcopy >/dev/null && command -v strip >/dev/null ;;
    qemu-user) command -v qemu-x86_64 >/dev/null ;;
    libgomp1) ldconfig -p | grep -q 'libgomp\.so\.1' ;;
    ocl-icd-libopencl1) ldconfig -p | grep -q 'libOpenCL\.so\.1' ;;
    chromium-driver) command -v chromedriver >/dev/null ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# Installs the named Debian packages that are missing, or says how to.
need() {
    command -v cargo >/dev/null || stop 'expected `cargo` on the PATH, found none; install Rust 1.89 or newer'
    local package missing=()
    for package in "$@"; do
        installed "$package" && continue
        missing+=("$package")
        # The compilers' packages only recommend the one with the headers of the C library.
        case $package in gcc | clang) missing+=(libc6-dev) ;; esac
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        stop "missing: ${missing[*]}; on Debian, run \`sudo apt-get install ${missing[*]}\`, then this script again"
    fi
    say "installing ${missing[*]}"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null
}
