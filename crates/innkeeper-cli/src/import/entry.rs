//! One server on its way from another host's words to ours: whatever is not taken is noted.

use serde_json::{Map, Value};

/// A server's definition, taken apart key by key.
#[derive(Debug)]
pub(super) struct Entry {
    left: Map<String, Value>,
    made: Map<String, Value>,
    notes: Vec<String>,
}

impl Entry {
    pub(super) fn new(definition: Map<String, Value>) -> Self {
        Self { left: definition, made: Map::new(), notes: Vec::new() }
    }

    /// Takes a key away from what is left.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.left.shift_remove(key)
    }

    /// Takes the first of several spellings; later ones stay and are noted.
    pub(super) fn take_any(&mut self, keys: &[&str]) -> Option<Value> {
        keys.iter().find_map(|key| self.take(key))
    }

    /// Takes a key that must hold a string; anything else is noted.
    pub(super) fn take_text(&mut self, key: &str) -> Option<String> {
        match self.take(key)? {
            Value::String(text) => Some(text),
            _ => {
                self.note(format!("`{key}` is not a string and is not carried over"));
                None
            }
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.left.contains_key(key)
    }

    /// Sets a key of ours.
    pub(super) fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.made.insert(key.to_owned(), value.into());
    }

    pub(super) fn made(&self, key: &str) -> Option<&Value> {
        self.made.get(key)
    }

    /// Sets a member of an object of ours, such as `tools.allow`.
    pub(super) fn put_in(&mut self, key: &str, member: &str, value: Value) {
        let object = self.made.entry(key).or_insert_with(|| Map::new().into());
        if let Some(object) = object.as_object_mut() {
            object.insert(member.to_owned(), value);
        }
    }

    /// Carries a key over under a name of ours, its value as it is.
    pub(super) fn carry(&mut self, from: &str, to: &str) {
        if let Some(value) = self.take(from) {
            self.put(to, value);
        }
    }

    /// Carries a time over that counts `parts` to the second.
    pub(super) fn carry_time(&mut self, from: &str, parts: u32, to: &str) {
        let Some(value) = self.take(from) else { return };
        match value.as_f64().filter(|time| time.is_finite() && *time > 0.0) {
            Some(time) => self.put(to, seconds(time / f64::from(parts))),
            None => self.note(format!("`{from}` is not a time and is not carried over")),
        }
    }

    /// Carries a list of tool names over into `tools`.
    pub(super) fn carry_tools(&mut self, from: &str, member: &str) {
        let Some(value) = self.take(from) else { return };
        let names = value.as_array().filter(|names| names.iter().all(Value::is_string));
        match names {
            Some(_) => self.put_in("tools", member, value),
            None => self.note(format!("`{from}` is not a list of names and is not carried over")),
        }
    }

    /// Carries on or off over, which hosts write as `disabled` or as `enabled`.
    pub(super) fn carry_switch(&mut self) {
        let disabled = self.take("disabled").and_then(|value| value.as_bool());
        let enabled = self.take("enabled").and_then(|value| value.as_bool());
        if disabled == Some(true) || enabled == Some(false) {
            self.put("disabled", true);
        }
    }

    /// Leaves a key behind and says why.
    pub(super) fn leave(&mut self, key: &str, why: &str) {
        if self.take(key).is_some() {
            self.note(format!("`{key}` is not carried over: {why}"));
        }
    }

    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// The server in our words and what is to be said of it, the keys nobody took among it.
    pub(super) fn finish(mut self) -> (Map<String, Value>, Vec<String>) {
        let unknown: Vec<_> = self.left.keys().cloned().collect();
        for key in unknown {
            self.note(format!("`{key}` has no meaning here and is not carried over"));
        }
        (self.made, self.notes)
    }
}

/// A number of seconds, without a fraction where there is none.
fn seconds(time: f64) -> Value {
    /// The largest time that is worth writing: beyond it, a wait has no end that anyone sees.
    const CENTURY: f64 = 100.0 * 366.0 * 86_400.0;
    let time = time.min(CENTURY);
    let text = format!("{time}");
    text.parse::<u64>().map_or_else(|_| Value::from(time), Value::from)
}
