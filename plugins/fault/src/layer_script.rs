//! Reads the script of the layer.

use oarlock_fault_script::{FAULT_STATEMENTS, FaultStatements, ScriptError, parse_statements};
use oarlock_layer::SLOTS;

/// Parses a script, and checks that the calls that it names exist: a misspelled name would do nothing.
pub(crate) fn parse_layer_script(text: &str) -> Result<FaultStatements, ScriptError> {
    let mut script = FaultStatements::default();
    parse_statements(text, |first, words| {
        if first == "lie" {
            words.parse_choice(&[("copy", ())])?;
            script.parse_lying_copy(words)?;
        } else if !script.parse_statement(first, words)? {
            return Err(words.unexpected_word_error(first, &FAULT_STATEMENTS.map(|(word, _)| word)));
        }
        let is_slot = |name: &str| SLOTS.iter().any(|slot| slot.name == name);
        match script.call_names().find(|name| !is_slot(name)) {
            Some(name) => {
                Err(words
                    .expected_found_error(name, "the name of a slot, such as `memory_allocate` or `run`"))
            }
            None => Ok(()),
        }
    })?;
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::parse_layer_script;

    #[test]
    fn a_script_names_slots_and_faults() {
        assert!(
            parse_layer_script(
                "seed 3; fail memory_allocate 2 out-of-memory; shorten memory_set 1..; lie copy 5%"
            )
            .is_ok()
        );
        for (text, told) in [
            ("fail memory_alocate 1 internal", "found `memory_alocate`"),
            ("mode lazy", "expected one of `seed`"),
            ("lie device_count 3", "expected `copy`"),
            ("quota 64MiB", "found `quota`"),
        ] {
            let found = parse_layer_script(text).expect_err(text).to_string();
            assert!(found.contains(told), "{found}");
        }
    }
}
