//! The API keys of clients.

use ring::digest::{SHA256, digest};
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use super::ApiKey;
use crate::principal::Principal;

/// The hashes of all keys with their principals.
#[derive(Debug)]
pub(super) struct ApiKeyTable(Vec<ApiKey>);

impl ApiKeyTable {
    pub(super) fn new(keys: Vec<ApiKey>) -> Self {
        Self(keys)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the principal of a key.
    ///
    /// The time does not depend on the key: the comparison reads every byte of every hash.
    pub(super) fn find(&self, key: &str) -> Option<Principal> {
        let presented = digest(&SHA256, key.as_bytes());
        let mut found = Choice::from(0);
        let mut position = 0_u64;
        for (index, known) in (0_u64..).zip(&self.0) {
            let is_equal = known.sha256.ct_eq(presented.as_ref());
            position.conditional_assign(&index, is_equal);
            found |= is_equal;
        }
        let position = usize::try_from(position).ok().filter(|_| bool::from(found))?;
        self.0.get(position).map(|key| Principal::new(key.principal.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(keys: &[&str]) -> ApiKeyTable {
        ApiKeyTable::new(
            keys.iter()
                .map(|key| ApiKey {
                    principal: format!("client of {key}").into(),
                    sha256: digest(&SHA256, key.as_bytes()).as_ref().try_into().unwrap(),
                })
                .collect(),
        )
    }

    #[test]
    fn each_key_has_its_own_principal_and_another_text_has_none() {
        let keys = table(&["first", "second", "third"]);
        for key in ["first", "second", "third"] {
            let principal = keys.find(key).unwrap();
            assert_eq!(principal.id().as_ref(), format!("client of {key}"));
        }
        for other in ["", "firs", "first ", "First", "firstsecond"] {
            assert_eq!(keys.find(other), None, "{other}");
        }
        assert_eq!(table(&[]).find("first"), None);
    }

    /// Attack: remote | a client measures the time of rejections to find a key byte by byte | the
    /// hashes are compared in constant time, and every hash is compared | Secrets stay with their
    /// owner
    #[test]
    fn keys_are_compared_in_constant_time_and_all_of_them() {
        let source = include_str!("api_keys.rs");
        let find = source.split("fn find").nth(1).unwrap().split("#[cfg(test)]").next().unwrap();
        assert!(find.contains(".ct_eq(") && find.contains("conditional_assign("), "{find}");
        for early in ["==", "!=", "return", "break", ".find(", ".any(", ".position("] {
            assert!(!find.contains(early), "`{early}` ends the comparison early: {find}");
        }
    }
}
