//! Limit on the nesting depth of a message.

use memchr::memchr_iter;

use crate::skim::depth_within;

/// Maximum number of nested objects and arrays in one line, including the outermost. serde_json
/// accepts the same depth when it builds a tree, so every accepted message can be parsed further.
pub const MAX_MESSAGE_DEPTH: usize = 127;

/// Whether the nesting of valid JSON is at most [`MAX_MESSAGE_DEPTH`]. The result for invalid JSON
/// is a guess.
pub(super) fn within_limit(json: &str) -> bool {
    let bytes = json.as_bytes();
    if bytes.len() <= MAX_MESSAGE_DEPTH {
        return true;
    }
    // Counting brackets is many times faster than tracking the nesting, and is sufficient for all
    // but large structured results.
    let opened = memchr_iter(b'{', bytes).count() + memchr_iter(b'[', bytes).count();
    opened <= MAX_MESSAGE_DEPTH || depth_within(bytes, MAX_MESSAGE_DEPTH)
}
