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
