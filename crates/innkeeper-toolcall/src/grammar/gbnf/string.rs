//! Conversion of strings: lengths and formats.

use serde_json::{Map, Value};

use super::convert::SchemaConverter;
use super::rules::{SharedRule, repetition};
use crate::grammar::{GrammarLossKind, MAX_REPEATS};

const DATE: &str = r#"[0-9]{4} "-" (("0" [13578] | "1" [02]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]) | ("0" [469] | "11") "-" ("0" [1-9] | [12] [0-9] | "30") | "02-" ("0" [1-9] | "1" [0-9] | "2" [0-8]))"#;
const TIME: &str = r#"([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9] ":" [0-5] [0-9] ("." [0-9]{1,6})? ("Z" | [-+] ([01] [0-9] | "2" [0-3]) ":" [0-5] [0-9])"#;
const HEX_DIGIT: &str = "[0-9a-fA-F]";
const IPV4_OCTET: &str = r#"("25" [0-5] | "2" [0-4] [0-9] | "1" [0-9]{2} | [1-9]? [0-9])"#;

impl SchemaConverter<'_> {
    pub(super) fn convert_string(&mut self, schema: &Map<String, Value>, pointer: &str) -> String {
        if let Some(format) = schema.get("format").and_then(Value::as_str) {
            if let Some(body) = format_pattern(format) {
                for keyword in ["minLength", "maxLength"] {
                    if schema.contains_key(keyword) {
                        self.report_loss(pointer, keyword, GrammarLossKind::Dropped);
                    }
                }
                let inner = self.rules.add_rule(format, body);
                return format!(r#""\"" {inner} "\"""#);
            }
            self.report_loss(pointer, "format", GrammarLossKind::Dropped);
        }
        let least = self.read_count(schema, pointer, "minLength").unwrap_or(0);
        let max_length = self.read_count(schema, pointer, "maxLength");
        if least == 0 && max_length.is_none() {
            return self.rules.use_shared(SharedRule::Text);
        }
        let limit = max_length
            .or_else(|| self.options.string_limit.map(|limit| limit.min(MAX_REPEATS).max(least)));
        let (times, inexact) = repetition(least, limit);
        if inexact {
            let keyword = if least > MAX_REPEATS { "minLength" } else { "maxLength" };
            self.report_loss(pointer, keyword, GrammarLossKind::Dropped);
        }
        let char = self.rules.use_shared(SharedRule::Char);
        format!(r#""\"" {char}{times} "\"""#)
    }
}

/// Returns the pattern of a string format, without quotes.
fn format_pattern(format: &str) -> Option<String> {
    match format {
        "date" => Some(DATE.to_owned()),
        "time" => Some(TIME.to_owned()),
        "date-time" => Some(format!(r#"{DATE} "T" {TIME}"#)),
        "uuid" => Some(format!(
            r#"{HEX_DIGIT}{{8}} "-" {HEX_DIGIT}{{4}} "-" {HEX_DIGIT}{{4}} "-" {HEX_DIGIT}{{4}} "-" {HEX_DIGIT}{{12}}"#
        )),
        "ipv4" => {
            Some(format!(r#"{IPV4_OCTET} "." {IPV4_OCTET} "." {IPV4_OCTET} "." {IPV4_OCTET}"#))
        }
        _ => None,
    }
}
