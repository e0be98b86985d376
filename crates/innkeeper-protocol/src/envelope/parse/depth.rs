//! How deep the nesting of a message goes.

use memchr::memchr_iter;

use crate::skim::depth_within;

/// The most levels of objects and arrays in one line, its outermost included: what serde_json
/// itself agrees to build a tree of, so that whatever is let in here can be read everywhere.
pub const DEPTH_LIMIT: usize = 127;

/// Whether valid JSON nests no deeper than [`DEPTH_LIMIT`]; of other text, a guess.
pub(super) fn within_limit(json: &str) -> bool {
    let bytes = json.as_bytes();
    if bytes.len() <= DEPTH_LIMIT {
        return true;
    }
    // Counting brackets is many times faster than following them, and settles it for all but large
    // structured results.
    let opened = memchr_iter(b'{', bytes).count() + memchr_iter(b'[', bytes).count();
    opened <= DEPTH_LIMIT || depth_within(bytes, DEPTH_LIMIT)
}
