//! Signatures and keys: `oarlock plugin sign`, `verify`, `trust` and `key`.

pub(crate) mod keys;
mod new_file;
pub(crate) mod sign;
pub(crate) mod trust_keys;
pub(crate) mod verify;

use oarlock_host::TrustFileError;

use crate::problem::CommandError;

impl From<TrustFileError> for CommandError {
    fn from(error: TrustFileError) -> Self {
        let TrustFileError { file, problem, remedy } = error;
        Self::new(format!("`{}`: {problem}", file.display())).with_hint(remedy)
    }
}
