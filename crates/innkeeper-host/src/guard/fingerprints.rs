//! Detects credentials that pass from one server's results to another server's arguments.
//!
//! The attack is the confused deputy of the MCP security chapter and of OWASP MCP01. The module
//! stores fingerprints under a key of this process, never the credential.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::secrets::{find_secrets, fingerprint_parts, split_parts};

/// Maximum number of stored fingerprints, about 64 KiB; the oldest are evicted first.
pub(super) const MAX_FINGERPRINTS: usize = 1_024;

/// The fingerprints of the credentials of a host's servers. An empty table uses almost no memory.
#[derive(Debug, Default)]
pub(crate) struct SecretFingerprints {
    hasher: RandomState,
    table: Mutex<FingerprintTable>,
}

#[derive(Debug, Default)]
struct FingerprintTable {
    /// Servers that sent each credential: a credential from two servers may go to either.
    sources: HashMap<u64, Vec<Arc<str>>>,
    order: VecDeque<u64>,
}

impl SecretFingerprints {
    fn lock_table(&self) -> MutexGuard<'_, FingerprintTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores the fingerprints of the credentials in a text of `server`; returns whether there are
    /// any.
    pub(super) fn remember(&self, server: &Arc<str>, exact: &str) -> bool {
        let secrets = find_secrets(exact);
        let prints: Vec<u64> = secrets
            .iter()
            .flat_map(|secret| fingerprint_parts(secret))
            .map(|part| self.hasher.hash_one(part))
            .collect();
        let mut table = self.lock_table();
        let table = &mut *table;
        for print in prints {
            let owners = table.sources.entry(print).or_default();
            if owners.is_empty() {
                table.order.push_back(print);
            }
            if !owners.contains(server) {
                owners.push(server.clone());
            }
            if table.order.len() > MAX_FINGERPRINTS
                && let Some(oldest) = table.order.pop_front()
            {
                table.sources.remove(&oldest);
            }
        }
        !secrets.is_empty()
    }

    /// Returns whether a text for `server` contains a credential of another server.
    pub(super) fn has_foreign_secret(&self, server: &str, exact: &str) -> bool {
        if self.lock_table().sources.is_empty() {
            return false;
        }
        let prints: Vec<u64> = split_parts(exact).map(|part| self.hasher.hash_one(part)).collect();
        let table = self.lock_table();
        let mut owners = prints.iter().filter_map(|print| table.sources.get(print));
        owners.any(|owners| !owners.iter().any(|owner| **owner == *server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(number: usize) -> String {
        format!("token={number:05}aBcDeFgHiJkLmNoPq")
    }

    /// Attack: secrets | a credential that one server returned is part of a URL for another server
    /// | the guard recognizes the credential, and stores a hash only | Secrets stay with their
    /// owner
    #[test]
    fn a_credential_of_one_server_is_known_in_what_is_for_another_and_not_for_its_own() {
        let (fingerprints, one) = (SecretFingerprints::default(), Arc::from("one"));
        assert!(fingerprints.remember(&one, &format!("login done, {}", secret(1))));
        assert!(!fingerprints.remember(&one, "nothing here"));
        let url = format!("https://a.example/?q={}&x=1", &secret(1)[6..]);
        assert!(fingerprints.has_foreign_secret("two", &url));
        assert!(!fingerprints.has_foreign_secret("one", &url));
        assert!(!fingerprints.has_foreign_secret("two", &secret(2)));
        assert!(fingerprints.remember(&Arc::from("two"), &secret(1)));
        assert!(
            !fingerprints.has_foreign_secret("one", &url)
                && !fingerprints.has_foreign_secret("two", &url),
            "both gave it"
        );
        assert!(fingerprints.has_foreign_secret("three", &url));
        assert!(!format!("{fingerprints:?}").contains("aBcDeFgHiJ"), "the credential is not kept");
    }

    #[test]
    fn what_is_no_secret_of_a_credential_is_not_known_again() {
        let (fingerprints, one) = (SecretFingerprints::default(), Arc::from("one"));
        let address = "postgres://app:a8Kd02LmQz91XcVb73Nw@database.internal.example/customers-all";
        assert!(fingerprints.remember(&one, address));
        assert!(fingerprints.has_foreign_secret("two", "a8Kd02LmQz91XcVb73Nw"));
        assert!(
            !fingerprints
                .has_foreign_secret("two", "https://database.internal.example/customers-all")
        );
    }

    #[test]
    fn as_many_are_kept_as_the_limit_and_the_oldest_goes_first() {
        let (fingerprints, one) = (SecretFingerprints::default(), Arc::from("one"));
        assert!((0..MAX_FINGERPRINTS).all(|number| fingerprints.remember(&one, &secret(number))));
        assert!(fingerprints.has_foreign_secret("two", &secret(0)));
        fingerprints.remember(&one, &secret(MAX_FINGERPRINTS));
        assert!(!fingerprints.has_foreign_secret("two", &secret(0)));
        assert!(
            fingerprints.has_foreign_secret("two", &secret(1))
                && fingerprints.has_foreign_secret("two", &secret(MAX_FINGERPRINTS))
        );
    }
}
