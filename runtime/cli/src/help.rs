//! The text that each command's help shows below its options: examples, terms, exit codes.

pub(crate) mod plugin;
pub(crate) mod trust;

pub(crate) const EXAMPLES: &str = "\
Examples:
  oarlock devices                        Lists the devices
  oarlock doctor                         Tests everything, and says how to mend what fails
  oarlock run model.onnx -i x=in.npy     Runs a model on the first device
  oarlock op Add f32:[1,2] f32:1         Runs one op
  oarlock --plugin ./libnpu.so devices   Includes a plugin that is not installed

Exit codes:
  0  All is well
  1  Something is wrong; the output says what
  2  Invalid arguments";

pub(crate) const DEVICES_EXAMPLES: &str = "\
Examples:
  oarlock devices
  oarlock devices --json | jq -r '.[].device'
  OARLOCK_PLUGIN_PATH=/opt/acme/plugins oarlock devices

The name of a device is its type and its number, such as `cpu:0`. The support level says how the device was tested: \
`hardware-verified` on the chip, `driver-verified` with the real driver but without the chip, `emulator-verified` on an \
emulator, `unspecified` not at all. The plugin claims that level; the level of `cpu` is about this processor. `simulated` marks \
a device that exists only in software. `rocm`, `xpu`, `npu` and `ipu` are planned and have no plugin yet.

Exit codes:
  0  All is well, even if plugins were refused
  1  A plugin or layer of `--plugin` or `--layer` was refused, or the host does not start
  2  Invalid arguments";

pub(crate) const PLUGINS_EXAMPLES: &str = "\
Examples:
  oarlock plugins
  oarlock plugins --json | jq -r '.plugins[].file'

The other plugins work even if one is refused, so the exit code is 0. For `oarlock doctor`, a refused plugin is a problem.

Exit codes:
  0  All is well, even if plugins were refused
  1  A plugin or layer of `--plugin` or `--layer` was refused, or the host does not start
  2  Invalid arguments";

pub(crate) const DOCTOR_EXAMPLES: &str = "\
Examples:
  oarlock doctor
  oarlock doctor --json > report.json
  oarlock --plugin ./libnpu.so doctor
  oarlock doctor --bisect

On each device, the doctor allocates memory, copies to it and back, fills it, uses a stream and an event, and runs `MatMul`, \
`Add`, `Relu` and `ReduceSum`, if the device has kernels for them. It compares the results with plain arithmetic on the \
processor. It then tests all devices of a type at the same time. For each problem it names the cause and what to do. The tests \
run in a child process, so that the doctor can name a plugin that crashes it. A plugin that crashes or hangs while it is loaded \
is left out.

Exit codes:
  0  All is well
  1  A device does not work, a plugin was refused, or the host does not start
  2  Invalid arguments";

pub(crate) const PLUGIN_EXAMPLES: &str = "\
Examples:
  oarlock plugin new acme-npu --lang cpp
  oarlock plugin check ./libnpu.so
  oarlock plugin manifest ./libnpu.so --write
  oarlock plugin key new acme
  oarlock plugin sign ./libnpu.so --key acme.key
  oarlock plugin trust acme.pem
  oarlock plugin verify ./libnpu.so";

pub(crate) const CHECK_EXAMPLES: &str = "\
Examples:
  oarlock plugin check ./libnpu.so
  oarlock plugin check ./libnpu.so --quick
  oarlock plugin check ./libnpu.so --html report.html
  oarlock plugin check ./libnpu.so --report report.json --record
  oarlock plugin check ./libnpu.so --profile core --junit results.xml
  oarlock plugin check ./libnpu_kernels.so --plugin ./libnpu.so

The check follows the steps of the host, in the same order, and ends at the first that fails, as the host would. Then the \
conformance suite runs in a child process; each of its checks quotes a rule of the contract. What kernels compute is compared \
with a reference. Kernels for the processor run in host memory; those for another device need the plugin that drives it. A layer \
is checked around the processor. With `--record`, the manifest names the day, the profiles that passed and the hash of the report.

Exit codes:
  0  The plugin works here, and conforms
  1  It does not; the output says why
  2  Invalid arguments";

pub(crate) const MANIFEST_EXAMPLES: &str = "\
Examples:
  oarlock plugin manifest ./libnpu.so            Prints the manifest
  oarlock plugin manifest ./libnpu.so --write    Writes it to ./libnpu.oarlock.toml

With a manifest beside it, the host judges a plugin without running any of its code. The manifest has the hashes of the plugin and \
of the libraries beside it that it loads, so write it again whenever one of them changes.";

pub(crate) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  oarlock completions bash > ~/.local/share/bash-completion/completions/oarlock
  oarlock completions zsh > ~/.zfunc/_oarlock
  oarlock completions fish > ~/.config/fish/completions/oarlock.fish";

pub(crate) const MAN_EXAMPLES: &str = "\
Examples:
  oarlock man | man -l -                       Shows the page of the whole command
  oarlock man ~/.local/share/man/man1          Writes a page for each command";

pub(crate) const KERNELS_EXAMPLES: &str = "\
Examples:
  oarlock kernels                        Every kernel
  oarlock kernels --op MatMul            The kernels of one op
  oarlock kernels --device opencl --dtype f16
  oarlock kernels --json | jq -r '.[] | select(.problem) | .op'

Each row is a kernel: it runs some versions of one op on one type of device, for some dtypes. `ints` are the signed integers of 8 \
to 64 bits, `uints` the unsigned ones; `floats` are f16, bf16, f32 and f64; `f8` and `complex` are all dtypes of that kind. \
Dtypes of different inputs are in the order of the inputs, separated by `;`. A kernel without inputs shows the dtypes of its \
outputs. `7+` means all versions from 7 on. If several kernels accept a call, the one with the highest score runs, unless the \
flag `kernel_preference` says otherwise; `oarlock op --explain` shows the choice for a call.

A kernel that contradicts the schema of its op, for example one for a version that does not exist, is never used. The list ends \
with these kernels and the reasons.

Exit codes:
  0  All is well
  1  A kernel contradicts its schema, or the op or plugin that you named does not exist or was refused
  2  Invalid arguments";

pub(crate) const FLAGS_EXAMPLES: &str = "\
Examples:
  oarlock flags                          Every flag
  oarlock flags deterministic            One flag
  OARLOCK_THREADS=4 oarlock flags threads
  oarlock flags --json | jq '.[] | select(.source != \"default\")'
  oarlock flags --paddle                 The effect of PaddlePaddle's variables
  oarlock flags --paddle FLAGS_selected_gpus

The value of a flag comes from the program, for example from `oarlock op --set`; otherwise from its environment variable; \
otherwise from a variable that is an alias of it. NAME may be an alias too. If a variable of PaddlePaddle is set that has no \
effect here, every command that starts plugins warns of it.

Exit codes:
  0  All is well
  1  There is no such flag, or the environment sets one to an invalid value
  2  Invalid arguments";

pub(crate) const OP_EXAMPLES: &str = "\
Examples:
  oarlock op Add a.npy b.npy                                Prints the sum
  oarlock op Add a.npy b.npy -d cpu -o c.npy                Writes the sum to a file
  oarlock op Softmax f32:[1,2,3] --attr axis=-1
  oarlock op Cast i64:[1,2] --attr to=f16
  oarlock op Clip f32:[-1,0,9] - f32:5                      Leaves out an input
  oarlock op TopK x.npy i64:[3] --outputs 2 -o - -o at.npy
  oarlock op swish x.npy --plugin libswish.so --domain acme Runs an op of a plugin
  oarlock op MatMul a.npy b.npy --explain --dry-run         Says which kernel would run, and why
  oarlock op MatMul a.npy b.npy --set kernel_preference=openblas

An input is a `.npy` file in C or Fortran order; or a dtype with values, such as `i64:5`, `f32:[[1,2],[nan,inf]]`, `c64:1+2j` for \
a complex number or `string:[\"a\",\"b\"]` for text; or `-` to leave out an optional input. A file in Fortran order becomes a \
tensor with strides. Some shells need quotes around brackets.

The schema of the op defines the type of each attribute: `1`, `0.5`, text, or several of these separated by commas; a tensor is \
written like an input. The name of a dtype works wherever an integer stands for one.

If there are plugins besides the built-in ones, the op runs in a child process, so that the command can name a plugin that \
crashes it.

Exit codes:
  0  The op ran, or would run with `--dry-run`
  1  It did not or would not; the output says why
  2  Invalid arguments";

pub(crate) const REPLAY_EXAMPLES: &str = "\
Examples:
  oarlock run m.onnx --layer record                          Records in oarlock-record.bin
  oarlock replay oarlock-record.bin --compare                Repeats it, compares results
  oarlock replay oarlock-record.bin -d opencl --compare      The same on another device
  oarlock replay oarlock-record.bin --compare --tolerance 0  Every bit has to be the same

A replay allocates memory, copies, and runs the ops of the recorded kernels, each call after the other. Which kernel runs an op is \
decided anew. Calls that it leaves out are counted with the reason. A file that was cut off is replayed up to its end.

`[plugin.record]` in the configuration has the options of the layer: `file`, `contents` (`shapes`, `referenced` for hashes, or \
`full`) and `limit` in bytes.";

pub(crate) const RUN_EXAMPLES: &str = "\
Examples:
  oarlock run model.onnx -i x=in.npy                     Prints the outputs, large ones abbreviated
  oarlock run model.onnx -i x=in.npy -i n=i64:5 -o out   Writes a file for each output into `out`
  oarlock run model.onnx -i all.npz -o out.npz
  oarlock run model.onnx -i x=in.npy -o y.npy            For a model with one output
  xz -dc model.onnx.xz | oarlock run - -i x=in.npy
  oarlock run model.onnx --random 0 --shape batch=8
  oarlock run model.onnx --random 0 --precision bf16     Reports the difference from f32
  oarlock run model.onnx -i x=in.npy -d cuda -d opencl --json

An input is a file from `numpy.save`, or values as for `oarlock op`, such as `i64:5` or `f32:[[1,2],[3,4]]`. If the model has one \
input, you may leave out its name. A file from `numpy.savez` or `numpy.savez_compressed` contains several inputs by name. A \
file that ends in `.pb` is a tensor in the format of the ONNX tests. For a sequence, repeat the name once for each element; \
`NAME=-` makes an empty sequence, or leaves out an optional input.

`-` reads the model from standard input. Pipes work too. The model must then be ONNX of at most 2 GiB with all weights inside.

`--random` makes up missing inputs: floats from a normal distribution, everything else from 0 and 1, which are valid tokens, \
indices and masks. Named dimensions without a size are 1 unless `--shape` gives a size.

Each node runs on the first of the devices that has a kernel for it, and otherwise on the CPU.

With `--precision bf16`, convolutions and products of f32 may round their factors to bf16 where the processor is faster that \
way, and images that only convolutions read may be kept in bf16. Sums and all other values between ops stay f32. The model also \
runs in f32, and the command reports how far the outputs differ. If nothing can be rounded, the model runs in f32 and the command \
says why.

With `--json`, an error is an object on standard output: `error`, with `kind`, `message`, `node`, `op` and `hint`, each `null` if \
unknown. This holds for `bench`, `explain`, `trace`, `check` and `optimize` too, and for invalid arguments of any command.

Exit codes:
  0  The model ran
  1  It did not; the output says why
  2  Invalid arguments";

pub(crate) const BENCH_EXAMPLES: &str = "\
Examples:
  oarlock bench model.onnx
  oarlock bench model.onnx --threads 1 --repeat 100 --json | jq .latency_ms.median
  oarlock bench model.onnx -i x=in.npy --compare onnxruntime
  oarlock bench model.onnx --callers 4 --threads 1 --json | jq .latency_ms.p99
  oarlock bench model.onnx --compare onnxruntime --python venv/bin/python --html report.html

Missing inputs are made up, as with `oarlock run --random 0`. The latency is that of whole runs in this process, until the \
outputs are complete. Steps are measured in separate runs that wait for each step, so the sum of the steps exceeds the time of a \
run. GFLOP/s counts the multiplications and additions of products and convolutions; GB/s counts the bytes that must be read and \
written. Peak memory is that of the process up to the end of the first run.

With `--callers`, several threads run the same session at once on the same inputs. The latencies are those of all their runs. \
The throughput is the number of these runs over the time that passed. Each caller works on its own runs; the other threads of \
`--threads` help all callers.

With `--compare`, the other runtime runs in a child process, with as many threads and callers and the same inputs. The two take \
turns and pause in between, so that anything else that slows down the machine affects both. With one caller, the verdict compares \
median latencies; with several, it compares throughputs. The command also compares the outputs.

With `--precision bf16`, the command also compares the outputs with those of f32; see `oarlock run --help`.

Exit codes:
  0  All is well
  1  The model did not run; the output says why
  2  Invalid arguments";

pub(crate) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  oarlock explain model.onnx
  oarlock explain model.onnx --passes --shape x=8x3x224x224
  oarlock explain model.onnx -d cuda --json | jq -r '.nodes[] | select(.device != \"cuda:0\") | .op'
  oarlock explain model.onnx --html model.html --svg model.svg

Kernels depend on shapes. Named dimensions without a size count as 1, and the output says so; `--shape` sets them. Nothing runs \
except constant folding.

Exit codes:
  0  All is well
  1  The model cannot be run; the output says why
  2  Invalid arguments";

pub(crate) const TRACE_EXAMPLES: &str = "\
Examples:
  oarlock trace model.onnx -o trace.json
  oarlock trace model.onnx -i x=in.npy -d opencl --repeat 3

Open the file at https://ui.perfetto.dev or chrome://tracing. It has a row for the host and one for each device, with arrows from \
where the host launches a step to the work on the device. The command waits for each step before it starts the next, so that the \
time of each is its own: the row of a device shows a step from its launch to the end of the wait. Missing inputs are made up.

Exit codes:
  0  The trace was written
  1  The model did not run; the output says why
  2  Invalid arguments";

pub(crate) const OPTIMIZE_EXAMPLES: &str = "\
Examples:
  oarlock optimize model.onnx -o ready.onnx
  oarlock optimize model.onnx -o ready.onnx --shape batch=8      Only for inputs of these sizes
  oarlock optimize inference.pdmodel -o model.onnx --plain       Converts a Paddle model

The same passes run as whenever a model is loaded: they fold constants, and fuse ops for the first device or that of `-d`. The \
file runs like any other, with the same results, here and on machines with the same kinds of devices. With `--shape`, passes know \
more and can do more, but the file then takes only these sizes.

The file is ONNX. Other programs run it too, unless it has nodes of the domain `oarlock`; the command says how many there are. \
`--plain` leaves out the passes that make most of them. Weights of more than 1 GiB go into a file beside it, with `.data` \
appended to the name.

Exit codes:
  0  The file was written
  1  It was not; the output says why
  2  Invalid arguments";

pub(crate) const CHECK_MODEL_EXAMPLES: &str = "\
Examples:
  oarlock check model.onnx
  oarlock check model.onnx -d opencl --shape batch=8
  oarlock check model.onnx --json | jq '.devices[] | {device, runs, nodes}'

The command reads the model, checks its graph, infers dtypes and shapes, and asks each device, or those of `-d`, about each node, \
including those of branches and loops. No kernel runs. Named dimensions without a size count as 1. If shapes or values are known \
only in a run, a device counts as able if it has kernels for the op.

Exit codes:
  0  Some device can run the model, if need be with the help of the CPU
  1  None can, or the file is not a model; the output says why
  2  Invalid arguments";
