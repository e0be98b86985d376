//! Converts one server definition and notes every key that is not imported.

use innkeeper_host::config::{Diagnostic, ForeignDefinition, foreign};
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

    pub(super) fn get(&self, key: &str) -> Option<&Value> {
        self.remaining.get(key)
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.remaining.contains_key(key)
    }

    /// Sets a key of the converted definition.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.converted.insert(key.to_owned(), value.into());
    }

    /// Sets a member of an object in the converted definition, such as `tools.allow`.
    pub(super) fn set_member(&mut self, key: &str, member: &str, value: Value) {
        let object = self.converted.entry(key).or_insert_with(|| Map::new().into());
        if let Some(object) = object.as_object_mut() {
            object.insert(member.to_owned(), value);
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

    /// Converts the spellings of other hosts to the keys of `mcp.json`, as the reader of `mcp.json`
    /// does. Returns what is unclear, which is a reason not to import the server.
    pub(super) fn rename_keys(&mut self, milliseconds: bool) -> Vec<String> {
        let definition = std::mem::take(&mut self.remaining);
        let read = ForeignDefinition::read(definition, milliseconds);
        self.remaining = read.keys;
        for key in read.unknown_keys {
            let reason =
                if foreign::is_ignored(&key) { "has no meaning here" } else { "is unknown" };
            self.add_note(format!("`{key}` {reason}; not imported"));
        }
        let (errors, warnings): (Vec<_>, Vec<_>) =
            read.problems.into_iter().partition(Diagnostic::is_error);
        self.notes.extend(warnings.iter().filter(|_| !milliseconds).map(problem_text));
        errors.iter().map(problem_text).collect()
    }

    /// Notes that the server is disabled.
    pub(super) fn note_disabled(&mut self) {
        if self.remaining.get("disabled") == Some(&Value::Bool(true)) {
            self.add_note("imported with `\"disabled\": true`, as in the file");
        } else {
            self.remaining.shift_remove("disabled");
        }
    }

    pub(super) fn skip(&mut self, key: &str, reason: &str) {
        if self.take(key).is_some() {
            self.add_note(format!("`{key}` is not imported: {reason}"));
        }
    }

    pub(super) fn add_note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Returns the converted definition and its notes, with a note for each part that does not match
    /// the schema.
    ///
    /// # Errors
    ///
    /// Returns what is wrong with a part that restricts the server.
    pub(super) fn finish(mut self) -> Result<(Map<String, Value>, Vec<String>), String> {
        for (key, value) in std::mem::take(&mut self.remaining) {
            match (self.converted.get_mut(&key), value) {
                (Some(Value::Object(existing)), Value::Object(members)) => existing.extend(members),
                (_, value) => drop(self.converted.insert(key, value)),
            }
        }
        for problem in foreign::remove_invalid_parts(&mut self.converted) {
            let text = format!("`{}`: {}", problem.key, problem.message);
            if RESTRICTIONS.iter().any(|key| problem.key.starts_with(key)) {
                return Err(text);
            }
            self.notes.push(format!("{text}; not imported"));
        }
        Ok((self.converted, self.notes))
    }
}

/// Keys that restrict what a server may do.
const RESTRICTIONS: [&str; 4] = ["disabled", "guard", "sandbox", "tools"];

/// Returns a number of seconds; a whole number has no fraction.
fn seconds_value(time: f64) -> Value {
    /// Maximum duration in seconds: 100 years. A longer timeout never expires in practice.
    const MAX_SECONDS: f64 = 100.0 * 366.0 * 86_400.0;
    let time = time.min(MAX_SECONDS);
    let text = format!("{time}");
    text.parse::<u64>().map_or_else(|_| Value::from(time), Value::from)
}

fn problem_text(problem: &Diagnostic) -> String {
    format!("`{}`: {}", problem.key, problem.message)
}
