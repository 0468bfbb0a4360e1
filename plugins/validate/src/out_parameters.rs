//! Whether a plugin writes its out-parameters: all of them if it succeeds, none if it fails (rule R-1).

#![expect(unsafe_code, reason = "the out-parameters are places of the caller")]

use oarlock_layer::{LayerCall, ParameterKind, word_pointer};

use crate::breach::CallBreach;

/// Fills places before a call. A plugin writes these bytes by chance once in 2^32 calls.
const POISON: [u8; 16] =
    [0xA5, 0xC3, 0x96, 0xE1, 0x5A, 0xD2, 0x78, 0xB4, 0x69, 0x3C, 0x87, 0x1E, 0x2D, 0xF0, 0xCB, 0x94];

/// Bytes before a call: of a value, or of the start of a struct.
struct OutPlace {
    name: &'static str,
    address: u64,
    size: usize,
    before: [u8; 16],
}

/// The out-parameters of a call, filled with poison.
pub(crate) struct PoisonedPlaces {
    places: Vec<OutPlace>,
}

/// The size of a place that is small enough to be filled; structs and lists are not filled.
fn value_size(kind: ParameterKind) -> Option<usize> {
    match kind {
        ParameterKind::OutNumber(size) | ParameterKind::OutValue(size) => Some(size),
        ParameterKind::OutHandle(_) | ParameterKind::OutAddress => Some(8),
        _ => None,
    }
    .filter(|&size| size <= POISON.len())
}

impl PoisonedPlaces {
    /// Fills the out-parameters of a call; a null address is the caller's breach.
    ///
    /// # Safety
    ///
    /// The words of the call are those of its slot.
    pub(crate) unsafe fn fill_places(call: &LayerCall<'_>) -> Result<Self, CallBreach> {
        let mut places = Vec::new();
        let words = call.description().parameters.iter().zip(call.words());
        let sized =
            words.filter_map(|(parameter, word)| Some((parameter, *word, value_size(parameter.kind)?)));
        for (parameter, address, size) in sized {
            if address == 0 {
                let message = format!("expected a place for `{}`, found null", parameter.name);
                return Err(CallBreach::by_caller("R-1", message));
            }
            let mut before = [0; 16];
            // SAFETY: the caller vouches for the address, at which `size` bytes may be read and written during the call.
            unsafe {
                word_pointer::<u8>(address).copy_to_nonoverlapping(before.as_mut_ptr(), size);
                word_pointer::<u8>(address).copy_from_nonoverlapping(POISON.as_ptr(), size);
            }
            places.push(OutPlace { name: parameter.name, address, size, before });
        }
        Ok(Self { places })
    }

    /// Looks at the places after the call. What the plugin did not write, or wrote though it failed, gets back what was there
    /// before.
    ///
    /// # Safety
    ///
    /// The call is the one that the places belong to.
    pub(crate) unsafe fn check_places(&self, failed: bool) -> Result<(), CallBreach> {
        let mut result = Ok(());
        for place in &self.places {
            let mut after = [0; 16];
            // SAFETY: as in `fill_places`; the call has returned to the layer, not yet to its caller.
            unsafe {
                word_pointer::<u8>(place.address).copy_to_nonoverlapping(after.as_mut_ptr(), place.size);
            }
            let is_untouched = after[..place.size] == POISON[..place.size];
            if is_untouched || failed {
                // SAFETY: as above.
                unsafe {
                    word_pointer::<u8>(place.address)
                        .copy_from_nonoverlapping(place.before.as_ptr(), place.size);
                };
            }
            if is_untouched != failed {
                let found = if failed { "wrote it and failed" } else { "left it as it was and succeeded" };
                let message = format!(
                    "expected `{}` to be written exactly if the call succeeds, found that the plugin {found}",
                    place.name
                );
                result = Err(CallBreach::by_plugin("R-1", message));
            }
        }
        result
    }
}
