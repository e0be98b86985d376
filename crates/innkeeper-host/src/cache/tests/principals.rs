//! Tests of the callers that receive a result: principals and `cacheScope`.

use std::cell::RefCell;

use proptest::prelude::*;

use super::*;

/// A server that names the principal and the scope in each result, and records its requests.
#[derive(Default)]
struct ScopedServer {
    requests: RefCell<Vec<Option<&'static str>>>,
}

impl ScopedServer {
    async fn respond(&self, read: &ScopedRead) -> Result<Box<RawValue>, ()> {
        self.requests.borrow_mut().push(read.principal);
        sleep(read.latency).await;
        let mut result = json!({"for": read.principal, "scope": read.scope});
        if let Some(scope) = read.scope {
            result["cacheScope"] = scope.into();
        }
        Ok(raw(&result.to_string()))
    }

    async fn read(&self, cache: &Cache, read: &ScopedRead) -> Value {
        let fetch = |_| self.respond(read);
        let result = cache.read(&read.key(), read.is_fresh, READ_TIMEOUT, fetch).await.unwrap();
        serde_json::from_str(result_text(&result)).unwrap()
    }

    fn request_count(&self) -> usize {
        self.requests.borrow().len()
    }
}

/// One read for a principal; the server responds with this scope.
#[derive(Clone, Debug)]
struct ScopedRead {
    principal: Option<&'static str>,
    uri: &'static str,
    scope: Option<&'static str>,
    is_fresh: bool,
    starts_after: Duration,
    latency: Duration,
}

impl ScopedRead {
    fn new(principal: Option<&'static str>, scope: Option<&'static str>) -> Self {
        let (starts_after, latency) = (Duration::ZERO, seconds(1));
        Self { principal, uri: "fx://a", scope, is_fresh: false, starts_after, latency }
    }

    fn fresh(principal: Option<&'static str>, scope: Option<&'static str>) -> Self {
        Self { is_fresh: true, ..Self::new(principal, scope) }
    }

    fn key(&self) -> CacheKey {
        CacheKey::resource(self.uri).of_principal(self.principal.map(Into::into))
    }
}

/// Panics if a result that is not public was fetched for another principal.
fn assert_shared_by_right(result: &Value, principal: Option<&str>) {
    let is_own = result["for"].as_str() == principal;
    assert!(is_own || result["scope"] == "public", "{principal:?} received {result}");
}

/// Attack: data | principals read one resource one after the other, and the server marks the result
/// as private or does not mark the result | each principal gets a result of its own | Secrets stay
/// with their owner
#[tokio::test(start_paused = true)]
async fn only_a_public_result_goes_to_the_calls_of_another_principal() {
    for (scope, expected) in [(Some("public"), 1), (Some("private"), 3), (None, 3), (Some("x"), 3)]
    {
        let (cache, server) = (large_cache(), ScopedServer::default());
        for principal in [Some("ada"), Some("bob"), None, Some("ada"), Some("bob"), None] {
            let read = ScopedRead::new(principal, scope);
            let result = server.read(&cache, &read).await;
            assert_shared_by_right(&result, principal);
            assert!(cache.get_stale(&read.key()).is_some(), "{scope:?} {principal:?}");
        }
        let stranger = ScopedRead::new(Some("eve"), scope).key();
        assert_eq!(cache.get_stale(&stranger).is_some(), scope == Some("public"), "{scope:?}");
        assert_eq!((server.request_count(), cache.size().0), (expected, expected), "{scope:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_share_a_request_within_a_principal_only() {
    let (cache, server) = (large_cache(), ScopedServer::default());
    let started_at = Instant::now();
    let principals = [Some("ada"), Some("bob"), Some("ada"), None, Some("bob"), None];
    join_all(principals.map(async |principal| {
        let result = server.read(&cache, &ScopedRead::new(principal, Some("private"))).await;
        assert_shared_by_right(&result, principal);
    }))
    .await;
    assert_eq!(*server.requests.borrow(), [Some("ada"), Some("bob"), None]);
    assert_eq!(started_at.elapsed(), seconds(1), "no principal waits for another");
}

#[tokio::test(start_paused = true)]
async fn the_last_scope_of_an_item_replaces_the_result_of_the_earlier_scope() {
    let (cache, server) = (large_cache(), ScopedServer::default());
    server.read(&cache, &ScopedRead::fresh(Some("ada"), Some("public"))).await;
    server.read(&cache, &ScopedRead::fresh(Some("ada"), Some("private"))).await;
    assert_eq!(cache.size().0, 1, "the public result is dropped");
    let again = server.read(&cache, &ScopedRead::new(Some("bob"), Some("private"))).await;
    assert_eq!(again["for"], "bob");
    server.read(&cache, &ScopedRead::fresh(Some("ada"), Some("public"))).await;
    assert_eq!(cache.size().0, 2, "the private result of the same principal is dropped");
    let shared = server.read(&cache, &ScopedRead::new(Some("eve"), Some("private"))).await;
    assert_eq!((&shared["for"], server.request_count()), (&json!("ada"), 4));
}

#[tokio::test(start_paused = true)]
async fn an_older_request_of_another_principal_does_not_replace_a_fresh_public_result() {
    let (cache, server) = (large_cache(), ScopedServer::default());
    let slow = ScopedRead { latency: seconds(5), ..ScopedRead::new(Some("ada"), Some("public")) };
    let fresh = ScopedRead::fresh(Some("bob"), Some("public"));
    tokio::join!(server.read(&cache, &slow), server.read(&cache, &fresh));
    let result = server.read(&cache, &ScopedRead::new(Some("eve"), Some("public"))).await;
    assert_eq!(result["for"], "bob");
}

#[tokio::test(start_paused = true)]
async fn a_change_drops_the_results_of_all_principals() {
    let (cache, server) = (large_cache(), ScopedServer::default());
    for (principal, scope) in [(Some("ada"), None), (Some("bob"), None), (None, None)] {
        server.read(&cache, &ScopedRead::new(principal, scope)).await;
    }
    assert_eq!(cache.size().0, 3);
    cache.invalidate_uri("fx://a");
    assert_eq!(cache.size(), (0, 0));
    server.read(&cache, &ScopedRead::new(Some("ada"), Some("public"))).await;
    cache.invalidate_changed(true, false);
    assert_eq!(cache.size(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_name_of_a_principal_takes_space_and_a_withheld_result_is_removed_for_all() {
    let (cache, key) = (large_cache(), CacheKey::resource("fx://a"));
    let key = key.of_principal(Some("x".repeat(500).into()));
    for (text, bytes) in [("{}", 508), (r#"{"cacheScope":"public"}"#, 29)] {
        let fetch = |_| async { Ok::<_, ()>(raw(text)) };
        cache.read(&key, true, READ_TIMEOUT, fetch).await.unwrap();
        assert_eq!(cache.size(), (1, bytes));
        let (copy, _) = cache.get_stale(&key).unwrap();
        cache.remove_if_same(&key, &copy);
        assert_eq!(cache.size(), (0, 0));
    }
}

fn scoped_reads() -> impl Strategy<Value = Vec<ScopedRead>> {
    let millis = |max: u64| (0..max).prop_map(Duration::from_millis);
    let read = (
        prop::sample::select(vec![None, Some("ada"), Some("bob"), Some("eve")]),
        prop::sample::select(vec!["fx://a", "fx://b"]),
        prop::sample::select(vec![None, Some("public"), Some("private")]),
        prop::bool::weighted(0.2),
        millis(400),
        millis(100),
    );
    let read = read.prop_map(|(principal, uri, scope, is_fresh, starts_after, latency)| {
        ScopedRead { principal, uri, scope, is_fresh, starts_after, latency }
    });
    prop::collection::vec(read, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn no_private_result_reaches_another_principal_in_any_order(reads in scoped_reads()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let (cache, server) = (cache(3, 1 << 20), ScopedServer::default());
            join_all(reads.iter().map(async |read| {
                sleep(read.starts_after).await;
                let result = server.read(&cache, read).await;
                assert_shared_by_right(&result, read.principal);
                if let Some((stale, _)) = cache.get_stale(&read.key()) {
                    let stale: Value = serde_json::from_str(stale.result().get()).unwrap();
                    assert_shared_by_right(&stale, read.principal);
                }
            }))
            .await;
        });
    }
}
