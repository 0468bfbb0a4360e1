//! The instruction sets that a test may use: those of the machine, or up to the one that the test run forces.

use std::sync::LazyLock;

use oarlock_cpu_base::isa::Isa;

/// The best level of this machine, or the level that the test run forces.
pub fn best_isa() -> Isa {
    static BEST: LazyLock<Isa> = LazyLock::new(|| forced_isa().unwrap_or_else(Isa::best_level));
    *BEST
}

/// The levels up to [`best_isa`].
pub fn isa_levels() -> impl Iterator<Item = Isa> {
    Isa::ALL.into_iter().filter(|isa| *isa <= best_isa() && isa.is_available())
}

/// The level that `OARLOCK_TEST_ISA` names, which the machine must have. `scripts/test-isa` sets it.
fn forced_isa() -> Option<Isa> {
    let wanted = std::env::var_os("OARLOCK_TEST_ISA")?;
    let isa = Isa::ALL.into_iter().find(|isa| *isa.to_string() == *wanted);
    let isa = isa.expect("`OARLOCK_TEST_ISA` as the name of an instruction set");
    assert!(isa.is_available(), "expected an instruction set of this machine, found `{isa}`");
    Some(isa)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_that_is_forced_is_the_best_there_is() {
        let wanted = std::env::var("OARLOCK_TEST_ISA").unwrap_or_else(|_| Isa::best_level().to_string());
        assert_eq!(best_isa().to_string(), wanted);
        assert_eq!(isa_levels().last(), Some(best_isa()));
    }
}
