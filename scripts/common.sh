# shellcheck shell=bash
# Sourced by the other scripts: changes to the root of the tree and defines shared functions.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The target directory of cargo: relative to the root, or absolute if it is elsewhere.
TARGET=$(realpath --no-symlinks --canonicalize-missing "${CARGO_TARGET_DIR:-target}")
if [ -n "${CARGO_TARGET_DIR:-}" ]; then export CARGO_TARGET_DIR=$TARGET; fi
TARGET=${TARGET#"$PWD/"}
if [ -t 1 ]; then export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-always}; fi

# Prints the next step.
say() { printf '==> %s\n' "$*"; }

# Runs a named step and prints how long it took.
timed() {
    local name=$1 begin=$SECONDS
    shift
    say "$name"
    "$@"
    say "$name: $((SECONDS - begin)) s"
}

# Prints an error and exits.
stop() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# The version of the workspace.
version() { sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1; }

# Prints the comment at the top of a script, which is its help.
help_of() { sed -n '2,/^$/s/^# \{0,1\}//p' "$1"; }

# Whether a generator or its inputs are newer than its last output.
are_newer() { [ ! -e "$2" ] || [ -n "$(find "$1" -newer "$2" -name '*.[pt][yx]*')" ]; }

# Writes the expected results of ops if they are missing or stale.
write_operator_cases() {
    are_newer tests/operators "$TARGET/operator-cases/onnx.jsonl" || return 0
    say 'exporting the expected results of ops from onnx, NumPy and onnxruntime'
    scripts/export-operator-cases
}

# Whether Python is too new for Paddle's packages and for old versions of pip.
is_python_new() { python3 -c 'import sys; sys.exit(sys.version_info < (3, 13))' 2>/dev/null; }

# Writes the expected results of Paddle models if they are missing or stale.
write_paddle_models() {
    are_newer tests/paddle "$TARGET/paddle-models/models.jsonl" || return 0
    say 'exporting the expected results of models from Paddle'
    scripts/export-paddle-models
}

# Whether a C compiler and the headers of the C library are installed.
can_compile() { printf '#include <stdio.h>\n' | "$1" -x "$2" -fsyntax-only - 2>/dev/null; }

# Whether a Debian package that the scripts need, or an equivalent, is installed.
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

# Whether a directory, created if it is missing, is writable. Root can ignore file modes but not a read-only file system, so this
# creates a file.
can_write() {
    local probe
    mkdir -p "$1" 2>/dev/null && probe=$(mktemp "$1/.oarlock-XXXXXX" 2>/dev/null) && rm "$probe"
}

# Fails if cargo does not start or has no directory for crates.
need_cargo() {
    local said place=${CARGO_HOME:-${HOME:-}/.cargo}
    command -v cargo >/dev/null || stop 'expected `cargo` on the PATH, found none; install Rust 1.89 or newer'
    said=$(cargo --version 2>&1) ||
        stop "expected \`cargo --version\` to work, found: ${said%%$'\n'*}; if rustup is in another home directory, set RUSTUP_HOME"
    can_write "$place" ||
        stop "expected a directory for crates that can be written, found \`$place\`; \`export CARGO_HOME=DIRECTORY\` names another"
}

# The free memory in MB: of the machine, or of the container if that has less.
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

# Limits the parallel jobs of cargo to the free memory, unless CARGO_BUILD_JOBS is set: the largest crate needs some 2 GB.
fit_memory() {
    local free jobs
    [ -z "${CARGO_BUILD_JOBS:-}" ] || return 0
    free=$(free_memory)
    jobs=$((free / 2048))
    [ $jobs -lt "$(nproc)" ] || return 0
    export CARGO_BUILD_JOBS=$((jobs > 1 ? jobs : 1))
    say "$free MB of memory are free, so cargo runs $CARGO_BUILD_JOBS jobs at a time; set CARGO_BUILD_JOBS to override"
}

# The free disk space in GB where cargo builds.
free_disk() {
    mkdir -p "$TARGET"
    echo $(($(df --output=avail --block-size=1G "$TARGET" | tail -n 1)))
}

# Fails if fewer GB of disk are free than given, minus the size of a directory in the target.
need_disk() {
    local need=$1 free built=0
    free=$(free_disk)
    [ ! -d "$TARGET/$2" ] || built=$(du --summarize --block-size=1G "$TARGET/$2" | cut -f 1)
    need=$((need > built ? need - built : 0))
    [ "$free" -ge "$need" ] ||
        stop "expected $need GB of disk for \`$TARGET\`, found $free GB free; \`export CARGO_TARGET_DIR=DIRECTORY\` builds elsewhere"
}

# Python with virtual environments.
need_python() { python3 -c 'import ensurepip, venv' 2>/dev/null || need python3-venv; }

# Reports that pip could not install packages, and exits.
no_packages() {
    stop "expected $* from an index of Python packages, found none; without a network," \
        "\`export PIP_NO_INDEX=1 PIP_FIND_LINKS=DIRECTORY\` takes them from there"
}

# Makes a virtual environment with the packages that the arguments name to pip, unless it has them already.
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

# Makes a directory with onnxruntime and NumPy for Python 3.11 on 64-bit ARM, unless it is there.
write_aarch64_packages() {
    [ ! -e "$1/complete" ] || return 0
    need_python
    python3 -m pip install --quiet --disable-pip-version-check --target "$1" --no-deps --only-binary=:all: \
        --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 --python-version 3.11 --implementation cp \
        onnxruntime==1.31.1 numpy==2.4.6 || no_packages onnxruntime numpy
    touch "$1/complete"
}

# Installs the named Debian packages that are missing, or prints how to.
need() {
    need_cargo
    fit_memory
    local package missing=()
    for package in "$@"; do
        installed "$package" && continue
        missing+=("$package")
        # The compiler packages only recommend the headers of the C library.
        case $package in gcc | clang) missing+=(libc6-dev) ;; esac
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        stop "missing: ${missing[*]}; on Debian, run \`sudo apt-get install ${missing[*]}\`, then this script again"
    fi
    say "installing ${missing[*]}"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "${missing[@]}" >/dev/null; } ||
        stop "expected apt to install ${missing[*]}, found an error; see above"
}
