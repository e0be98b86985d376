//! Tests of the stored results.

use super::*;

const TTL: Duration = Duration::from_secs(10);

fn text(bytes: usize) -> StoredResult {
    StoredResult { text: "x".repeat(bytes), is_json: false }
}

fn principal(name: &str) -> Principal {
    Principal::new(name)
}

/// Stores results and returns whether each of them is still there.
fn remaining(results: &StoredResults, stored: &[(&str, usize)]) -> Vec<bool> {
    let uris: Vec<_> = stored
        .iter()
        .map(|(name, bytes)| {
            let name = principal(name);
            (results.insert(&name, text(*bytes), TTL).unwrap(), name)
        })
        .collect();
    uris.iter().map(|(uri, name)| results.find(name, uri).is_some()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_result_expires() {
    let results = StoredResults::new(None);
    let ada = principal("ada");
    let uri = results.insert(&ada, text(3), TTL).unwrap();
    tokio::time::advance(TTL - Duration::from_millis(1)).await;
    let (found, left) = results.find(&ada, &uri).unwrap();
    assert_eq!((found.text.as_str(), left), ("xxx", Duration::from_millis(1)));
    tokio::time::advance(Duration::from_millis(1)).await;
    assert!(results.find(&ada, &uri).is_none());
    assert_eq!(results.entries().len(), 1);
    results.remove_expired();
    assert_eq!(results.entries().len(), 0);
}

/// Attack: remote | a client reads the result of another principal under its URI | there is no such
/// result, as for an unknown URI | Isolation
#[tokio::test]
async fn a_result_belongs_to_its_principal() {
    let results = StoredResults::new(None);
    let uri = results.insert(&principal("ada"), text(1), TTL).unwrap();
    let other = results.insert(&principal("ada"), text(1), TTL).unwrap();
    assert_ne!(uri, other);
    assert!(uri.len() == URI_PREFIX.len() + 32 && uri.starts_with(URI_PREFIX));
    assert!(results.find(&principal("bob"), &uri).is_none());
    assert!(results.find(&principal("ada"), &uri[..uri.len() - 1]).is_none());
    assert!(results.find(&principal("ada"), &uri).is_some());
}

#[tokio::test]
async fn a_new_result_replaces_the_oldest_of_its_principal_above_the_number() {
    let results = StoredResults::new(None);
    let mut stored = vec![("bob", 1)];
    stored.extend([("ada", 1)].repeat(MAX_PRINCIPAL_RESULTS));
    assert!(remaining(&results, &stored).iter().all(|found| *found));
    let results = StoredResults::new(None);
    stored.push(("ada", 1));
    let found = remaining(&results, &stored);
    assert_eq!(found[..3], [true, false, true]);
    assert!(found[2..].iter().all(|found| *found));
}

#[tokio::test]
async fn a_new_result_replaces_the_oldest_of_its_principal_above_the_bytes() {
    let half = MAX_PRINCIPAL_BYTES / 2;
    let stored = [("bob", 1), ("ada", half), ("ada", half)];
    assert_eq!(remaining(&StoredResults::new(None), &stored), [true; 3]);
    let stored = [("bob", 1), ("ada", half), ("ada", half), ("ada", 1)];
    assert_eq!(remaining(&StoredResults::new(None), &stored), [true, false, true, true]);
    let stored = [("ada", 1), ("ada", 1), ("ada", MAX_PRINCIPAL_BYTES)];
    assert_eq!(remaining(&StoredResults::new(None), &stored), [false, false, true]);
    let above = text(MAX_PRINCIPAL_BYTES + 1);
    assert_eq!(StoredResults::new(None).insert(&principal("ada"), above, TTL), None);
}

#[tokio::test]
async fn the_results_of_all_principals_have_limits() {
    let names: Vec<String> = (0..=MAX_RESULTS).map(|number| number.to_string()).collect();
    let stored: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let at_limit = remaining(&StoredResults::new(None), &stored[1..]);
    assert!(at_limit.iter().all(|found| *found));
    let above = remaining(&StoredResults::new(None), &stored);
    assert_eq!(above.iter().filter(|found| !**found).count(), 1);
    assert!(!above[0]);
    let count = MAX_BYTES / MAX_PRINCIPAL_BYTES;
    let large = |name: &'static str| (name, MAX_PRINCIPAL_BYTES);
    let mut stored = ["a", "b", "c", "d"].map(large).to_vec();
    assert_eq!(stored.len(), count);
    assert_eq!(remaining(&StoredResults::new(None), &stored), [true; 4]);
    stored.push(("e", 1));
    assert_eq!(remaining(&StoredResults::new(None), &stored), [false, true, true, true, true]);
}
