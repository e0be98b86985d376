//! Checks the settings of the console.

use super::indexed;
use crate::checks::entry_checker::EntryChecker;
use crate::form::{raw, unknown_keys};
use crate::settings::serve::{ConsoleConfig, ServeAuth};
use crate::text::key_location::{PathSegment, key_segment};
use crate::text::key_path::escape_for_message;

/// The id of the user of a gateway without authentication.
const LOCAL_USER: &str = "local";

/// The start of the ids of clients with a token.
const TOKEN_PREFIX: &str = "oauth:";

/// Returns whether a client may use only some servers or endpoints.
fn is_bound(auth: &ServeAuth, name: &str) -> bool {
    let mut keys = auth.api_keys.iter().filter(|key| key.principal == name);
    match name.starts_with(TOKEN_PREFIX) {
        true => auth.oauth.as_ref().is_some_and(|oauth| oauth.binding.is_bound()),
        false => keys.any(|key| key.binding.is_bound()),
    }
}

/// Returns the settings. A misspelled operator is an error: nobody could use the console.
pub(super) fn console(
    checker: &mut EntryChecker<'_>,
    typed: raw::Console,
    auth: &ServeAuth,
) -> ConsoleConfig {
    let keys: Vec<&str> = auth.api_keys.iter().map(|key| key.principal.as_str()).collect();
    let operators: Vec<(usize, String)> = indexed(typed.operators).collect();
    for (index, name) in &operators {
        let is_known = match name.strip_prefix(TOKEN_PREFIX) {
            Some(identity) => !identity.is_empty() && auth.oauth.is_some(),
            None => keys.contains(&&**name) || name == LOCAL_USER && !auth.is_configured(),
        };
        if is_known {
            continue;
        }
        let path = [key_segment("console"), key_segment("operators"), PathSegment::Index(*index)];
        let name = escape_for_message(name);
        let message = match name.strip_prefix(TOKEN_PREFIX) {
            Some(_) => format!("no client is `{name}`: `serve.auth.oauth` is not set"),
            None => format!("no key of `serve.auth.apiKeys` has the principal `{name}`"),
        };
        checker.error(&path, message);
        if let Some(similar) = unknown_keys::similar(&name, keys.iter().copied()) {
            checker.report.hint(format!("did you mean `{similar}`?"));
        }
    }
    for (index, name) in operators.iter().filter(|(_, name)| is_bound(auth, name)) {
        let path = [key_segment("console"), key_segment("operators"), PathSegment::Index(*index)];
        let message = format!(
            "the console refuses `{}`: it shows all servers, and the client is bound to some",
            escape_for_message(name)
        );
        checker.warning(&path, message);
    }
    ConsoleConfig {
        enabled: typed.enabled.unwrap_or(true),
        operators: operators.into_iter().map(|(_, name)| name).collect(),
    }
}
