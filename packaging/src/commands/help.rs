//! Examples in the help of each command. A test parses each of them as the command would.

pub(super) const EXAMPLES: &str = "\
Examples:
  oarlock-pack matrix                          # what there is to install
  oarlock-pack matrix --ci                     # the jobs of a CI system
  oarlock-pack matrix --era 2.2.1 --paths      # what PaddlePaddle 2.2.1 published, a path a line
  oarlock-pack pages --era 2.3.2 --out dist    # the pages that `pip install --find-links` was given
  oarlock-pack select                          # what to install on this machine
  oarlock-pack build --row OpenCL              # a wheel of the matrix
  oarlock-pack options -D WITH_GPU=OFF         # which wheels that means
  oarlock-pack index                           # an index of wheels, for pip and uv
  oarlock-pack serve dist/index                # the same over HTTP
  oarlock-pack deb                             # packages for Debian
  oarlock-pack apt-repo dist/deb --key my.key  # a signed repository of them, for apt
  oarlock-pack image slim                      # an image for containers, of the packages in dist/deb
  oarlock-pack release --key my.key --dry-run --rehearsal   # what would be released";

pub(super) const APP: &str = "\
Examples:
  oarlock-pack app train.py                                # an image and a job of a Python program
  oarlock-pack app --build train.py                        # the same, and the image is built
  oarlock-pack app --gpus 1 --requirements need.txt fit.py # with a GPU and some modules
  oarlock-pack app --hosts 4 --gpus 8 fit.py --epochs 3    # on four hosts
  oarlock-pack app --name bench oarlock bench model.onnx   # a command of the image";

pub(super) const APT_KEY: &str = "\
Examples:
  oarlock-pack apt-key new --out archive.key
  oarlock-pack apt-key new --out next.key --owner 'Packages of Acme'

Keep the file where no other can read it, and a copy where a fire does not reach it: a repository whose key is \
lost gets another one, and who installs from it has to be told.";

pub(super) const APT_REPO: &str = "\
Examples:
  oarlock-pack apt-repo dist/deb --key archive.key --host https://example.org/apt
  oarlock-pack apt-repo dist/deb other.deb --key old.key --key next.key   # both sign, for a while
  oarlock-pack serve dist/apt --port 8765                                 # what apt then reads";

pub(super) const BUILD: &str = "\
Examples:
  oarlock-pack build --row core --row OpenCL   # two wheels of the matrix
  oarlock-pack build --dry-run                 # what all that can be built takes
  oarlock-pack build -D WITH_GPU=OFF -D WITH_AVX=ON
  oarlock-pack check dist/*.whl                # whether they are what the matrix says";

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
  oarlock-pack deb --dry-run                          # what is compiled for them
  oarlock-pack deb --key archive.key oarlock-archive-keyring";

pub(super) const IMAGE: &str = "\
Examples:
  oarlock-pack image --list                   # which there are, and what each lacks
  oarlock-pack image                          # all whose packages are in dist/deb
  oarlock-pack image slim --engine            # and given to Docker or podman
  oarlock-pack image plain --dockerfile       # and what `docker build` makes the same of
  oarlock-pack image lock                     # which packages of Debian they are made of, anew";

pub(super) const INDEX: &str = "\
Examples:
  oarlock-pack index                          # dist/index, of the wheels in dist
  oarlock-pack index --complete --host https://example.org/oarlock
  oarlock-pack serve dist/index               # what pip and uv then read";

pub(super) const INSPECT: &str = "\
Examples:
  oarlock-pack inspect liboarlock.so.1
  oarlock-pack inspect --without-avx liboarlock_cpu.so   # fails where one needs AVX
  oarlock-pack inspect --vectorized 40 liboarlock_cpu.so # fails where kernels were not vectorized";

pub(super) const MATRIX: &str = "\
Examples:
  oarlock-pack matrix
  oarlock-pack matrix --channel release --paths
  oarlock-pack matrix --ci > matrix.json";

pub(super) const OPTIONS: &str = "\
Examples:
  oarlock-pack options                        # every option, and what it comes to
  oarlock-pack options -D WITH_GPU=OFF -D WITH_AVX=OFF";

pub(super) const PAGES: &str = "\
Examples:
  oarlock-pack pages
  oarlock-pack pages --era 2.3.2 --host https://example.org/wheels --out dist";

pub(super) const RELEASE: &str = "\
Examples:
  oarlock-pack release --key release.key --host https://example.org/1  # all that can be built
  oarlock-pack release --key release.key --rehearsal --dry-run         # what that is
  oarlock-pack release --key release.key --rehearsal --quick           # no release yet
  oarlock-pack release --key release.key --rehearsal --row core --row OpenCL --image plain

What is compiled is kept: a release that was interrupted goes on where it stopped.";

pub(super) const REPACK: &str = "\
Examples:
  oarlock-pack repack dist/*.whl --out smaller";

pub(super) const SELECT: &str = "\
Examples:
  oarlock-pack select                         # what to install here, and why
  oarlock-pack select --device cuda12         # whatever driver is here
  oarlock-pack select --json | jq -r '.requirements[]'";

pub(super) const SERVE: &str = "\
Examples:
  oarlock-pack serve                          # dist/index, for this machine alone
  oarlock-pack serve dist/apt --port 8765     # a repository for apt
  oarlock-pack serve --address 0.0.0.0 --log  # for everybody, and who asks for what";

pub(super) const VENDOR: &str = "\
Examples:
  oarlock-pack vendor --row core --row OpenCL   # what those two take, and no more
  oarlock-pack vendor --dry-run                 # how much that is

The tree can then be moved to a machine without a network, and a release is built there as here.";

pub(super) const VERIFY: &str = "\
Examples:
  oarlock-pack verify                         # what is in dist
  oarlock-pack verify wheels debs images      # what is in these
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
