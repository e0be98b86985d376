//! Masks the values of `env` and `headers` in messages, which can repeat text of servers.

use std::borrow::Cow;
use std::sync::{Arc, PoisonError, RwLock};

use innkeeper_host::Config;
use innkeeper_host::config::{Secret, TransportConfig};
use serde_json::Value;

/// The values that no message shows; clones share them. Results of servers are no messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct SecretMask(Arc<RwLock<MaskedValues>>);

#[derive(Debug, Default)]
struct MaskedValues {
    /// Values of variables and headers. Parts of a value may be common words.
    values: Vec<Secret>,
    /// The words of headers, such as a token without its scheme. Parts of a token are secret too.
    header_words: Vec<Secret>,
}

impl SecretMask {
    /// Adds the values of a configuration, except for a value that is part of the name of a server:
    /// the messages need the name, and the name is not secret. Call this after the user has approved
    /// the launches, which must be shown as they are: a file could hide its command by repeating it
    /// in a variable.
    pub(crate) fn add_config(&self, config: &Config) {
        let mut masked = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for server in config.servers.values() {
            let values = match &server.transport {
                TransportConfig::Stdio { env, .. } => env,
                TransportConfig::Http { headers, .. }
                | TransportConfig::Sse { headers, .. }
                | TransportConfig::WebSocket { headers, .. } => {
                    let words = headers.values().flat_map(|value| value.expose().split(' '));
                    masked.header_words.extend(words.map(Secret::new));
                    headers
                }
                TransportConfig::InProcess => continue,
            };
            let values = values
                .values()
                .filter(|value| !config.servers.keys().any(|name| name.contains(value.expose())));
            masked.values.extend(values.cloned());
        }
        // A value that contains another value is masked first.
        masked.values.sort_by_key(|value| std::cmp::Reverse(value.expose().len()));
    }

    /// Returns the text with a mask in place of each value of at least eight characters.
    pub(crate) fn apply<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let masked = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if masked.values.is_empty() {
            return Cow::Borrowed(text);
        }
        let text = masked.values.iter().fold(text.to_owned(), |text, value| value.mask_whole(text));
        Cow::Owned(masked.header_words.iter().fold(text, |text, word| word.mask(text)))
    }

    /// Masks the texts of a JSON value.
    pub(crate) fn apply_to_json(&self, json: &mut Value) {
        match json {
            Value::String(text) => *text = self.apply(text).into_owned(),
            Value::Array(items) => items.iter_mut().for_each(|item| self.apply_to_json(item)),
            Value::Object(members) => {
                members.values_mut().for_each(|member| self.apply_to_json(member));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use innkeeper_host::Environment;
    use serde_json::json;

    use super::*;

    fn mask() -> SecretMask {
        let config = json!({"servers": {
            "postgres": {"command": "a", "env": {
                "USER": "postgres", "PASSWORD": "hunter2-hunter2", "LEVEL": "debug"}},
            "far": {"url": "https://a.example", "headers": {"Authorization": "Bearer 5d1c-secret"}},
        }});
        let config = Config::from_value(
            &config,
            "test",
            Path::new("/"),
            &Environment::from_pairs([("PATH", "/bin")]),
        )
        .unwrap();
        let mask = SecretMask::default();
        mask.add_config(&config);
        mask
    }

    #[test]
    fn values_of_variables_and_parts_of_headers_are_masked() {
        let mask = mask();
        assert_eq!(mask.apply("wrong password hunter2-hunter2!"), "wrong password ***!");
        assert_eq!(mask.apply("bad token `5d1c-secret`"), "bad token `***`");
        assert_eq!(mask.apply("got Bearer 5d1c-secret"), "got ***");
        assert_eq!(mask.apply("debug: hunter2"), "debug: hunter2");
    }

    #[test]
    fn the_name_of_a_server_stays() {
        assert_eq!(mask().apply("server `postgres` failed"), "server `postgres` failed");
    }

    #[test]
    fn without_a_configuration_the_text_is_borrowed() {
        assert!(matches!(SecretMask::default().apply("text"), Cow::Borrowed("text")));
    }
}
