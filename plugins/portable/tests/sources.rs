//! Every kernel source in every language.

use oarlock_portable::testing::record_sources;
use oarlock_portable::{KERNEL_ENTRY_POINT, KernelLanguage};

#[test]
fn every_language_has_the_same_kernels_but_for_the_prelude() {
    let [opencl, cuda, hip] =
        [KernelLanguage::OpenCl, KernelLanguage::Cuda, KernelLanguage::Hip].map(record_sources);
    assert!(opencl.len() > 300, "{} sources", opencl.len());
    let without_prelude = |source: &str| source.split("#define INDEX").nth(1).map(str::to_owned);
    for other in [&cuda, &hip] {
        assert_eq!(other.len(), opencl.len());
        for (source, other) in opencl.iter().zip(other) {
            assert_eq!(without_prelude(source), without_prelude(other));
        }
    }
    for source in opencl.iter().chain(&cuda).chain(&hip) {
        assert!(!source.contains("{{"), "a gap that nothing was filled into:\n{source}");
        assert_eq!(source.matches(KERNEL_ENTRY_POINT).count(), 1, "{source}");
    }
}
