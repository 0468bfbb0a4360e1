//! The text that each command's help shows below its options: examples, terms, exit codes.

pub(crate) const EXAMPLES: &str = "\
Examples:
  oarlock devices                        What devices there are
  oarlock doctor                         Whether everything works, and what to do where it does not
  oarlock run model.onnx -i x=in.npy     What the first device makes of a model
  oarlock op Add f32:[1,2] f32:1         What it makes of one op
  oarlock --plugin ./libnpu.so devices   What devices there are with a plugin that is not installed

Exit codes:
  0  All is well
  1  Something is wrong; the output says what
  2  The command was called in a way it does not understand";

pub(crate) const DEVICES_EXAMPLES: &str = "\
Examples:
  oarlock devices
  oarlock devices --json | jq -r '.[].device'
  OARLOCK_PLUGIN_PATH=/opt/acme/plugins oarlock devices

A device is named by its type and its number, such as `cpu:0`. The support level says what was verified:
`hardware-verified` on the chip, `driver-verified` with the real driver and no chip, `emulator-verified` against an \
emulation, `unspecified` nothing. It is what the plugin claims; that of `cpu` is about this processor. `simulated` marks a \
device that software makes up. `rocm`, `xpu`, `npu` and `ipu` are planned and have no plugin yet.

Exit codes:
  0  All is well, even where plugins are not used
  1  A plugin or layer that `--plugin` or `--layer` names is not used, or the host does not start
  2  The command was called in a way it does not understand";

pub(crate) const PLUGINS_EXAMPLES: &str = "\
Examples:
  oarlock plugins
  oarlock plugins --json | jq -r '.plugins[].file'

A plugin that is refused does not keep the others from working, so plugins that are not used leave the exit code 0. `oarlock doctor` \
takes them for something that is wrong.

Exit codes:
  0  All is well, even where plugins are not used
  1  A plugin or layer that `--plugin` or `--layer` names is not used, or the host does not start
  2  The command was called in a way it does not understand";

pub(crate) const DOCTOR_EXAMPLES: &str = "\
Examples:
  oarlock doctor
  oarlock doctor --json > report.json
  oarlock --plugin ./libnpu.so doctor

On every device it takes memory, copies to it and back, fills it, goes through a stream and an event, and runs the ops \
`MatMul`, `Add`, `Relu` and `ReduceSum` one after the other, those that the device has kernels for; the results are compared \
with plain arithmetic of the processor. Then all devices of a type do so at the same time. What is wrong has a cause, and a \
hint at what to do. All of it happens in a process of its own, so that a plugin that ends it is named.

Exit codes:
  0  All is well
  1  A device does not work, a plugin is not used, or the host does not start
  2  The command was called in a way it does not understand";

pub(crate) const PLUGIN_EXAMPLES: &str = "\
Examples:
  oarlock plugin check ./libnpu.so
  oarlock plugin manifest ./libnpu.so --write";

pub(crate) const CHECK_EXAMPLES: &str = "\
Examples:
  oarlock plugin check ./libnpu.so
  oarlock plugin check ./libnpu.so --quick
  oarlock plugin check ./libnpu.so --html report.html

The steps are those of the host, in its order. The first that fails ends the check, since the host would go no further. The \
conformance suite then runs in a process of its own, and each of its checks quotes a rule of the contract.

Exit codes:
  0  The plugin can be used here, and conforms
  1  It cannot or does not; the output says why
  2  The command was called in a way it does not understand";

pub(crate) const MANIFEST_EXAMPLES: &str = "\
Examples:
  oarlock plugin manifest ./libnpu.so            Prints the manifest
  oarlock plugin manifest ./libnpu.so --write    Writes it to ./libnpu.oarlock.toml

With a manifest beside it a plugin is judged without running any of its code. It holds the hash of the file, so write it \
again whenever the file changes.";

pub(crate) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  oarlock completions bash > ~/.local/share/bash-completion/completions/oarlock
  oarlock completions zsh > ~/.zfunc/_oarlock
  oarlock completions fish > ~/.config/fish/completions/oarlock.fish";

pub(crate) const MAN_EXAMPLES: &str = "\
Examples:
  oarlock man | man -l -                       Reads the page of the whole command
  oarlock man ~/.local/share/man/man1          Writes a page for each command";

pub(crate) const KERNELS_EXAMPLES: &str = "\
Examples:
  oarlock kernels                        Every kernel
  oarlock kernels --op MatMul            Those of one op
  oarlock kernels --device opencl --dtype f16
  oarlock kernels --json | jq -r '.[] | select(.problem) | .op'

A kernel is a row: it runs some versions of one op on one type of devices, with inputs of some dtypes. `ints` are the signed \
integers of 8 to 64 bits, `uints` the unsigned ones, `floats` are f16, bf16, f32 and f64, `f8` and `complex` are both of \
their kind. Sets for different inputs stand in the order of the inputs, with `;` between them. A kernel without inputs shows \
the dtypes of its outputs. `7+` are all versions from 7 on. Of several kernels that take a call, the one with the highest score \
runs, unless the flag `kernel_preference` says otherwise; `oarlock op --explain` tells for a call.

A kernel that makes no sense is never used, as when no version of the op is there for it; below the others it is said why.

Exit codes:
  0  All is well
  1  A kernel makes no sense, or what `--op` or `--plugin` names is not there or not used
  2  The command was called in a way it does not understand";

pub(crate) const FLAGS_EXAMPLES: &str = "\
Examples:
  oarlock flags                          Every flag
  oarlock flags deterministic            One of them
  OARLOCK_THREADS=4 oarlock flags threads
  oarlock flags --json | jq '.[] | select(.source != \"default\")'
  oarlock flags --paddle                 What the variables of PaddlePaddle do here
  oarlock flags --paddle FLAGS_selected_gpus

A flag is set by the program, such as with `oarlock op --set`, or else by its variable of the environment, or else by another \
variable that is an alias. Names and aliases are found here as well. A variable of PaddlePaddle that has no effect here is \
warned of when it is set, by every command that starts plugins.

Exit codes:
  0  All is well
  1  There is no such flag, or the environment sets one to what it cannot be
  2  The command was called in a way it does not understand";

pub(crate) const OP_EXAMPLES: &str = "\
Examples:
  oarlock op Add a.npy b.npy                                Prints the sum
  oarlock op Add a.npy b.npy -d cpu -o c.npy                Writes it to a file
  oarlock op Softmax f32:[1,2,3] --attr axis=-1
  oarlock op Cast i64:[1,2] --attr to=f16
  oarlock op Clip f32:[-1,0,9] - f32:5                      Leaves an input out
  oarlock op TopK x.npy i64:[3] --outputs 2 -o - -o at.npy
  oarlock op MatMul a.npy b.npy --explain --dry-run         Says which kernel would run, and why
  oarlock op MatMul a.npy b.npy --set kernel_preference=openblas

An input is a file that NumPy wrote, in the order of C or of Fortran; or a dtype and values, such as `i64:5` or \
`f32:[[1,2],[nan,inf]]`, a complex one as `c64:1+2j`, text as `string:[\"a\",\"b\"]`; or `-` for an optional input that is left \
out. What is in the order of Fortran becomes a tensor with strides. Some shells want quotes around brackets.

An attribute is of the type that the op has for it: `1`, `0.5`, text, or some of these with commas between them; a tensor \
is written like an input. Where an integer stands for a dtype, its name does too.

Where there are plugins beside those that are part of this program, the op runs in a process of its own, so that a plugin \
that ends it is named.

Exit codes:
  0  The op has run, or with `--dry-run`, it would run
  1  It has not or would not; the output says why
  2  The command was called in a way it does not understand";

pub(crate) const RUN_EXAMPLES: &str = "\
Examples:
  oarlock run model.onnx -i x=in.npy                     Prints the outputs, large ones in part
  oarlock run model.onnx -i x=in.npy -i n=i64:5 -o out   Writes a file for each into `out`
  oarlock run model.onnx -i all.npz -o out.npz
  oarlock run model.onnx -i x=in.npy -o y.npy            Of a model with one output
  xz -dc model.onnx.xz | oarlock run - -i x=in.npy
  oarlock run model.onnx --random 0 --shape batch=8
  oarlock run model.onnx --random 0 --precision bf16     Says how far that is from f32
  oarlock run model.onnx -i x=in.npy -d cuda -d opencl --json

An input is a file that NumPy wrote with `numpy.save`, or values as `oarlock op` takes them, such as `i64:5` or \
`f32:[[1,2],[3,4]]`; of a model with one input the name may be left out. An archive of `numpy.savez` has arrays by the names of \
inputs, compressed or not. A file that ends in `.pb` is a tensor as ONNX's tests have it. For an input that is a sequence, name it once for each element; \
`NAME=-` leaves it without any, and an optional input empty.

A model that is `-`, or a pipe, is read to its end: ONNX of at most 2 GiB with all weights in it.

With `--random`, inputs that are not given are made up: floats from a normal distribution, everything else of 0 and 1, which \
are legal tokens, indices and masks. Dimensions that have a name and no size are 1, unless `--shape` says otherwise.

Each node runs on the first of the devices that has a kernel for it, and on the CPU where none of them has.

With `--precision bf16`, convolutions and products of f32 may round what they multiply to bf16, where the processor is faster \
so, and images that only convolutions read may be kept so; sums and all other values between ops stay what they are. The \
model then runs in f32 too, and how far the outputs of both are apart is told. Where nothing can be rounded the model runs in f32, and it says why.

With `--json`, what goes wrong is an object on the standard output too: `error`, with `kind`, `message`, `node`, `op` and \
`hint`, each `null` where it is not known. The same is true of `bench`, `explain`, `trace`, `check` and `optimize`, and of any \
command that is called in a way it does not understand.

Exit codes:
  0  The model has run
  1  It has not; the output says why
  2  The command was called in a way it does not understand";

pub(crate) const BENCH_EXAMPLES: &str = "\
Examples:
  oarlock bench model.onnx
  oarlock bench model.onnx --threads 1 --repeat 100 --json | jq .latency_ms.median
  oarlock bench model.onnx -i x=in.npy --compare onnxruntime
  oarlock bench model.onnx --compare onnxruntime --python venv/bin/python --html report.html

Without inputs they are made up, as with `oarlock run --random 0`. What is measured are whole runs in this process, until the \
outputs are there; the steps are measured in other runs, in which each is waited for, so their sum is more than a run takes. \
GFLOP/s counts the multiplications and additions of products and convolutions, GB/s what has to be read and written at \
least. The peak of memory is that of the process until the first run is over.

With `--compare` the other runtime runs in a process of its own, with as many threads, on the same inputs. Both take turns, \
and rest in between, so that whatever else slows the machine down slows down both. Its outputs are compared as well.

With `--precision bf16` the outputs are also compared with those of f32, as `oarlock run --help` has it.

Exit codes:
  0  All is well
  1  The model has not run; the output says why
  2  The command was called in a way it does not understand";

pub(crate) const EXPLAIN_EXAMPLES: &str = "\
Examples:
  oarlock explain model.onnx
  oarlock explain model.onnx --passes --shape x=8x3x224x224
  oarlock explain model.onnx -d cuda --json | jq -r '.nodes[] | select(.device != \"cuda:0\") | .op'
  oarlock explain model.onnx --html model.html --svg model.svg

Kernels are chosen for shapes, so dimensions that have a name and no size are taken as 1, and it says so; `--shape` gives \
others. Nothing runs but what can be computed once and for all.

Exit codes:
  0  All is well
  1  The model cannot be run; the output says why
  2  The command was called in a way it does not understand";

pub(crate) const TRACE_EXAMPLES: &str = "\
Examples:
  oarlock trace model.onnx -o trace.json
  oarlock trace model.onnx -i x=in.npy -d opencl --repeat 3

Open the file at https://ui.perfetto.dev or chrome://tracing. There is a row for the host and one for each device, and an \
arrow from where the host launches a step to the work on the device. Each step is waited for before the next, so that its \
time is its own: the row of a device shows it from the launch to the end of the wait. Without inputs they are made up.

Exit codes:
  0  The trace is written
  1  The model has not run; the output says why
  2  The command was called in a way it does not understand";

pub(crate) const OPTIMIZE_EXAMPLES: &str = "\
Examples:
  oarlock optimize model.onnx -o ready.onnx
  oarlock optimize model.onnx -o ready.onnx --shape batch=8      For inputs of these sizes only
  oarlock optimize inference.pdmodel -o model.onnx --plain       A model of Paddle as ONNX

Passes run as they do whenever a model is loaded: what can be computed once and for all is computed, and ops are joined that \
the device, or that of `-d`, runs at once. The file runs as any other, with the same results, here and on machines with the same \
kinds of devices. Where sizes are given with `--shape`, passes know more, and the file takes these sizes only.

The file is ONNX. Other programs run it too, unless it has nodes of the domain `oarlock`, of which the number is told; `--plain` \
leaves out the passes that make most of them. Weights of more than 1 GiB go to a file beside it, which is called the same \
with `.data` at its end.

Exit codes:
  0  The file is written
  1  It is not; the output says why
  2  The command was called in a way it does not understand";

pub(crate) const CHECK_MODEL_EXAMPLES: &str = "\
Examples:
  oarlock check model.onnx
  oarlock check model.onnx -d opencl --shape batch=8
  oarlock check model.onnx --json | jq '.devices[] | {device, runs, nodes}'

It reads the model, checks its graph, follows dtypes and shapes through it, and asks each device, or those of `-d`, about each \
node; in branches and loops too. No kernel runs. Dimensions that have a name and no size are taken as 1. Where shapes or \
values are known in the run only, a device that has kernels for the op counts as able.

Exit codes:
  0  Some device can run the model, with the help of the CPU where need be
  1  None can, or it is no model; the output says why
  2  The command was called in a way it does not understand";
