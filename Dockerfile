# What builds and tests the sources: all tools they need, and none of the sources.
#
#     docker build -t oarlock:dev .
#     docker run --rm -v "$PWD":/oarlock oarlock:dev
#
# The second line tests the sources, packs them, and leaves the packages in build/. `docker run --rm oarlock:dev --help` says what
# else it does, and the book's page "Images" how this image differs from those of a release.
#
# `OARLOCK_WRITE=1 cargo test -p oarlock-pack` writes this file: of the image `dev` in packaging/images.toml, by
# docker/Dockerfile.dev.tera.
FROM debian:trixie-slim

# Of trixie-backports nothing is taken but what is built of `rustc`.
RUN awk 'NF == 0 { exit } /^Suites:/ { $0 = "Suites: trixie-backports" } 1' /etc/apt/sources.list.d/debian.sources \
        >/etc/apt/sources.list.d/trixie-backports.sources && \
    printf '%s\n' 'Package: *' 'Pin: release n=trixie-backports' 'Pin-Priority: -1' '' \
        'Package: src:rustc' 'Pin: release n=trixie-backports' 'Pin-Priority: 990' >/etc/apt/preferences.d/trixie-backports

# A server's own keys are made when it first starts, so that no two containers have the same.
RUN apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
        # dev-system: all that every Debian has, and apt, which adds to it
        apt base-files base-passwd bash bsdutils ca-certificates coreutils dash debconf debianutils diffutils dpkg findutils grep gzip hostname init-system-helpers libc-bin mawk ncurses-base ncurses-bin perl-base sed sysvinit-utils tar util-linux \
        # dev-compilers: compilers for C and C++; LLVM is that of pocl
        binutils clang-18 g++ gcc libc6-dev make pkg-config \
        # dev-rust: Rust, what looks over its sources, and its pages, among which are all sources
        cargo rust-clippy rustc rustfmt \
        # dev-python: Python, with what modules in C are compiled with
        python3 python3-dev python3-pip python3-venv \
        # dev-tools: what the scripts of the sources call, and what their tests compare with
        busybox git gpgv libgomp1 libopenblas0-pthread mdbook ocl-icd-libopencl1 openssl pocl-opencl-icd shellcheck xz-utils \
        # dev-entry: a way in by ssh, and the program that builds the sources
        openssh-server systemd-standalone-sysusers tini \
    && rm -rf /var/lib/apt/lists/* /etc/ssh/ssh_host_*

# The names by which programs are called, where scripts of packages have not made them, and whom the sources will belong to.
RUN cd /usr/bin && for link in awk=mawk which=which.debianutils c++=g++ cc=gcc clang=clang-18 clang++=clang++-18 ; do \
        [ -e "${link%=*}" ] || ln --symbolic "${link#*=}" "${link%=*}"; \
    done && \
    useradd --uid 10001 --user-group --create-home --home-dir /home/oarlock --shell /bin/sh oarlock

COPY docker/dev.sh /usr/bin/oarlock-dev

# TEST: where nobody says otherwise, the sources are tested too.
ENV AVX="ON" \
    GPU="OFF" \
    LANG="C.UTF-8" \
    PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin" \
    SSL_CERT_FILE="/etc/ssl/certs/ca-certificates.crt" \
    TEST="ON"

# Becomes whom the sources belong to.
USER 0:0
WORKDIR /oarlock
ENTRYPOINT ["/usr/bin/oarlock-dev"]
