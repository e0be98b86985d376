//! Conversion of objects: properties in order, required or optional.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::convert::SchemaConverter;
use super::rules::{SharedRule, escape_in_class, literal};
use crate::grammar::GrammarLossKind;
use crate::grammar::reference::join_pointer;

/// Maximum bytes of a property name that additional property names can be distinguished from.
const MAX_EXCLUDED_NAME_BYTES: usize = 128;

impl SchemaConverter<'_> {
    pub(super) fn convert_object(&mut self, schema: &Map<String, Value>, at: &str) -> String {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let mut required: Vec<&str> = Vec::new();
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            required.extend(name.as_str().filter(|name| !required.contains(name)));
        }
        let extra = self.additional_member_rule(schema, properties, at);
        let space = self.rules.use_shared(SharedRule::Space);
        let mut members: Vec<(String, bool)> = Vec::new();
        for (name, value) in properties {
            let needed = required.contains(&name.as_str());
            if *value == Value::Bool(false) && !needed {
                continue;
            }
            let value =
                self.convert_nested(value, &join_pointer(&join_pointer(at, "properties"), name));
            members.push((self.member_rule(name, &value), needed));
        }
        for name in required.iter().filter(|name| !properties.contains_key(**name)) {
            let value = match schema.get("additionalProperties") {
                Some(property_schema @ Value::Object(_)) => {
                    self.convert_nested(property_schema, &join_pointer(at, "additionalProperties"))
                }
                Some(Value::Bool(false)) => {
                    self.report_loss(at, "additionalProperties", GrammarLossKind::Dropped);
                    self.rules.use_shared(SharedRule::Value)
                }
                _ => self.rules.use_shared(SharedRule::Value),
            };
            members.push((self.member_rule(name, &value), true));
        }
        let extra = extra.map(|extra| {
            let more = self.rules.add_rule("more", format!(r#""," {space} {extra}"#));
            (extra, more)
        });
        self.member_sequence(&members, extra)
    }

    fn member_rule(&mut self, name: &str, value: &str) -> String {
        let space = self.rules.use_shared(SharedRule::Space);
        let key = literal(&Value::from(name).to_string());
        self.rules.add_rule(name, format!(r#"{key} ":" {space} {value}"#))
    }

    /// Returns the members between braces. Each member up to the first required member may be
    /// first; the later members follow a comma.
    fn member_sequence(
        &mut self,
        members: &[(String, bool)],
        extra: Option<(String, String)>,
    ) -> String {
        let space = self.rules.use_shared(SharedRule::Space);
        let (any, more) = extra.map_or((None, String::new()), |(first_member, more)| {
            (Some(format!("{first_member} {more}*")), format!(" {more}*"))
        });
        // Rule of everything that may follow the current member.
        let mut suffix = more;
        let mut firsts: Vec<(String, bool)> = Vec::new();
        for (at, (member, needed)) in members.iter().enumerate().rev() {
            firsts.push((format!("{member}{suffix}"), *needed));
            if at > 0 {
                let optional = if *needed { "" } else { "?" };
                let body = format!(r#"("," {space} {member}){optional}{suffix}"#);
                suffix = format!(" {}", self.rules.add_rule("rest", body));
            }
        }
        let mut alternatives: Vec<String> = Vec::new();
        for (alternative, needed) in firsts.into_iter().rev() {
            alternatives.push(alternative);
            if needed {
                return format!(r#""{{" ({}) "}}""#, alternatives.join(" | "));
            }
        }
        alternatives.extend(any);
        if alternatives.is_empty() {
            return r#""{}""#.to_owned();
        }
        format!(r#""{{" ({})? "}}""#, alternatives.join(" | "))
    }

    /// Returns the rule of an additional member, if the schema allows additional members.
    fn additional_member_rule(
        &mut self,
        schema: &Map<String, Value>,
        properties: &Map<String, Value>,
        at: &str,
    ) -> Option<String> {
        let any = Value::Bool(true);
        let additional =
            match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => return None,
                // An object schema without properties must allow additional members, or only `{}`
                // would match.
                None if properties.is_empty() && !schema.contains_key("required") => {
                    if at.is_empty() { return None } else { &any }
                }
                None => return None,
                Some(additional) => additional,
            };
        let names: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        let letters: usize = names.iter().map(|name| name.len()).sum();
        if names.iter().any(|name| name.len() > MAX_EXCLUDED_NAME_BYTES) || !self.spend(letters) {
            self.report_loss(at, "additionalProperties", GrammarLossKind::Narrowed);
            return None;
        }
        let value = self.convert_nested(additional, &join_pointer(at, "additionalProperties"));
        let key = self.key_other_than(&names);
        let space = self.rules.use_shared(SharedRule::Space);
        Some(self.rules.add_rule("other", format!(r#""\"" {key} "\":" {space} {value}"#)))
    }

    /// Returns the rule of a key, written without escapes, that differs from all `names`.
    fn key_other_than(&mut self, names: &BTreeSet<&str>) -> String {
        let any = self.rules.use_shared(SharedRule::KeyChar);
        if names.is_empty() {
            return format!("{any}*");
        }
        // These keys have no escapes, so they never equal a name that needs an escape.
        let firsts = names.iter().filter_map(|name| name.chars().next());
        let mut letters: Vec<char> = firsts
            .filter(|letter| !matches!(letter, '"' | '\\' | '\0'..='\x1F' | '\x7F'))
            .collect();
        letters.dedup();
        let mut alternatives: Vec<String> = Vec::new();
        if !names.contains("") {
            alternatives.push(String::new());
        }
        for letter in &letters {
            let rests = names.iter().filter_map(|name| name.strip_prefix(*letter)).collect();
            alternatives.push(format!(
                "[{}] {}",
                escape_in_class(*letter),
                self.key_other_than(&rests)
            ));
        }
        let excluded: String = letters.iter().map(|letter| escape_in_class(*letter)).collect();
        alternatives.push(format!(r#"[^"\\\x7F\x00-\x1F{excluded}] {any}*"#));
        self.rules.add_rule("key", alternatives.join(" | "))
    }
}
