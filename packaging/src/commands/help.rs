//! Examples in the help of each command. A test parses each of them as the command would.

pub(super) const EXAMPLES: &str = "\
Examples:
  oarlock-pack matrix                          # every wheel
  oarlock-pack matrix --ci                     # the jobs of a CI system
  oarlock-pack matrix --era 2.2.1 --paths      # the files that PaddlePaddle 2.2.1 published
  oarlock-pack pages --era 2.3.2 --out dist    # its pages for `pip install --find-links`
  oarlock-pack select                          # what to install on this machine
  oarlock-pack build --row OpenCL              # a wheel of the matrix
  oarlock-pack options -D WITH_GPU=OFF         # the wheels that a build option of PaddlePaddle stands for
  oarlock-pack index                           # an index of wheels, for pip and uv
  oarlock-pack serve dist/index                # the same over HTTP
  oarlock-pack deb                             # packages for Debian
  oarlock-pack apt-repo dist/deb --key my.key  # a signed apt repository of them
  oarlock-pack image slim                      # a container image of the packages in dist/deb
  oarlock-pack release --key my.key --dry-run --rehearsal   # what would be released";

pub(super) const SDK: &str = "\
Examples:
  oarlock-pack sdk
  oarlock-pack sdk --out dist/wheels

The wheel has the headers of the contract, the sources of the crate `oarlock-sdk`, a configuration for CMake, and plugins to start \
from. `python -m oarlock_sdk --include` and its siblings say where each is.";

pub(super) const APP: &str = "\
Examples:
  oarlock-pack app train.py                                # an image and a job for a Python program
  oarlock-pack app --build train.py                        # also builds the image
  oarlock-pack app --gpus 1 --requirements need.txt fit.py # with a GPU and some modules
  oarlock-pack app --hosts 4 --gpus 8 fit.py --epochs 3    # on four hosts
  oarlock-pack app --name bench oarlock bench model.onnx   # runs a command of the image";

pub(super) const APT_KEY: &str = "\
Examples:
  oarlock-pack apt-key new --out archive.key
  oarlock-pack apt-key new --out next.key --owner 'Packages of Acme'

Keep the file where nobody else can read it, and a copy in a safe place: if you lose the key, the repository \
needs a new one, and everyone who installs from it has to replace the old one.";

pub(super) const APT_REPO: &str = "\
Examples:
  oarlock-pack apt-repo dist/deb --key archive.key --host https://example.org/apt
  oarlock-pack apt-repo dist/deb other.deb --key old.key --key next.key   # both sign, for a while
  oarlock-pack serve dist/apt --port 8765                                 # serves it to apt";

pub(super) const BUILD: &str = "\
Examples:
  oarlock-pack build --row core --row OpenCL   # two wheels of the matrix
  oarlock-pack build --dry-run                 # what building everything would take
  oarlock-pack build -D WITH_GPU=OFF -D WITH_AVX=ON
  oarlock-pack check dist/*.whl                # compares them with the matrix";

pub(super) const CHECK: &str = "\
Examples:
  oarlock-pack check dist/*.whl
  oarlock-pack check --json dist/*.whl | jq .";

pub(super) const COMPLETIONS: &str = "\
Examples:
  oarlock-pack completions bash > ~/.local/share/bash-completion/completions/oarlock-pack
  oarlock-pack completions zsh > ~/.zfunc/_oarlock-pack
  oarlock-pack completions fish > ~/.config/fish/completions/oarlock-pack.fish";

pub(super) const DEB: &str = "\
Examples:
  oarlock-pack deb                                    # all packages, in dist/deb
  oarlock-pack deb liboarlock1 oarlock                # two of them
  oarlock-pack deb --architecture arm64               # all for 64-bit ARM
  oarlock-pack deb --dry-run                          # what would be compiled
  oarlock-pack deb --key archive.key oarlock-archive-keyring";

pub(super) const IMAGE: &str = "\
Examples:
  oarlock-pack image --list                   # the images, and what each still needs
  oarlock-pack image                          # every image whose packages are in dist/deb
  oarlock-pack image slim --engine            # also loads it into Docker or podman
  oarlock-pack image plain --dockerfile       # also writes a Dockerfile for the same image
  oarlock-pack image --architecture arm64     # those for 64-bit ARM alone
  oarlock-pack image lock                     # updates the locks of Debian packages";

pub(super) const INDEX: &str = "\
Examples:
  oarlock-pack index                          # writes dist/index from the wheels in dist
  oarlock-pack index --complete --host https://example.org/oarlock
  oarlock-pack serve dist/index               # serves it to pip and uv";

pub(super) const INSPECT: &str = "\
Examples:
  oarlock-pack inspect liboarlock.so.1
  oarlock-pack inspect --without-avx liboarlock_cpu.so   # fails if an instruction needs AVX
  oarlock-pack inspect --vectorized 40 liboarlock_cpu.so # fails if kernels are not vectorized";

pub(super) const MATRIX: &str = "\
Examples:
  oarlock-pack matrix
  oarlock-pack matrix --channel release --paths
  oarlock-pack matrix --ci > matrix.json";

pub(super) const OPTIONS: &str = "\
Examples:
  oarlock-pack options                        # every option, and what it does
  oarlock-pack options -D WITH_GPU=OFF -D WITH_AVX=OFF";

pub(super) const PAGES: &str = "\
Examples:
  oarlock-pack pages
  oarlock-pack pages --era 2.3.2 --host https://example.org/wheels --out dist";

pub(super) const RELEASE: &str = "\
Examples:
  oarlock-pack release --key release.key --host https://example.org/1  # everything
  oarlock-pack release --key release.key --rehearsal --dry-run         # what would be built
  oarlock-pack release --key release.key --rehearsal --quick           # a trial run, packed quickly
  oarlock-pack release --key release.key --rehearsal --row core --row OpenCL --image plain

Compiled files are kept, so an interrupted release resumes where it stopped.";

pub(super) const REPACK: &str = "\
Examples:
  oarlock-pack repack dist/*.whl --out smaller";

pub(super) const SELECT: &str = "\
Examples:
  oarlock-pack select                         # what to install on this machine, and why
  oarlock-pack select --device cuda12         # regardless of the driver
  oarlock-pack select --json | jq -r '.requirements[]'";

pub(super) const SERVE: &str = "\
Examples:
  oarlock-pack serve                          # dist/index, to this machine only
  oarlock-pack serve dist/apt --port 8765     # a repository for apt
  oarlock-pack serve --address 0.0.0.0 --log  # to the network, with a log of requests";

pub(super) const VENDOR: &str = "\
Examples:
  oarlock-pack vendor --row core --row OpenCL   # only what these two need
  oarlock-pack vendor --dry-run                 # how much it would download

The tree can then move to a machine without a network, and builds a release there.";

pub(super) const VERIFY: &str = "\
Examples:
  oarlock-pack verify                         # everything in dist
  oarlock-pack verify wheels debs images      # only these
  oarlock-pack verify --json | jq .";

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use crate::commands::PackArguments;

    /// Splits a line as a shell does: it drops comments and keeps quoted words together.
    fn split_words(line: &str) -> Vec<String> {
        let line = line.split(" #").next().unwrap_or_default().split(" | ").next().unwrap_or_default();
        let line = line.split(" > ").next().unwrap_or_default();
        let mut words = Vec::new();
        for (index, part) in line.split('\'').enumerate() {
            match index % 2 {
                0 => words.extend(part.split_whitespace().map(str::to_owned)),
                _ => words.push(part.to_owned()),
            }
        }
        words
    }

    #[test]
    fn every_command_has_examples_that_it_understands() {
        for command in PackArguments::command().get_subcommands() {
            let name = command.get_name();
            let help = command.get_after_help().unwrap_or_else(|| panic!("no example of {name}")).to_string();
            let examples: Vec<&str> =
                help.lines().filter(|line| line.starts_with("  oarlock-pack ")).collect();
            assert!(examples.iter().any(|line| split_words(line)[1] == name), "no example of {name}: {help}");
            for line in examples {
                assert!(line.len() <= 100, "wider than the help is: {line}");
                PackArguments::try_parse_from(split_words(line))
                    .unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }
}
