#!/bin/sh
# Builds the sources that are mounted at /oarlock, as their owner, and leaves the results in build/:
#
#     docker run --rm -v "$PWD":/oarlock oarlock:VERSION-dev                   builds them
#     docker run --rm -v "$PWD":/oarlock oarlock:VERSION-dev plan              shows what would be built, and how
#     docker run --rm -it -v "$PWD":/oarlock oarlock:VERSION-dev bash          runs a shell, or any other command
#     docker run -d -p 2222:22 -v "$PWD":/oarlock -e SSH_KEY="$(cat ~/.ssh/id_ed25519.pub)" oarlock:VERSION-dev sshd
#                                                       serves SSH for that key: `ssh -p 2222 oarlock@HOST`
#
# Settings are passed as -e NAME=VALUE; each variant of the image has its own defaults:
#
#     GPU=OFF          no device for GPUs; ON or cuda12, cuda13, opencl: that device
#     AVX=ON           a CPU device for processors with and without AVX; OFF: one without AVX instructions
#     TEST=OFF         no tests; ON: runs scripts/test before packing
#     MIRROR=http://…  a mirror for the Debian packages of the image
#     CARGO_HOME=/…    the cache of crates, such as another mounted directory; by default build/cargo
#     SOURCES=/…       the directory of the mounted sources; by default /oarlock
#
# Afterwards, `docker build -t oarlock -f build/Dockerfile .` makes an image of the results.

set -eu

# The sources, and the home directory of their owner.
tree=${SOURCES:-/oarlock}
home=/home/oarlock

say() { printf '==> %s\n' "$*"; }

stop() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

help() { sed -n '2,/^$/s/^# \{0,1\}//p' "$0"; }

# Validates the settings before any slow work.
settle() {
    : "${GPU:=OFF}" "${AVX:=ON}" "${TEST:=OFF}"
    case $GPU in
    OFF) device= ;;
    ON) device=cuda12 ;;
    cuda12 | cuda13 | opencl) device=$GPU ;;
    *) stop "expected GPU=OFF, ON, cuda12, cuda13 or opencl, found \`GPU=$GPU\`" ;;
    esac
    case $AVX in
    ON) noavx= ;;
    OFF) noavx=-noavx ;;
    *) stop "expected AVX=ON or OFF, found \`AVX=$AVX\`" ;;
    esac
    case $TEST in
    ON | OFF) ;;
    *) stop "expected TEST=ON or OFF, found \`TEST=$TEST\`" ;;
    esac
    case ${MIRROR:-http://} in
    http://*) ;;
    *) stop "expected MIRROR=http://… with a Debian mirror, found \`MIRROR=$MIRROR\`" ;;
    esac
    case $device$noavx in
    '') image=plain ;;
    -noavx) image=noavx ;;
    cuda13-noavx | opencl-noavx)
        stop "expected AVX=ON beside GPU=$GPU, of which there is no image without AVX; found \`AVX=OFF\`"
        ;;
    opencl) image=opencl ;;
    *) image=gpu-$device$noavx ;;
    esac
    packages="liboarlock1 liboarlock-dev oarlock oarlock-plugin-cpu$noavx python3-oarlock${device:+ oarlock-plugin-$device}"
    [ -f "$tree/packaging/images.toml" ] ||
        stop "expected the sources of Oarlock at $tree, found none; mount them with \`docker run -v \"\$PWD\":$tree …\` in their root"
    [ -w "$tree" ] || [ "$(stat -c %u "$tree")" != "$(id -u)" ] ||
        stop "expected $tree to be writable, for the directory \`build\`, found it read-only; mount it without \`:ro\`"
    [ -w "$tree" ] ||
        stop "expected $tree to belong to user $(id -u), found user $(stat -c %u "$tree"); omit --user, or pass that user"
    build=$tree/build
    export CARGO_HOME="${CARGO_HOME:-$build/cargo}" CARGO_TARGET_DIR="$build/target"
    printf '%s\n' "GPU=$GPU   ${device:-no} device for GPUs" "AVX=$AVX   the CPU device${noavx:+ without any instruction of AVX}" \
        "TEST=$TEST" "user      $(id -u):$(id -g), the owner of $tree" "crates    in $CARGO_HOME" \
        "packages  $packages" "image     $image" ${MIRROR:+"mirror    $MIRROR"}
}

build() {
    settle
    cd "$tree"
    mkdir -p "$build"
    say 'crates'
    cargo fetch --quiet --locked ||
        stop "expected the crates that Cargo.lock names in $CARGO_HOME or from the network; give the container a network," \
            "or crates that are there: \`-v ~/.cargo:/cargo -e CARGO_HOME=/cargo\`"
    if [ "$TEST" = ON ]; then
        say 'tests'
        scripts/test
    fi
    say 'packages'
    cargo build --quiet --release --locked --package oarlock-pack
    # Remove all results of an earlier build, even if this one fails.
    rm -rf "$build/debs" "$build/install" "$build/images" "$build/Dockerfile"
    # shellcheck disable=SC2086
    "$CARGO_TARGET_DIR/release/oarlock-pack" deb $packages --out "$build/debs"
    for package in "$build"/debs/*.deb; do
        case $package in *-dbgsym_*) ;; *) dpkg-deb --extract "$package" "$build/install" ;; esac
    done
    say 'image'
    "$CARGO_TARGET_DIR/release/oarlock-pack" image "$image" --debs "$build/debs" --out "$build/images" --dockerfile \
        ${MIRROR:+--mirror "$MIRROR"}
    # Paths of layers, relative to the root of the sources.
    for file in "$build"/images/*/Dockerfile; do
        directory=${file%/Dockerfile}
        sed -e "s|^ADD |&build/images/${directory##*/}/|" \
            -e 's|\(docker build .*\) \.$|\1 --file build/Dockerfile .|' "$file" >"$build/Dockerfile"
    done
    say "the packages are in build/debs, their contents in build/install, and build/Dockerfile makes an image:
    $(sed -n 's/^#  *\(docker build .*\)/\1/p' "$build/Dockerfile")"
}

# As root: gives the owner of the sources the name `oarlock` and a home directory.
name_owner() {
    owner=$(stat -c %u "$tree")
    group=$(stat -c %g "$tree")
    sed -i "s|^oarlock:.*|oarlock:*:$owner:$group:Oarlock:$home:/bin/bash|" /etc/passwd
    sed -i "s|^oarlock:.*|oarlock:*:$group:|" /etc/group
    chown -R "$owner:$group" "$home"
}

# As root: serves SSH for the owner of the key alone.
serve() {
    [ -n "${SSH_KEY:-}" ] || stop "expected a public key in SSH_KEY, found none;" \
        "\`-e SSH_KEY=\"\$(cat ~/.ssh/id_ed25519.pub)\"\` passes yours"
    printf '%s\n' "$SSH_KEY" | ssh-keygen -l -f - >/dev/null ||
        stop "expected a public key in SSH_KEY, such as the contents of \`~/.ssh/id_ed25519.pub\`, found something else"
    name_owner
    mkdir -p "$home/.ssh" /run/sshd
    printf '%s\n' "$SSH_KEY" >"$home/.ssh/authorized_keys"
    # SSH sessions get the environment of the container.
    env | grep '^[A-Za-z_][A-Za-z_0-9]*=' | grep -v -E '^(SSH_KEY|HOME|PWD|HOSTNAME)=' >"$home/.ssh/environment"
    chown -R "$owner:$group" "$home/.ssh"
    chmod 700 "$home/.ssh"
    chmod 600 "$home/.ssh/authorized_keys" "$home/.ssh/environment"
    # Creates what maintainer scripts would have created: the server's user, and host keys.
    systemd-sysusers
    ssh-keygen -A
    # The package's settings, without password logins.
    exec /usr/sbin/sshd -D -e -f /usr/share/openssh/sshd_config \
        -o PasswordAuthentication=no -o KbdInteractiveAuthentication=no -o UsePAM=no \
        -o PermitRootLogin=prohibit-password -o PermitUserEnvironment=yes -o AllowUsers=oarlock
}

# The first process of a container gets neither Ctrl-C nor `docker stop`, so tini is that process and passes them on.
[ $$ != 1 ] || exec tini -g -- "$0" "$@"

case ${1-} in
--help | -h)
    help
    exit
    ;;
sshd)
    [ "$(id -u)" = 0 ] || stop "expected to begin as root, which sshd needs, found user $(id -u); omit --user"
    serve
    ;;
esac

if [ "$(id -u)" = 0 ] && [ "$(stat -c %u "$tree")" != 0 ]; then
    name_owner
    # The container's groups, such as that of a GPU, except root's.
    groups=$(id -G | tr ' ' '\n' | grep -v '^0$' | paste -s -d , -)
    exec chroot --userspec="$owner:$group" --groups="$groups" --skip-chdir / env HOME="$home" USER=oarlock "$0" "$@"
fi
[ -w "${HOME:-/}" ] || HOME=$(mktemp -d)
export HOME

case ${1-} in
'') build ;;
plan) settle ;;
*) exec "$@" ;;
esac
