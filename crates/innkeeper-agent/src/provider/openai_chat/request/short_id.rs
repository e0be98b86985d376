//! Ids of calls in the form that Mistral's models require: nine ASCII letters and digits.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

const LENGTH: usize = 9;
const LETTERS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Whether Mistral's models take an id.
fn is_short(id: &str) -> bool {
    id.len() == LENGTH && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Returns the id, or a hash of an id that is not short. Equal ids have equal hashes, so that a
/// result keeps its call.
pub(super) fn to_short(id: &str) -> Cow<'_, str> {
    if is_short(id) {
        return id.into();
    }
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let mut rest = hasher.finish();
    let mut short = String::with_capacity(LENGTH);
    for _ in 0..LENGTH {
        short.push(char::from(LETTERS[(rest % 62) as usize]));
        rest /= 62;
    }
    short.into()
}
