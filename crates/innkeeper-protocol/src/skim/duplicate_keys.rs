//! Detection of keys that occur twice in one object.

use std::borrow::Cow;

use super::{Token, decode_key, tokens};

/// Number of keys up to which a comparison of all pairs is faster than sorting.
const MAX_PAIRWISE_KEYS: usize = 8;

/// Number of keys of an object from which the tracker compares the keys at each doubling, so that
/// the memory depends on the number of different keys.
const MIN_EARLY_COMPARISON: usize = 1024;

/// The keys of the open objects, to find duplicates at the end of each object.
#[derive(Clone, Debug, Default)]
pub struct KeyTracker<'a> {
    keys: Vec<Cow<'a, str>>,
    objects: Vec<OpenObject>,
}

#[derive(Clone, Debug)]
struct OpenObject {
    /// The index of the first key.
    start: usize,
    has_duplicate: bool,
}

impl<'a> KeyTracker<'a> {
    /// Opens an object.
    pub fn start_object(&mut self) {
        self.objects.push(OpenObject { start: self.keys.len(), has_duplicate: false });
    }

    /// Adds a decoded key to the innermost open object.
    pub fn add_key(&mut self, key: Cow<'a, str>) {
        let Some(object) = self.objects.last_mut().filter(|object| !object.has_duplicate) else {
            return;
        };
        self.keys.push(key);
        let count = self.keys.len() - object.start;
        if count >= MIN_EARLY_COMPARISON && count.is_power_of_two() {
            object.has_duplicate = has_equal_keys(&mut self.keys[object.start..]);
            if object.has_duplicate {
                self.keys.truncate(object.start);
            }
        }
    }

    /// Closes the innermost open object. Returns whether one of its keys occurs twice.
    pub fn end_object(&mut self) -> bool {
        let Some(OpenObject { start, has_duplicate }) = self.objects.pop() else { return false };
        let has_duplicate = has_duplicate || has_equal_keys(&mut self.keys[start..]);
        self.keys.truncate(start);
        has_duplicate
    }
}

fn has_equal_keys(keys: &mut [Cow<'_, str>]) -> bool {
    if keys.len() <= MAX_PAIRWISE_KEYS {
        return keys.iter().enumerate().any(|(index, key)| keys[..index].contains(key));
    }
    keys.sort_unstable();
    keys.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether an object in JSON text, at any level, has two members with the same decoded key. Readers
/// disagree about the value of such a key.
pub fn has_duplicate_key(json: &str) -> bool {
    let mut tracker = KeyTracker::default();
    tokens(json).any(|token| match token {
        Token::ObjectStart => {
            tracker.start_object();
            false
        }
        Token::Key(key) => {
            tracker.add_key(decode_key(key));
            false
        }
        Token::ObjectEnd => tracker.end_object(),
        Token::ArrayStart | Token::ArrayEnd | Token::String(_) | Token::Scalar(_) => false,
    })
}
