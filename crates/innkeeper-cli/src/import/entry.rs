//! Converts one server definition and notes every key that is not imported.

use serde_json::{Map, Value};

/// A server definition during conversion.
#[derive(Debug)]
pub(super) struct ServerEntry {
    remaining: Map<String, Value>,
    converted: Map<String, Value>,
    notes: Vec<String>,
}

impl ServerEntry {
    pub(super) fn new(definition: Map<String, Value>) -> Self {
        Self { remaining: definition, converted: Map::new(), notes: Vec::new() }
    }

    /// Removes a key from the source and returns its value.
    pub(super) fn take(&mut self, key: &str) -> Option<Value> {
        self.remaining.shift_remove(key)
    }

    /// Adds a key to the source, in the form that the other conversions expect.
    pub(super) fn put_back(&mut self, key: &str, value: Value) {
        self.remaining.insert(key.to_owned(), value);
    }

    /// Removes the first of several spellings; other spellings stay and get a note.
    pub(super) fn take_any(&mut self, keys: &[&str]) -> Option<Value> {
        keys.iter().find_map(|key| self.take(key))
    }

    /// Removes a key with a string value; adds a note for any other type.
    pub(super) fn take_string(&mut self, key: &str) -> Option<String> {
        match self.take(key)? {
            Value::String(text) => Some(text),
            _ => {
                self.add_note(format!("`{key}` is not a string; not imported"));
                None
            }
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.remaining.contains_key(key)
    }

    /// Sets a key of the converted definition.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.converted.insert(key.to_owned(), value.into());
    }

    pub(super) fn converted(&self, key: &str) -> Option<&Value> {
        self.converted.get(key)
    }

    /// Sets a member of an object in the converted definition, such as `tools.allow`.
    pub(super) fn set_member(&mut self, key: &str, member: &str, value: Value) {
        let object = self.converted.entry(key).or_insert_with(|| Map::new().into());
        if let Some(object) = object.as_object_mut() {
            object.insert(member.to_owned(), value);
        }
    }

    /// Copies a value to a key of the converted definition.
    pub(super) fn convert(&mut self, from: &str, to: &str) {
        if let Some(value) = self.take(from) {
            self.set(to, value);
        }
    }

    /// Converts a duration to seconds; the number of source units per second is given.
    pub(super) fn convert_duration(&mut self, from: &str, units_per_second: u32, to: &str) {
        let Some(value) = self.take(from) else { return };
        match value.as_f64().filter(|time| time.is_finite() && *time > 0.0) {
            Some(time) => self.set(to, seconds_value(time / f64::from(units_per_second))),
            None => self.add_note(format!("`{from}` is not a number; not imported")),
        }
    }

    /// Copies a list of tool names to a member of `tools`.
    pub(super) fn convert_tools(&mut self, from: &str, member: &str) {
        let Some(value) = self.take(from) else { return };
        let names = value.as_array().filter(|names| names.iter().all(Value::is_string));
        match names {
            Some(_) => self.set_member("tools", member, value),
            None => self.add_note(format!("`{from}` is not a list of names; not imported")),
        }
    }

    /// Converts `disabled` or `enabled`.
    pub(super) fn convert_disabled(&mut self) {
        let disabled = self.take("disabled").and_then(|value| value.as_bool());
        let enabled = self.take("enabled").and_then(|value| value.as_bool());
        if disabled == Some(true) || enabled == Some(false) {
            self.set("disabled", true);
            self.add_note("imported with `\"disabled\": true`, as in the file");
        }
    }

    /// Skips a key and notes the reason.
    pub(super) fn skip(&mut self, key: &str, reason: &str) {
        if self.take(key).is_some() {
            self.add_note(format!("`{key}` is not imported: {reason}"));
        }
    }

    pub(super) fn add_note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Returns the converted definition and its notes; adds a note for each unused key.
    pub(super) fn finish(mut self) -> (Map<String, Value>, Vec<String>) {
        let unknown: Vec<_> = self.remaining.keys().cloned().collect();
        for key in unknown {
            self.add_note(format!("`{key}` is unknown; not imported"));
        }
        (self.converted, self.notes)
    }
}

/// Returns a number of seconds; a whole number has no fraction.
fn seconds_value(time: f64) -> Value {
    /// Maximum duration in seconds: 100 years. A longer timeout never expires in practice.
    const MAX_SECONDS: f64 = 100.0 * 366.0 * 86_400.0;
    let time = time.min(MAX_SECONDS);
    let text = format!("{time}");
    text.parse::<u64>().map_or_else(|_| Value::from(time), Value::from)
}
