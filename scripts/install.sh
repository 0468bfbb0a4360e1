#!/bin/sh
# Installs Oarlock for the Python of this machine; see `--help`. It runs in any POSIX shell, and everything is in functions, so
# that an incomplete download does nothing. `packaging/tests/choice` compares its choices with those of `oarlock-pack select`; for
# this, OARLOCK_INSTALL_MACHINE describes another machine, and OARLOCK_INSTALL_ROOT is a directory with `proc`, `sys` and `etc`.
set -eu

# of packaging/matrix.toml {
host=https://oarlock.example/wheels
# Kind, value, Python tag, platform tag. Then for a core its requirement for pip, and its directory if the index lacks it; for others
# the extra, and whether it includes vendor libraries.
rows='
core any cp311-abi3 manylinux_2_28_x86_64 oarlock==0.1.0 -
core any cp314-cp314t manylinux_2_28_x86_64 oarlock==0.1.0 -
core noavx cp311-abi3 manylinux_2_28_x86_64 oarlock==0.1.0+noavx /noavx
core - cp311-abi3 manylinux_2_28_aarch64 oarlock==0.1.0 -
device cuda:12 py3-none manylinux_2_28_x86_64 cuda12 libraries
device cuda:13 py3-none manylinux_2_28_x86_64 cuda13 libraries
device opencl py3-none manylinux_2_28_x86_64 opencl -
blas openblas py3-none manylinux_2_28_x86_64 openblas -
blas mkl py3-none manylinux_2_28_x86_64 mkl libraries
'
# Planned wheels, and why they are missing.
planned='
device rocm the plugin is not in the tree yet
device xpu the plugin is not in the tree yet
device npu the plugin is not in the tree yet
device ipu the plugin is not in the tree yet
blas onednn the plugin is not in the tree yet
'
# Notes about cores: instructions, Python, text.
notes='
any cp314-cp314t tested by hand only, with CPython 3.14.7
'
# The lowest and the highest compute capability that each CUDA version supports.
capabilities='
12 5.0 12.1
13 7.5 -
'
# NVIDIA drivers, the newest first: the first version, and the CUDA version that it supports.
drivers='
580 13.0
525 12.0
450 11.0
'
# }

help() {
    cat <<'END'
Usage: install.sh [OPTION...]

Installs Oarlock for the Python of this machine: chooses the wheels that fit, prints why, installs them with uv if it is
there, otherwise with pip, and tests the result with `python -m oarlock doctor`.

  --dry-run      print the commands, and do nothing
  --python FILE  the Python to install for; by default the first on the PATH that a wheel fits
  --venv DIR     the virtual environment to install into, created if it does not exist; by default none, or
                 ~/.local/share/oarlock/venv if the system manages the Python
  --device NAME  the device to install for, such as cuda, opencl or cpu; by default the best one for the GPUs of this machine;
                 cuda12 or cuda13 also work without a driver, as when building an image, and are not tested then
  --blas NAME    the library for matrix products, such as openblas or mkl; by default Oarlock's own kernels
  --without-avx  only files without AVX instructions
  --local-libraries
                 without the packages of vendor libraries, such as NVRTC or MKL, for a machine that has them
  --index URL    the package index with the wheels; by default the one that this script comes from
  --help         print this text

Examples:
  sh install.sh                       install what is best for this machine
  sh install.sh --dry-run             show what that would be, and why
  sh install.sh --device cpu          install nothing for the GPU
  sh install.sh --venv ~/oarlock      install into a virtual environment
  curl -fsSL ADDRESS | sh -s -- --device opencl

Exit codes: 0 if Oarlock is installed and works, 1 if it could not be installed, 2 if an option is wrong, 3 if there is no
suitable Python, 4 if there is no wheel for this machine or the request, 5 if it is installed but the doctor found a problem.
END
}

# Prints an error and exits with a status.
stop() {
    code=$1
    shift
    printf 'error: %s\n' "$*" >&2
    exit "$code"
}

because() { printf '  %s\n' "$*" >&2; }

is_there() { command -v "$1" >/dev/null 2>&1; }

read_options() {
    dry_run=no wanted_python='' venv='' device='' blas='' without_avx=no local_libraries=no
    while [ $# -gt 0 ]; do
        case $1 in
        --*=*)
            option=${1%%=*} value=${1#*=}
            shift
            set -- "$option" "$value" "$@"
            ;;
        --dry-run) dry_run=yes && shift ;;
        --without-avx) without_avx=yes && shift ;;
        --local-libraries) local_libraries=yes && shift ;;
        --help | -h) help && exit ;;
        --python | --venv | --device | --blas | --index)
            [ -n "${2:-}" ] || stop 2 "expected a value after \`$1\`, found none; \`--help\` says which"
            case $1 in
            --python) wanted_python=$2 ;;
            --venv) venv=$2 ;;
            --device) device=$2 ;;
            --blas) blas=$2 ;;
            --index) host=${2%/} ;;
            esac
            shift 2
            ;;
        *) stop 2 "expected an option, found \`$1\`; \`--help\` lists them" ;;
        esac
    done
}

# Detects this machine. What cannot be detected counts as absent.
look_around() {
    root=${OARLOCK_INSTALL_ROOT:-}
    is_there uname || stop 1 'expected `uname`, which says what this machine is, found none; install coreutils or busybox'
    architecture=$(uname -m)
    # A 32-bit system may run on a 64-bit kernel, such as that of a Raspberry Pi.
    case $architecture-$(getconf LONG_BIT 2>/dev/null) in
    aarch64-32) architecture=armv8l ;;
    x86_64-32) architecture=i686 ;;
    esac
    libc=''
    case $(uname -s) in
    Linux) find_libc ;;
    Darwin) system=macos ;;
    *) system=$(uname -s) ;;
    esac
    avx=no
    if grep -qw avx "$root/proc/cpuinfo" 2>/dev/null; then avx=yes; fi
    find_gpus
    find_driver
    find_capabilities
    keep_own_rows
    uv=no
    if is_there uv; then uv=yes; fi
}

find_libc() {
    system=linux
    said=$(getconf GNU_LIBC_VERSION 2>/dev/null) || said=''
    case $said in "glibc "*) libc=${said#glibc } && return ;; esac
    said=$(ldd --version 2>&1) || true
    case $said in
    *musl*)
        system=musl
        libc=$(printf '%s\n' "$said" | sed -n 's/^Version \([0-9][0-9.]*\).*/\1/p')
        ;;
    *) libc=$(printf '%s\n' "$said" | sed -n '1s/.* \([0-9][0-9.]*\)$/\1/p') ;;
    esac
}

# The vendors of GPUs on the bus. Class 3 is a display controller, class 0x12 a processing accelerator.
find_gpus() {
    vendors=''
    for place in "$root"/sys/bus/pci/devices/*; do
        class=$(cat "$place/class" 2>/dev/null) || continue
        vendor=$(cat "$place/vendor" 2>/dev/null) || continue
        case $class-$vendor in
        0x03*-0x10de | 0x12*-0x10de) vendors="$vendors nvidia" ;;
        0x03*-0x1002 | 0x12*-0x1002) vendors="$vendors amd" ;;
        0x03*-0x8086 | 0x12*-0x8086) vendors="$vendors intel" ;;
        esac
    done
}

# Runs the tool of NVIDIA's driver, which hangs if the driver has crashed.
tool_of_nvidia() {
    if is_there timeout; then set -- timeout 20 nvidia-smi "$@"; else set -- nvidia-smi "$@"; fi
    "$@" 2>/dev/null </dev/null
}

# The newest CUDA that the NVIDIA driver supports: from its tool, or by the version of the driver.
find_driver() {
    cuda=''
    if is_there nvidia-smi; then
        cuda=$(tool_of_nvidia | sed -n 's/.*CUDA[A-Z ]* Version: *\([0-9][0-9.]*\).*/\1/p' | head -n 1)
    fi
    if [ -z "$cuda" ] && [ -r "$root/proc/driver/nvidia/version" ]; then
        driver=$(sed -n 's/^NVRM version:.* \([0-9][0-9][0-9]*\)\.[0-9].*/\1/p' "$root/proc/driver/nvidia/version")
        while read -r least runs; do
            if [ -z "$cuda" ] && [ -n "$least" ] && [ "${driver:-0}" -ge "$least" ]; then cuda=$runs; fi
        done <<END
$drivers
END
    fi
    # A container or a virtual machine may hide the bus.
    if [ -n "$cuda" ] && ! made_by nvidia; then vendors="$vendors nvidia"; fi
}

# The compute capabilities of the NVIDIA GPUs; old tools do not report them.
find_capabilities() {
    gpus=''
    is_there nvidia-smi || return 0
    said=$(tool_of_nvidia --query-gpu=compute_cap --format=csv,noheader) || return 0
    gpus=$(printf '%s\n' "$said" | sed -n 's/^ *\([0-9][0-9]*\.[0-9][0-9]*\) *$/\1/p' | tr '\n' ' ')
}

# Asks a Python for its version and properties.
ask() {
    said=$("$1" -I -c '
import os, struct, sys, sysconfig
yes = lambda it: "yes" if it else "no"
apart = sys.prefix != sys.base_prefix
managed = not apart and os.path.exists(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))
print("python", "%d.%d" % sys.version_info[:2], yes(sys.implementation.name == "cpython"), struct.calcsize("P") * 8,
      yes(sysconfig.get_config_var("Py_GIL_DISABLED")), yes(managed))
' 2>/dev/null </dev/null) || return 1
    case $said in "python "*) ;; *) return 1 ;; esac
    read -r _ version cpython bits free_threaded managed <<END
$said
END
}

# Finds the Python to install for. If none on the PATH fits, errors are about the first.
find_python() {
    python=$wanted_python
    if [ -z "$python" ] && [ -n "$venv" ] && [ -x "$venv/bin/python" ]; then python=$venv/bin/python; fi
    if [ -n "$python" ]; then
        ask "$python" || stop 3 "expected a Python as \`$python\`, found none; name one with \`--python FILE\`"
        return
    fi
    first=''
    before=$IFS
    IFS=:
    for directory in $PATH; do
        IFS=$before
        for candidate in "$directory/python3" "$directory"/python3.[0-9]*; do
            case ${candidate##*/python3} in .*[!0-9]*) continue ;; esac
            if [ -x "$candidate" ] && ask "$candidate"; then
                if has_core_for_python; then python=$candidate && return; fi
                first=${first:-$candidate}
            fi
        done
    done
    IFS=$before
    python=$first
    if [ -n "$python" ]; then ask "$python"; else version='' bits=64; fi
}

# Reads the machine that the tests describe.
take_described() {
    system=linux architecture='' libc='' version='' cpython=yes bits=64 free_threaded=no avx=no vendors='' cuda='' gpus=''
    root=/nowhere uv=no managed=no python=python
    for word in $OARLOCK_INSTALL_MACHINE; do
        value=${word#*=}
        case $word in
        system=*) system=$value ;;
        architecture=*) architecture=$value ;;
        libc=*) libc=$value ;;
        python=*) version=$value ;;
        cpython=*) cpython=$value ;;
        bits=*) bits=$value ;;
        free_threaded=*) free_threaded=$value ;;
        avx=*) avx=$value ;;
        gpu=*:*) vendors="$vendors ${value%%:*}" gpus="$gpus ${value#*:}" ;;
        gpu=*) vendors="$vendors $value" ;;
        cuda=*) cuda=$value ;;
        *) stop 2 "expected a property in OARLOCK_INSTALL_MACHINE, found \`$word\`" ;;
        esac
    done
    keep_own_rows
}

# Forgets the wheels for other architectures, if there is a core for this one.
keep_own_rows() {
    own_rows=''
    while read -r row; do
        case $row in *"_$architecture "*) own_rows="$own_rows$row
" ;; esac
    done <<END
$rows
END
    case $own_rows in core*) rows=$own_rows ;; esac
}

is_32_bit_system() { case $architecture in armv* | i?86) return 0 ;; *) return 1 ;; esac; }

made_by() { case " $vendors " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

# Whether a version such as 12.4 is at least another.
reaches() {
    major=${1%%.*} minor=0 least_major=${2%%.*} least_minor=0
    case $1 in *.*) minor=${1#*.} && minor=${minor%%.*} ;; esac
    case $2 in *.*) least_minor=${2#*.} && least_minor=${least_minor%%.*} ;; esac
    [ "$major" -gt "$least_major" ] || { [ "$major" -eq "$least_major" ] && [ "$minor" -ge "$least_minor" ]; }
}

# Whether programs with a platform tag run here.
runs() {
    case $1 in
    any) return 0 ;;
    manylinux_*) family=linux ;;
    musllinux_*) family=musl ;;
    *) return 1 ;;
    esac
    rest=${1#*_}
    release=${rest%%_*} rest=${rest#*_}
    release=$release.${rest%%_*}
    [ "$system-$bits-$architecture" = "$family-64-${rest#*_}" ] && [ -n "$libc" ] && reaches "$libc" "$release"
}

# Whether the Python can load modules with an interpreter and ABI tag.
loads() {
    interpreter=${1%%-*} own=cp${version%%.*}${version#*.}
    case ${1#*-} in
    none) [ "$interpreter" = "py${version%%.*}" ] || { [ "$cpython" = yes ] && [ "$interpreter" = "$own" ]; } ;;
    abi3) [ "$cpython-$free_threaded-${version%%.*}" = yes-no-3 ] && [ "${version#*.}" -ge "${interpreter#cp3}" ] ;;
    "${own}t") [ "$cpython-$free_threaded-$interpreter" = "yes-yes-$own" ] ;;
    "$own") [ "$cpython-$free_threaded-$interpreter" = "yes-no-$own" ] ;;
    *) return 1 ;;
    esac
}

# Whether the processor has the instructions in a file, and the user permits them.
has_instructions() {
    case $1 in
    avx) [ "$avx-$without_avx" = yes-no ] ;;
    noavx) [ "$avx" = no ] || [ "$without_avx" = yes ] ;;
    -) ;; # No wheel for ARM has AVX instructions.
    *) [ "$without_avx" = no ] ;;
    esac
}

# Finds the first row of a kind with a value that fits; further arguments name the properties to check.
choose() {
    while read -r kind value tag platform asked more; do
        [ "$kind" = "$1" ] || continue
        case $kind in core) has_instructions "$value" || continue ;; *) [ "$value" = "$2" ] || continue ;; esac
        case " $* " in *' any-platform '*) ;; *) runs "$platform" || continue ;; esac
        case " $* " in *' any-python '*) ;; *) loads "$tag" || continue ;; esac
        return 0
    done <<END
$rows
END
    return 1
}

has_core_for_python() { choose core core any-platform; }

# The distinct values of a kind; devices without the version of their driver.
all_of() {
    found=''
    while read -r kind value rest; do
        value=${value%%:*}
        if [ "$kind" = "$1" ]; then case ", $found, " in *", $value, "*) ;; *) found="${found:+$found, }$value" ;; esac; fi
    done <<END
$rows
END
    printf %s "$found"
}

all_devices() {
    others=$(all_of device)
    printf %s "cpu${others:+, $others}"
}

has_device() { case ", $(all_devices), " in *", $1, "*) return 0 ;; *) return 1 ;; esac; }

# Fails because there is no wheel for the request; the rest lists what is available.
stop_without() {
    while read -r kind value why; do
        if [ "$kind-$value" = "$1-$2" ]; then stop 4 "$3, found \`$2\`, which is planned: $why"; fi
    done <<END
$planned
END
    stop 4 "$3, found \`$2\`"
}

# Chooses the device to install for; `accelerator` is the version of its driver.
choose_device() {
    accelerator=''
    chosen=$device
    while read -r kind value rest; do
        if [ "$kind-${value%%:*}${value#*:}" = "device-$device" ]; then
            because "$device, as requested"
            chosen=${value%%:*} accelerator=${value#*:}
            warn_of_cuda
            return
        fi
    done <<END
$rows
END
    if [ -n "$device" ]; then
        has_device "$device" ||
            stop_without device "$device" "expected a device that there are wheels for on $architecture ($(all_devices))"
        because "$device, as requested"
    elif made_by nvidia && has_device cuda; then
        chosen=cuda
        because 'there is an NVIDIA GPU'
    elif made_by amd && has_device rocm; then
        chosen=rocm
        because 'there is an AMD GPU'
    else
        chosen=cpu
        if [ -z "$vendors" ]; then
            because 'there is no GPU'
        elif has_device opencl; then
            because 'there is no wheel for these GPUs yet; `--device opencl` uses a GPU with an OpenCL driver'
        else
            because 'there is nothing to install for these GPUs yet'
        fi
    fi
    if [ "$chosen" = cuda ]; then choose_cuda; fi
}

# The number of GPUs that a CUDA version supports. A GPU of unknown capability counts.
count_served() {
    served=0 lowest=0 highest=-
    while read -r each from to; do
        if [ "$each" = "$1" ]; then lowest=$from highest=$to; fi
    done <<END
$capabilities
END
    for gpu in $gpus; do
        if reaches "$gpu" "$lowest" && { [ "$highest" = - ] || reaches "$highest" "$gpu"; }; then served=$((served + 1)); fi
    done
}

# The lowest compute capability that any CUDA version supports.
lowest_of_all() {
    least=''
    while read -r each from to; do
        if [ -n "$from" ] && { [ -z "$least" ] || reaches "$least" "$from"; }; then least=$from; fi
    done <<END
$capabilities
END
    printf %s "$least"
}

# Finds the newest CUDA that the driver supports, among those for the most GPUs, as `best`, or sets `problem`.
find_cuda() {
    best='' known='' newest='' most=0 problem=''
    while read -r kind value rest; do
        case $kind-$value in device-cuda:*) ;; *) continue ;; esac
        number=${value#*:}
        if [ -n "$cuda" ] && reaches "$cuda" "$number" && { [ -z "$newest" ] || reaches "$number" "$newest"; }; then newest=$number; fi
        count_served "$number"
        if [ -n "$gpus" ] && [ "$served" = 0 ]; then continue; fi
        case ", $known, " in *", $number, "*) ;; *) known="${known:+$known, }$number" ;; esac
        if [ -z "$cuda" ] || ! reaches "$cuda" "$number" || [ "$served" -lt "$most" ]; then continue; fi
        if [ -z "$best" ] || [ "$served" -gt "$most" ] || reaches "$number" "$best"; then best=$number most=$served; fi
    done <<END
$rows
END
    count=0 in_words=''
    for gpu in $gpus; do count=$((count + 1)) in_words="${in_words:+$in_words, }$gpu"; done
    if [ -z "$cuda" ]; then
        problem='expected an NVIDIA driver, found none'
    elif [ -z "$known" ]; then
        problem="expected a GPU of compute capability $(lowest_of_all) or higher, found $in_words"
    elif [ -z "$best" ]; then
        problem="expected a driver for CUDA $known, found one for $cuda; install a newer one"
    fi
}

# Chooses the CUDA to install for. If CUDA was not requested, a problem is no error.
choose_cuda() {
    find_cuda
    accelerator=$best
    if [ -n "$problem" ]; then
        [ -z "$device" ] || stop 4 "$problem"
        because "only the CPU is used: $problem"
        chosen=cpu
        return
    fi
    because "the driver supports CUDA up to $cuda"
    if [ "$most" -lt "$count" ]; then
        because "CUDA $best serves $most of $count GPUs, whose compute capabilities are $in_words; none serves more"
    elif [ "$best" != "$newest" ]; then
        because "CUDA $best is the newest that serves compute capability $in_words"
    fi
}

# Reports why a requested CUDA version does not work, and which would.
warn_of_cuda() {
    find_cuda
    count_served "$accelerator"
    if [ -z "$cuda" ]; then
        because 'no driver is here, so the device cannot be tried'
        return
    elif ! reaches "$cuda" "$accelerator"; then
        wrong="the driver supports CUDA up to $cuda, so CUDA $accelerator does not work here"
    elif [ "$served" -lt "$count" ]; then
        wrong="CUDA $accelerator serves $served of $count GPUs, whose compute capabilities are $in_words"
    else
        return 0
    fi
    if [ "$best" = "$accelerator" ]; then
        because "$wrong; none serves more"
    elif [ -n "$best" ]; then
        because "$wrong; \`--device cuda$best\` fits best"
    else
        because "$wrong; $problem"
    fi
}

# Prints the note about the chosen core.
warn_of_core() {
    while read -r instructions python_tag note; do
        if [ "$instructions $python_tag" = "$core_kind" ]; then because "the wheel for this Python is $note"; fi
    done <<END
$notes
END
}

# Fails because there is no core for this machine.
stop_without_core() {
    case $system in
    linux) here='Linux with glibc' ;;
    musl) here='Linux with musl' ;;
    *) here=$system ;;
    esac
    here="$here${libc:+ $libc} on $architecture"
    if [ -n "$version" ] && [ "$bits" != 64 ] && ! is_32_bit_system; then
        stop 3 "expected a Python of 64 bits, found one of $bits as \`$python\`; install another, and name it with \`--python FILE\`"
    fi
    if ! choose core core any-python; then
        platforms=''
        while read -r kind value tag platform rest; do
            if [ "$kind" = core ]; then case ", $platforms, " in *", $platform, "*) ;; *) platforms="${platforms:+$platforms, }$platform" ;; esac; fi
        done <<END
$rows
END
        case $system-$platforms, in
        musl-*) advice='use a distribution with glibc, such as Debian in a container' ;;
        linux-*"_$architecture,"*) advice='use a newer distribution, or build Oarlock from its source tree' ;;
        linux-*) advice="there are no wheels for $architecture yet, so build Oarlock from its source tree" ;;
        *) advice='use Linux, such as in a container or a virtual machine' ;;
        esac
        if is_32_bit_system; then advice='Oarlock needs a 64-bit system; install one, if the processor can run it'; fi
        stop 4 "expected a machine that there is a wheel for ($platforms), found $here; $advice"
    fi
    [ -n "$version" ] || stop 3 "expected a Python to install for, found none; $(advice_without_python)"
    if [ "$without_avx" = yes ] && without_avx=no && has_core_for_python; then
        stop 4 "expected a wheel without AVX for Python $version, found none; leave \`--without-avx\` out, or use another Python"
    fi
    found="CPython $version"
    [ "$cpython" = yes ] || found="another Python than CPython, of version $version,"
    [ "$free_threaded" = no ] || found="$found without a lock around the interpreter"
    stop 3 "expected $(all_pythons), found $found as \`$python\`; install one beside it, and name it with \`--python FILE\`"
}

# Describes the Pythons that have wheels.
all_pythons() {
    found=''
    while read -r kind value tag rest; do
        [ "$kind" = core ] || continue
        number=${tag%%-*} number=${number#cp}
        number=${number%"${number#?}"}.${number#?}
        case $tag in
        *-abi3) words="CPython $number or newer" ;;
        *t) words="CPython $number without a lock around the interpreter" ;;
        *) words="CPython $number" ;;
        esac
        case "$found" in *"$words"*) ;; *) found="${found:+$found, or }$words" ;; esac
    done <<END
$rows
END
    printf %s "$found"
}

# How to install Python on this distribution.
advice_without_python() {
    kinds=$(sed -n 's/^ID\(_LIKE\)\{0,1\}=//p' "$root/etc/os-release" 2>/dev/null | tr '"\n' '  ') || kinds=''
    case " $kinds " in
    *' debian '*) printf %s 'run `sudo apt-get install python3 python3-venv`, then this again' ;;
    *' fedora '* | *' rhel '*) printf %s 'run `sudo dnf install python3`, then this again' ;;
    *suse*) printf %s 'run `sudo zypper install python3`, then this again' ;;
    *' arch '*) printf %s 'run `sudo pacman -S python`, then this again' ;;
    *) printf %s "install $(all_pythons), then run this again" ;;
    esac
}

# Quotes a word for the shell.
quoted() {
    case $1 in
    *[!A-Za-z0-9_./:=+@%-]* | '') printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")" ;;
    *) printf %s "$1" ;;
    esac
}

# Prints a command and runs it, except in a dry run. Its input is not the rest of this script.
do_it() {
    line=''
    for word in "$@"; do line="${line:+$line }$(quoted "$word")"; done
    if [ "$dry_run" = yes ]; then
        printf '%s\n' "$line"
    else
        printf '==> %s\n' "$line" >&2
        "$@" </dev/null
    fi
}

# Makes the virtual environment, if there is to be one, and installs for its Python.
enter_environment() {
    if [ -z "$venv" ] && [ "$managed" = yes ]; then
        place=${XDG_DATA_HOME:-${HOME:+$HOME/.local/share}}
        [ -n "$place" ] ||
            stop 1 "expected HOME to say where a virtual environment goes, since \`$python\` belongs to the system, found none; name one with \`--venv DIR\`"
        venv=$place/oarlock/venv
        because "\`$python\` belongs to the system, so Oarlock goes into a virtual environment"
    fi
    [ -n "$venv" ] || return 0
    if [ ! -x "$venv/bin/python" ]; then
        if [ "$uv" = yes ]; then
            do_it uv venv --quiet --python "$python" "$venv" || stop 1 "uv made no virtual environment in \`$venv\`"
        elif [ "$dry_run" = no ] && ! "$python" -c 'import ensurepip' >/dev/null 2>&1 </dev/null; then
            stop 3 "expected a Python that makes virtual environments, found \`$python\` without \`ensurepip\`; $(advice_without_python)"
        else
            do_it "$python" -m venv "$venv" || stop 1 "\`$python\` made no virtual environment in \`$venv\`"
        fi
    fi
    if [ -x "$venv/bin/python" ]; then
        its=$("$venv/bin/python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null </dev/null) || its=$version
        [ "$its" = "$version" ] ||
            stop 3 "expected an environment of Python $version as \`$venv\`, found one of $its; name another directory, or leave \`--python\` out"
    fi
    python=$venv/bin/python
}

# Adds the chosen wheel to the core, and the vendor's libraries if pip has them.
add() {
    if [ "$more-$local_libraries" = libraries-yes ]; then asked=$asked-local; fi
    if [ "$more-$local_libraries" = libraries-no ]; then brings_libraries=yes; fi
    extras=${extras:+$extras,}$asked
}

main() {
    read_options "$@"
    if [ -n "${OARLOCK_INSTALL_MACHINE+is set}" ]; then
        take_described
    else
        look_around
        find_python
    fi
    # Without a Python, continue with any, to report what else is missing.
    if [ -z "$version" ] || ! choose core core; then stop_without_core; fi
    core=$asked core_directory=$more core_kind="$value $tag" extras='' brings_libraries=no
    choose_device
    warn_of_core
    if [ "$chosen" != cpu ]; then
        choose device "$chosen${accelerator:+:$accelerator}" || stop 4 "expected a wheel for $chosen that runs here, found none"
        add
    fi
    if [ -n "$blas" ]; then
        known=$(all_of blas)
        choose blas "$blas" ||
            stop_without blas "$blas" "expected a library that there are wheels for on $architecture (${known:-none})"
        add
        because "$blas computes matrix products, as requested"
    fi
    set -- "${core%%==*}${extras:+[$extras]}==${core#*==}"
    if [ "$brings_libraries" = no ]; then
        set -- "$@" --index-url "$host/simple/"
    else
        because "the vendor's libraries come from PyPI; \`--local-libraries\` uses those of the machine"
        # In addition to the default index; uv takes packages of our index from there only.
        if [ "$uv" = yes ]; then set -- "$@" --index "$host/simple/"; else set -- "$@" --extra-index-url "$host/simple/"; fi
    fi
    if [ "$core_directory" != - ]; then
        because 'the file has no AVX instructions, as requested'
        set -- "$@" --find-links "$host$core_directory/"
    fi
    enter_environment
    # To installers, another flavor such as 0.1.0+noavx satisfies 0.1.0, and would stay.
    there=$("$python" -c 'import importlib.metadata as it; print(it.version("oarlock"))' 2>/dev/null </dev/null) || there=''
    case $there in
    "${core#*==}+"*)
        because "\`$there\` is installed, and makes room for another flavor"
        if [ "$uv" = yes ]; then
            set -- --reinstall-package oarlock "$@"
        else
            do_it "$python" -m pip install --force-reinstall --no-deps "$@" || stop 1 'Oarlock is not installed; see the messages above'
        fi
        ;;
    esac
    if [ "$uv" = yes ]; then
        set -- uv pip install --python "$python" "$@"
    else
        set -- "$python" -m pip install "$@"
    fi
    do_it "$@" || stop 1 'Oarlock is not installed; what is above says why'
    # The doctor would fail because the plugin has no driver; the check only uses devices that work.
    if [ -n "$accelerator" ] && [ -z "$cuda" ]; then set -- -c 'import oarlock; oarlock.run_check()'; else set -- -m oarlock doctor; fi
    do_it "$python" "$@" || stop 5 'Oarlock is installed, but there is a problem; see the messages above'
    if [ "$dry_run" = no ] && [ -n "$venv" ]; then because "\`. $(quoted "$venv/bin/activate")\` activates the environment with Oarlock"; fi
}

main "$@"
