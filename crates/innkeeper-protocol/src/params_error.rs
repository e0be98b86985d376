//! The error for the parameters of a client's request.

use crate::envelope::code;
use crate::skim::{KeyTracker, decode_key, members};
use crate::view::ViewError;

/// The error for parameters of a request that a server cannot accept. The message is safe to
/// display.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// A required member is missing, or a member has the wrong type. The pointer is relative to
    /// `params`.
    #[error("invalid `params`: {0}")]
    Invalid(#[from] ViewError),
    /// Two members of one object have the same key. Readers disagree about the value of such a key,
    /// so that the receiver could use another value than the checked value.
    #[error("two members of one object in `{object}` have the same key")]
    DuplicateKey {
        /// The part of the request that contains the object.
        object: &'static str,
    },
}

impl ParamsError {
    /// Returns the code of the error response, [`code::INVALID_PARAMS`].
    pub fn code(&self) -> i64 {
        code::INVALID_PARAMS
    }
}

/// Checks that no two members of the object itself have the same key.
pub(crate) fn check_keys(name: &'static str, object: &str) -> Result<(), ParamsError> {
    let mut tracker = KeyTracker::default();
    tracker.start_object();
    members(object).for_each(|(key, _)| tracker.add_key(decode_key(key)));
    if tracker.end_object() {
        return Err(ParamsError::DuplicateKey { object: name });
    }
    Ok(())
}
