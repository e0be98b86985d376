//! Strings: their lengths and the formats that are held.

use serde_json::{Map, Value};

use super::convert::Converter;
use super::rules::{Shared, repeat};
use crate::grammar::{Effect, REPEATS};

const DATE: &str = r#"[0-9]{4} "-" (("0" [13578] | "1" [02]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]) | ("0" [469] | "11") "-" ("0" [1-9] | [12] [0-9] | "30") | "02-" ("0" [1-9] | "1" [0-9] | "2" [0-8]))"#;
const TIME: &str = r#"([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})? ("Z" | [-+] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])"#;
const HEX: &str = "[0-9a-fA-F]";
const BYTE: &str = r#"("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9]{2} | [1-9]? [0-9])"#;

impl Converter<'_> {
    /// A string of the schema.
    pub(super) fn string(&mut self, schema: &Map<String, Value>, pointer: &str) -> String {
        if let Some(format) = schema.get("format").and_then(Value::as_str) {
            if let Some(body) = formatted(format) {
                for keyword in ["minLength", "maxLength"] {
                    if schema.contains_key(keyword) {
                        self.lose(pointer, keyword, Effect::Dropped);
                    }
                }
                let inner = self.rules.rule(format, body);
                return format!(r#""\"" {inner} "\"""#);
            }
            self.lose(pointer, "format", Effect::Dropped);
        }
        let least = self.count(schema, pointer, "minLength").unwrap_or(0);
        let most = self.count(schema, pointer, "maxLength");
        if least == 0 && most.is_none() {
            return self.rules.shared(Shared::Text);
        }
        let limit =
            most.or_else(|| self.options.string_limit.map(|limit| limit.min(REPEATS).max(least)));
        let (times, inexact) = repeat(least, limit);
        if inexact {
            let keyword = if least > REPEATS { "minLength" } else { "maxLength" };
            self.lose(pointer, keyword, Effect::Dropped);
        }
        let char = self.rules.shared(Shared::Char);
        format!(r#""\"" {char}{times} "\"""#)
    }
}

/// The form of a string of this format, without its quotes.
fn formatted(format: &str) -> Option<String> {
    match format {
        "date" => Some(DATE.to_owned()),
        "time" => Some(TIME.to_owned()),
        "date-time" => Some(format!(r#"{DATE} "T" {TIME}"#)),
        "uuid" => Some(format!(
            r#"{HEX}{{8}} "-" {HEX}{{4}} "-" {HEX}{{4}} "-" {HEX}{{4}} "-" {HEX}{{12}}"#
        )),
        "ipv4" => Some(format!(r#"{BYTE} "." {BYTE} "." {BYTE} "." {BYTE}"#)),
        _ => None,
    }
}
