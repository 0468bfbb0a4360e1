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

# Does what its name says, and says how long it took.
timed() {
    local name=$1 begin=$SECONDS
    shift
    say "$name"
    "$@"
    say "$name: $((SECONDS - begin)) s"
}

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

# Whether files can be made in a directory, which is made where it is missing. Root may do what the modes of files forbid, but not
# what a file system forbids, so it is tried.
can_write() {
    local probe
    mkdir -p "$1" 2>/dev/null && probe=$(mktemp "$1/.oarlock-XXXXXX" 2>/dev/null) && rm "$probe"
}

# Fails where cargo does not start, or has no place for crates.
need_cargo() {
    local said place=${CARGO_HOME:-${HOME:-}/.cargo}
    command -v cargo >/dev/null || stop 'expected `cargo` on the PATH, found none; install Rust 1.89 or newer'
    said=$(cargo --version 2>&1) ||
        stop "expected \`cargo --version\` to work, found: ${said%%$'\n'*}; where rustup lies in another home, RUSTUP_HOME says which"
    can_write "$place" ||
        stop "expected a directory for crates that can be written, found \`$place\`; \`export CARGO_HOME=DIRECTORY\` names another"
}

# How many MB of memory are free: of the machine, and of the container where it has less.
free_memory() {
    local limit used free
    free=$(($(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo) / 1024))
    if limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null) && [ "$limit" != max ]; then
        used=$(sed -n 's/^anon //p' /sys/fs/cgroup/memory.stat)
        limit=$(((limit - used) / 1024 / 1024))
        free=$((limit < free ? limit : free))
    fi
    echo $free
}

# Has cargo do no more at once than memory is free for, unless CARGO_BUILD_JOBS says how much: the largest crate takes some 2 GB.
fit_memory() {
    local free jobs
    [ -z "${CARGO_BUILD_JOBS:-}" ] || return 0
    free=$(free_memory)
    jobs=$((free / 2048))
    [ $jobs -lt "$(nproc)" ] || return 0
    export CARGO_BUILD_JOBS=$((jobs > 1 ? jobs : 1))
    say "$free MB of memory are free, so cargo does $CARGO_BUILD_JOBS at a time; CARGO_BUILD_JOBS says otherwise"
}

# How many GB of disk are free where cargo builds.
free_disk() {
    mkdir -p "$TARGET"
    echo $(($(df --output=avail --block-size=1G "$TARGET" | tail -n 1)))
}

# Fails where less disk is free than the named number of GB, less what lies in a directory of the target already.
need_disk() {
    local need=$1 free built=0
    free=$(free_disk)
    [ ! -d "$TARGET/$2" ] || built=$(du --summarize --block-size=1G "$TARGET/$2" | cut -f 1)
    need=$((need > built ? need - built : 0))
    [ "$free" -ge "$need" ] ||
        stop "expected $need GB of disk for \`$TARGET\`, found $free GB free; \`export CARGO_TARGET_DIR=DIRECTORY\` builds elsewhere"
}

# Python that makes environments.
need_python() { python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv; }

# Fails where pip could not install what it was told.
no_packages() {
    stop "expected $* from an index of Python packages, found none; without a network," \
        "\`export PIP_NO_INDEX=1 PIP_FIND_LINKS=DIRECTORY\` takes them from there"
}

# Makes an environment of Python with what is to be installed there, as pip is told it, unless that is in it already.
python_environment() {
    local place=$1 file wanted
    shift
    wanted=$(printf '%s\n' "$@" && for file in "$@"; do [ ! -f "$file" ] || cat "$file"; done)
    [ "$(cat "$place/installed" 2>/dev/null)" != "$wanted" ] || [ ! -x "$place/bin/python" ] || return 0
    need_python
    "${PYTHON:-python3}" -m venv "$place"
    "$place/bin/pip" install --quiet --disable-pip-version-check "$@" || no_packages "$@"
    printf '%s\n' "$wanted" >"$place/installed"
}

# Installs the named Debian packages that are missing, or says how to.
need() {
    need_cargo
    fit_memory
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
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null; } ||
        stop "expected ${missing[*]} from apt, found no way to get them; see above"
}
