//! Credentials that came in a result of one server and go out in arguments for another.
//!
//! The confused deputy of the MCP security chapter and OWASP MCP01: what one server gave in trust is
//! handed to another. Kept are fingerprints under a key of this process, never the credential.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::secrets::{known_by, parts, secrets};

/// Fingerprints that are kept; the oldest goes first. Some 64 KiB.
pub(super) const KEPT: usize = 1_024;

/// What one host remembers of its servers' credentials. Empty, it holds next to nothing.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    hasher: RandomState,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// Who gave each: what two servers gave may go to either.
    servers: HashMap<u64, Vec<Arc<str>>>,
    order: VecDeque<u64>,
}

impl Memory {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the credentials in a text that `server` gave; whether there are any.
    pub(super) fn take(&self, server: &Arc<str>, exact: &str) -> bool {
        let found = secrets(exact);
        let prints: Vec<u64> = found
            .iter()
            .flat_map(|secret| known_by(secret))
            .map(|part| self.hasher.hash_one(part))
            .collect();
        let mut kept = self.kept();
        let kept = &mut *kept;
        for print in prints {
            let owners = kept.servers.entry(print).or_default();
            if owners.is_empty() {
                kept.order.push_back(print);
            }
            if !owners.contains(server) {
                owners.push(server.clone());
            }
            if kept.order.len() > KEPT
                && let Some(oldest) = kept.order.pop_front()
            {
                kept.servers.remove(&oldest);
            }
        }
        !found.is_empty()
    }

    /// Whether a text for `server` has a credential that another one gave.
    pub(super) fn has(&self, server: &str, exact: &str) -> bool {
        if self.kept().servers.is_empty() {
            return false;
        }
        let prints: Vec<u64> = parts(exact).map(|part| self.hasher.hash_one(part)).collect();
        let kept = self.kept();
        let mut owners = prints.iter().filter_map(|print| kept.servers.get(print));
        owners.any(|owners| !owners.iter().any(|owner| **owner == *server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(number: usize) -> String {
        format!("token={number:05}aBcDeFgHiJkLmNoPq")
    }

    #[test]
    fn a_credential_of_one_server_is_known_in_what_is_for_another_and_not_for_its_own() {
        let (memory, one) = (Memory::default(), Arc::from("one"));
        assert!(memory.take(&one, &format!("login done, {}", secret(1))));
        assert!(!memory.take(&one, "nothing here"));
        let carried = format!("https://a.example/?q={}&x=1", &secret(1)[6..]);
        assert!(memory.has("two", &carried));
        assert!(!memory.has("one", &carried));
        assert!(!memory.has("two", &secret(2)));
        assert!(memory.take(&Arc::from("two"), &secret(1)));
        assert!(!memory.has("one", &carried) && !memory.has("two", &carried), "both gave it");
        assert!(memory.has("three", &carried));
        assert!(!format!("{memory:?}").contains("aBcDeFgHiJ"), "the credential is not kept");
    }

    #[test]
    fn what_is_no_secret_of_a_credential_is_not_known_again() {
        let (memory, one) = (Memory::default(), Arc::from("one"));
        let address = "postgres://app:a8Kd02LmQz91XcVb73Nw@database.internal.example/customers-all";
        assert!(memory.take(&one, address));
        assert!(memory.has("two", "a8Kd02LmQz91XcVb73Nw"));
        assert!(!memory.has("two", "https://database.internal.example/customers-all"));
    }

    #[test]
    fn as_many_are_kept_as_the_limit_and_the_oldest_goes_first() {
        let (memory, one) = (Memory::default(), Arc::from("one"));
        assert!((0..KEPT).all(|number| memory.take(&one, &secret(number))));
        assert!(memory.has("two", &secret(0)));
        memory.take(&one, &secret(KEPT));
        assert!(!memory.has("two", &secret(0)));
        assert!(memory.has("two", &secret(1)) && memory.has("two", &secret(KEPT)));
    }
}
