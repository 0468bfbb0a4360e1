//! The help of the commands that make, pack and list plugins.

pub(crate) const NEW_EXAMPLES: &str = "\
Examples:
  oarlock plugin new acme-npu                                A device in C
  oarlock plugin new acme-npu --lang cpp --vendor 'Acme Inc.'
  oarlock plugin new acme-ops --lang rust --kind kernels     Kernels for the device `cpu`
  oarlock plugin new --list                                  Every language and kind

The command writes a directory that builds with one command, `make` or `cargo build --release`, without the network: the headers, or \
the sources of the SDK, are in it. It has a test, which runs `oarlock plugin check`, a recipe for `oarlock plugin pack`, and a job \
for GitHub Actions. The plugin works as it is; replace its parts one by one.

Exit codes:
  0  The directory was written
  1  It was not; the output says why
  2  Invalid arguments";

pub(crate) const PACK_EXAMPLES: &str = "\
Examples:
  oarlock plugin pack                     With the recipe in this directory, into `dist`
  oarlock plugin pack acme-npu --only wheel
  oarlock plugin pack --key acme.key
  oarlock plugin pack build/libacme_npu.so -o packages

`oarlock-plugin.toml` says what the packages are called and which libraries they need; `oarlock plugin new` writes one. Name and \
version come from the plugin, which is probed, and its manifest is written beside it. With `--key` the manifest is \
signed; a signature that is there goes into the packages as it is.

The wheel is for every Python and for the oldest glibc whose symbols the plugin uses. Where one of the packages is installed, Oarlock \
finds the plugin by itself. The same files give the same bytes; their time is `SOURCE_DATE_EPOCH`, or that of the shared object.

A plugin is refused that makes the stack executable, has its code changed when it is loaded, searches libraries outside of its \
directory, is linked to a library that the recipe does not name, or does not answer.

Exit codes:
  0  The packages were written
  1  They were not; the output says why
  2  Invalid arguments";

pub(crate) const INDEX_EXAMPLES: &str = "\
Examples:
  oarlock plugin index dist
  oarlock plugin index dist --output dist/index.html
  oarlock plugin index dist --json | jq -r '.files[] | [.manifest.name, .sha256] | @tsv'

The list says what packages say: version, contract, support level, the last run of the conformance suite, whether there is a \
signature, and the hash of the file. No plugin is run, and no signature is checked: that depends on whom a host trusts.

Exit codes:
  0  All is well
  1  A package cannot be read; the others are listed
  2  Invalid arguments";
