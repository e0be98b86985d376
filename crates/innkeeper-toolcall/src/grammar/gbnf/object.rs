//! Objects: their properties in order, the required ones always, the others or not.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::convert::Converter;
use super::rules::{Shared, in_class, literal};
use crate::grammar::Effect;
use crate::grammar::reference::deeper;

/// The longest listed name, in bytes, that other names are told from letter by letter.
const LONGEST: usize = 128;

impl Converter<'_> {
    /// An object of the schema.
    pub(super) fn object(&mut self, schema: &Map<String, Value>, at: &str) -> String {
        let none = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&none);
        let mut required: Vec<&str> = Vec::new();
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            required.extend(name.as_str().filter(|name| !required.contains(name)));
        }
        let extra = self.extra(schema, properties, at);
        let space = self.rules.shared(Shared::Space);
        let mut members: Vec<(String, bool)> = Vec::new();
        for (name, value) in properties {
            let needed = required.contains(&name.as_str());
            if *value == Value::Bool(false) && !needed {
                continue;
            }
            let value = self.inside(value, &deeper(&deeper(at, "properties"), name));
            members.push((self.member(name, &value), needed));
        }
        for name in required.iter().filter(|name| !properties.contains_key(**name)) {
            let value = match schema.get("additionalProperties") {
                Some(of @ Value::Object(_)) => self.inside(of, &deeper(at, "additionalProperties")),
                Some(Value::Bool(false)) => {
                    self.lose(at, "additionalProperties", Effect::Dropped);
                    self.rules.shared(Shared::Value)
                }
                _ => self.rules.shared(Shared::Value),
            };
            members.push((self.member(name, &value), true));
        }
        let extra = extra.map(|extra| {
            let more = self.rules.rule("more", format!(r#""," {space} {extra}"#));
            (extra, more)
        });
        self.sequence(&members, extra)
    }

    /// A member's rule: its name and its value.
    fn member(&mut self, name: &str, value: &str) -> String {
        let space = self.rules.shared(Shared::Space);
        let key = literal(&Value::from(name).to_string());
        self.rules.rule(name, format!(r#"{key} ":" {space} {value}"#))
    }

    /// The members between braces. Up to the first one that is required, each may be the first; from
    /// there on each is behind a comma.
    fn sequence(&mut self, members: &[(String, bool)], extra: Option<(String, String)>) -> String {
        let space = self.rules.shared(Shared::Space);
        let (any, more) = extra.map_or((None, String::new()), |(one, more)| {
            (Some(format!("{one} {more}*")), format!(" {more}*"))
        });
        // What may come behind the members from here to the end, as a rule each.
        let mut behind = more;
        let mut firsts: Vec<(String, bool)> = Vec::new();
        for (at, (member, needed)) in members.iter().enumerate().rev() {
            firsts.push((format!("{member}{behind}"), *needed));
            if at > 0 {
                let optional = if *needed { "" } else { "?" };
                let body = format!(r#"("," {space} {member}){optional}{behind}"#);
                behind = format!(" {}", self.rules.rule("rest", body));
            }
        }
        let mut ways: Vec<String> = Vec::new();
        for (way, needed) in firsts.into_iter().rev() {
            ways.push(way);
            if needed {
                return format!(r#""{{" ({}) "}}""#, ways.join(" | "));
            }
        }
        ways.extend(any);
        if ways.is_empty() {
            return r#""{}""#.to_owned();
        }
        format!(r#""{{" ({})? "}}""#, ways.join(" | "))
    }

    /// The rule of a member that is not listed, where such are allowed.
    fn extra(
        &mut self,
        schema: &Map<String, Value>,
        properties: &Map<String, Value>,
        at: &str,
    ) -> Option<String> {
        let any = Value::Bool(true);
        let of =
            match schema.get("additionalProperties") {
                Some(Value::Bool(false)) => return None,
                // Without any property listed, an object that may have none would be no use.
                None if properties.is_empty() && !schema.contains_key("required") => {
                    if at.is_empty() { return None } else { &any }
                }
                None => return None,
                Some(of) => of,
            };
        let names: BTreeSet<&str> = properties.keys().map(String::as_str).collect();
        let letters: usize = names.iter().map(|name| name.len()).sum();
        if names.iter().any(|name| name.len() > LONGEST) || !self.spend(letters) {
            self.lose(at, "additionalProperties", Effect::Narrowed);
            return None;
        }
        let value = self.inside(of, &deeper(at, "additionalProperties"));
        let key = self.other_than(&names);
        let space = self.rules.shared(Shared::Space);
        Some(self.rules.rule("other", format!(r#""\"" {key} "\":" {space} {value}"#)))
    }

    /// The rule of a key that is none of these, written without escapes.
    fn other_than(&mut self, names: &BTreeSet<&str>) -> String {
        let any = self.rules.shared(Shared::KeyChar);
        if names.is_empty() {
            return format!("{any}*");
        }
        // A name that needs an escape is never met, since these keys have none.
        let plain = |letter: &char| !matches!(letter, '"' | '\\' | '\0'..='\x1F' | '\x7F');
        let firsts = names.iter().filter_map(|name| name.chars().next());
        let mut letters: Vec<char> = firsts.filter(plain).collect();
        letters.dedup();
        let mut ways: Vec<String> = Vec::new();
        if !names.contains("") {
            ways.push(String::new());
        }
        for letter in &letters {
            let rests = names.iter().filter_map(|name| name.strip_prefix(*letter)).collect();
            ways.push(format!("[{}] {}", in_class(*letter), self.other_than(&rests)));
        }
        let known: String = letters.iter().map(|letter| in_class(*letter)).collect();
        ways.push(format!(r#"[^"\\\x7F\x00-\x1F{known}] {any}*"#));
        self.rules.rule("key", ways.join(" | "))
    }
}
