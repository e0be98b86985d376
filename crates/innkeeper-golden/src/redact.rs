//! Removes secrets from a recording.
//!
//! [`redact`] replaces the secrets that its caller knows, the literal secrets of the servers'
//! configuration, and whatever a detector takes for a credential. A secret is found in each encoding
//! that a tool or a model may give it, also inside another one, and also if a stream delivers it in
//! pieces. In the end the whole golden is searched again, and one secret is enough to fail: a
//! recording that cannot be cleaned is not written.
//!
//! Equal texts stay equal. A model request repeats the result of a tool, and a replay compares both,
//! so what a replacement looks like depends on the text alone.

mod body;
mod configuration;
mod document;
mod edits;
mod matcher;
mod needles;
mod places;
mod secrets;
mod strings;
mod units;

use std::collections::HashSet;
use std::fmt;

use serde_json::value::RawValue;

use crate::file::Golden;
use body::join;
use configuration::redact_servers;
use edits::apply;
use places::{Value, visit};
use secrets::{MAX_PASSES, Secrets};
use strings::Strings;

/// Maximum number of times that the detector sees the golden. Each time it may find what was behind
/// an earlier finding.
const MAX_ROUNDS: usize = 64;

/// A value that no recording contains.
///
/// A value of at least 6 bytes is replaced wherever it occurs. A shorter one (`1`, `true`) occurs
/// everywhere; it is replaced only where its place in the server configuration or in the base URL
/// says that it is a secret.
#[derive(Clone)]
pub struct KnownSecret {
    /// The name in the placeholder: `api-key`, `env:TOKEN`, `header:Authorization`. The words of a
    /// `header:` value are secrets too, if they have at least 8 bytes.
    pub name: String,
    /// The secret.
    pub value: String,
    /// Where the secret must be.
    pub place: SecretPlace,
}

impl fmt::Debug for KnownSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value: _, place } = self;
        f.debug_struct("KnownSecret")
            .field("name", name)
            .field("value", &"***")
            .field("place", place)
            .finish()
    }
}

/// Where a secret must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretPlace {
    /// Wherever it is.
    Anywhere,
    /// In the base URL and in each URL of a request to the model.
    BaseUrl,
}

/// A detector of credentials, which returns those in a text as they are written.
pub type FindCredentials = for<'t> fn(&'t str) -> Vec<&'t str>;

/// Why a recording cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedactError {
    /// A secret is still there after all replacements.
    #[error(
        "secret `{name}` is still in `{place}` after the redaction; record the run with a secret \
         that the server and the model do not repeat there"
    )]
    Leaked {
        /// The name of the secret.
        name: String,
        /// The JSON pointer of the value.
        place: String,
    },
    /// A secret is not where it must be, so it may be there in a form that nobody knows.
    #[error(
        "secret `{name}` was not found in `{place}`, which must contain it; write the secret in the \
         base URL as it is sent"
    )]
    NotFound {
        /// The name of the secret.
        name: String,
        /// The JSON pointer of the value.
        place: String,
    },
    /// A body that is no text contains a secret.
    #[error(
        "secret `{name}` is in `{place}`, which is not UTF-8; record the run without that response"
    )]
    Binary {
        /// The name of the secret.
        name: String,
        /// The JSON pointer of the chunks.
        place: String,
    },
    /// A chunk cannot be decoded.
    #[error("a chunk in `{place}` is not Base64; record the run again")]
    InvalidChunk {
        /// The JSON pointer of the chunks.
        place: String,
    },
    /// A JSON value would not be JSON any more.
    #[error("`{place}` is not JSON after the redaction; record the run without secrets in it")]
    InvalidJson {
        /// The JSON pointer of the value.
        place: String,
    },
    /// Two servers have the same name without the secrets in them.
    #[error("two servers are named `{name}` after the redaction; rename one of them")]
    SameName {
        /// The name of both.
        name: String,
    },
}

/// Replaces all secrets in a golden by placeholders such as `[redacted:api-key]`.
///
/// After an error the golden may contain secrets, and must not be written.
///
/// # Errors
///
/// A secret is still there, is not where it must be, or is in a body that is no text.
pub fn redact(
    golden: &mut Golden,
    secrets: &[KnownSecret],
    find_credentials: FindCredentials,
) -> Result<(), RedactError> {
    let mut redaction = Redaction::new(secrets, find_credentials);
    let server_config = redact_servers(golden.input.server_config.get(), &mut redaction.secrets);
    replace_json(&mut golden.input.server_config, server_config, "/input/server_config")?;
    for (at, served) in golden.served.iter_mut().enumerate() {
        let server_config = redact_servers(served.server_config.get(), &mut redaction.secrets);
        let place = format!("/served/{at}/server_config");
        replace_json(&mut served.server_config, server_config, &place)?;
    }
    for _ in 0..MAX_ROUNDS {
        let known = redaction.secrets.len();
        visit(golden, &mut |place, value| redaction.replace(place, value))?;
        visit(golden, &mut |place, value| redaction.collect(place, value, known))?;
        if redaction.secrets.len() == known {
            break;
        }
    }
    visit(golden, &mut |place, value| redaction.check(place, value))
}

/// Replaces the secrets in a value as [`redact`] does in a golden. What cannot be replaced stays.
pub fn redact_value(
    value: &mut Box<RawValue>,
    secrets: &[KnownSecret],
    find_credentials: FindCredentials,
) {
    let mut redaction = Redaction::new(secrets, find_credentials);
    for _ in 0..MAX_ROUNDS {
        let known = redaction.secrets.len();
        let replaced = redaction.replace("", Value::Json(value));
        let collected = redaction.collect("", Value::Json(value), known);
        if redaction.secrets.len() == known || replaced.and(collected).is_err() {
            break;
        }
    }
}

struct Redaction {
    secrets: Secrets,
    /// The secrets that every URL of the model must contain.
    of_urls: Vec<usize>,
    /// The places of URLs with the secrets that were found there.
    found_in_urls: HashSet<(String, usize)>,
}

impl Redaction {
    fn new(known: &[KnownSecret], find_credentials: FindCredentials) -> Self {
        let mut secrets = Secrets::new(find_credentials);
        let mut of_urls = Vec::new();
        for KnownSecret { name, value, place } in known {
            match place {
                SecretPlace::Anywhere => secrets.add(name, value),
                SecretPlace::BaseUrl => of_urls.extend(secrets.add_of_url(name, value)),
            }
        }
        Self { secrets, of_urls, found_in_urls: HashSet::new() }
    }

    fn leaked(&self, secret: usize, place: &str) -> RedactError {
        let name = self.secrets.name(secret).to_owned();
        RedactError::Leaked { name, place: place.to_owned() }
    }

    fn replace(&mut self, place: &str, value: Value<'_>) -> Result<(), RedactError> {
        match value {
            Value::Text(text) => {
                self.secrets.replace(text, Secrets::find);
            }
            Value::Url(url) => {
                let found = self.secrets.replace(url, Secrets::find_in_url);
                let found = found.into_iter().map(|secret| (place.to_owned(), secret));
                self.found_in_urls.extend(found);
            }
            Value::Json(json) => {
                for _ in 0..MAX_PASSES {
                    let edits = Strings::from_json(json.get()).edits(&self.secrets);
                    if edits.is_empty() {
                        break;
                    }
                    let text = apply(json.get(), &edits);
                    replace_json(json, text, place)?;
                }
            }
            Value::Body(chunks) => match join(chunks) {
                Some(Ok(mut body)) => {
                    if body.redact(&self.secrets) {
                        body.write_chunks(chunks);
                    }
                }
                Some(Err(body)) => {
                    if let Some(secret) = body.find_secret(&self.secrets) {
                        let name = self.secrets.name(secret).to_owned();
                        return Err(RedactError::Binary { name, place: place.to_owned() });
                    }
                }
                None => return Err(RedactError::InvalidChunk { place: place.to_owned() }),
            },
        }
        Ok(())
    }

    /// Shows what is at a place to the detector. What it finds of the first `known` secrets should
    /// have been replaced.
    fn collect(&mut self, place: &str, value: Value<'_>, known: usize) -> Result<(), RedactError> {
        let secrets = &mut self.secrets;
        let unreplaced = match value {
            Value::Text(text) | Value::Url(text) => secrets.collect(text, known),
            Value::Json(json) => Strings::from_json(json.get()).collect(secrets, known),
            Value::Body(chunks) => match join(chunks) {
                Some(Ok(body)) => body.strings().collect(secrets, known),
                Some(Err(body)) => body.collect(secrets, known),
                None => None,
            },
        };
        unreplaced.map_or(Ok(()), |secret| Err(self.leaked(secret, place)))
    }

    /// Searches a place again.
    fn check(&self, place: &str, value: Value<'_>) -> Result<(), RedactError> {
        let first =
            |text: &str| self.secrets.find(text.as_bytes()).first().map(|found| found.secret);
        let leak = match value {
            Value::Text(text) => first(text),
            Value::Url(url) => {
                self.check_url(place, url)?;
                first(url)
            }
            Value::Json(json) => Strings::from_json(json.get()).find_leak(&self.secrets),
            Value::Body(chunks) => match join(chunks) {
                Some(Ok(body)) => body.strings().find_leak(&self.secrets),
                Some(Err(body)) => body.find_secret(&self.secrets),
                None => None,
            },
        };
        leak.map_or(Ok(()), |secret| Err(self.leaked(secret, place)))
    }

    /// Checks that each secret of the base URL was found in a URL.
    fn check_url(&self, place: &str, url: &str) -> Result<(), RedactError> {
        self.of_urls
            .iter()
            .find(|secret| {
                !self.found_in_urls.contains(&(place.to_owned(), **secret))
                    && !url.contains(self.secrets.placeholder(**secret))
            })
            .map_or(Ok(()), |secret| {
                let name = self.secrets.name(*secret).to_owned();
                Err(RedactError::NotFound { name, place: place.to_owned() })
            })
    }
}

fn replace_json(json: &mut Box<RawValue>, text: String, place: &str) -> Result<(), RedactError> {
    if json.get() != text {
        *json = RawValue::from_string(text)
            .map_err(|_| RedactError::InvalidJson { place: place.to_owned() })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
