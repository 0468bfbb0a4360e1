//! Every kernel on the first OpenCL device.

fn main() {
    oarlock_portable::testing::run_trials(oarlock_plugin_opencl::QUERY);
}
