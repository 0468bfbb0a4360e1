//! Every kernel on the first CUDA device.

fn main() {
    oarlock_portable::testing::run_trials(oarlock_plugin_cuda::QUERY);
}
