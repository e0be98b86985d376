//! Tests of hits, misses, limits, shared requests and invalidation, with paused time.

mod principals;

use std::cell::Cell;
use std::pin::pin;

use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::{Map, Value, json};
use tokio::time::sleep;

use super::*;

const READ_TIMEOUT: Duration = Duration::from_secs(30);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn cache(max_entries: usize, max_bytes: u64) -> Cache {
    Cache::new(Policy { ttl: seconds(300), max_entries, max_bytes })
}

fn large_cache() -> Cache {
    cache(1000, 1 << 20)
}

fn result_text(cache_read: &CacheRead) -> &str {
    match cache_read {
        CacheRead::Fetched(result) => result.get(),
        CacheRead::Cached(cached, _) => cached.result().get(),
    }
}

/// A server that counts its requests and returns the count after a delay.
#[derive(Default)]
struct CountingServer {
    request_count: Cell<u32>,
    latency: Duration,
    fails: bool,
}

impl CountingServer {
    async fn respond(&self) -> Result<Box<RawValue>, u32> {
        let number = self.request_count.get() + 1;
        self.request_count.set(number);
        sleep(self.latency).await;
        if self.fails { Err(number) } else { Ok(raw(&format!(r#"{{"n":{number}}}"#))) }
    }

    async fn read(&self, cache: &Cache, key: &CacheKey) -> Result<String, CacheReadError<u32>> {
        let cache_read = cache.read(key, false, READ_TIMEOUT, |_| self.respond()).await?;
        Ok(result_text(&cache_read).to_owned())
    }
}

/// Returns whether the cache has an unexpired entry for a resource.
fn is_cached(cache: &Cache, uri: &str) -> bool {
    cache.lock_state().store.get(&CacheKey::resource(uri), Instant::now()).is_some()
}

async fn store_resource(cache: &Cache, uri: &str, text: &str) {
    let fetch = |_| async { Ok::<_, ()>(raw(text)) };
    cache.read(&CacheKey::resource(uri), true, READ_TIMEOUT, fetch).await.unwrap();
}

/// Proves: FR8.1, TR5.5
#[tokio::test(start_paused = true)]
async fn a_copy_is_good_for_299_seconds_and_not_for_301() {
    let (cache, server, key) =
        (large_cache(), CountingServer::default(), CacheKey::resource("fx://a"));
    assert_eq!(server.read(&cache, &key).await.unwrap(), r#"{"n":1}"#);
    sleep(seconds(299)).await;
    assert_eq!(server.read(&cache, &key).await.unwrap(), r#"{"n":1}"#);
    sleep(seconds(2)).await;
    assert_eq!(server.read(&cache, &key).await.unwrap(), r#"{"n":2}"#);
    sleep(seconds(299)).await;
    assert_eq!(server.read(&cache, &key).await.unwrap(), r#"{"n":2}"#, "the new one counts anew");
}

#[tokio::test(start_paused = true)]
async fn a_hint_of_the_server_shortens_the_time_and_never_prolongs_it() {
    let ttl = seconds(300);
    for (hint, expected) in [
        (r#"{"ttlMs":1500,"cacheScope":"public"}"#, Duration::from_millis(1500)),
        (r#"{"ttlMs":0}"#, Duration::ZERO),
        (r#"{"ttlMs":315360000000,"cacheScope":"public"}"#, ttl),
        (r#"{"ttlMs":-1}"#, ttl),
        (r#"{"ttlMs":"5"}"#, ttl),
        (r#"{"ttlMs":null}"#, ttl),
        (r#"{"contents":[{"ttlMs":1}]}"#, ttl),
    ] {
        assert_eq!(effective_ttl(&raw(hint), ttl), expected, "{hint}");
    }
    let cache = large_cache();
    store_resource(&cache, "fx://a", r#"{"ttlMs":0}"#).await;
    assert!(!is_cached(&cache, "fx://a"), "it is asked for again at once");
}

#[tokio::test(start_paused = true)]
async fn with_a_time_of_zero_nothing_is_kept_or_shared() {
    let policy = Policy { ttl: Duration::ZERO, max_entries: 9, max_bytes: 1 << 20 };
    let (cache, key) = (Cache::new(policy), CacheKey::resource("fx://a"));
    let server = CountingServer { latency: seconds(1), ..CountingServer::default() };
    let both = join_all([server.read(&cache, &key), server.read(&cache, &key)]).await;
    assert!(both.iter().all(Result::is_ok));
    assert_eq!((server.request_count.get(), cache.size()), (2, (0, 0)));
}

/// Proves: FR8.5
#[tokio::test(start_paused = true)]
async fn with_two_entries_allowed_the_third_evicts_the_least_recently_used() {
    let cache = cache(2, 1 << 20);
    store_resource(&cache, "fx://a", "{}").await;
    store_resource(&cache, "fx://b", "{}").await;
    assert!(is_cached(&cache, "fx://a"), "used last");
    store_resource(&cache, "fx://c", "{}").await;
    assert!(!is_cached(&cache, "fx://b"));
    assert!(is_cached(&cache, "fx://a") && is_cached(&cache, "fx://c"));
    store_resource(&cache, "fx://c", r#"{"again":1}"#).await;
    assert!(is_cached(&cache, "fx://a"), "an entry that is replaced takes nobody's place");
    assert_eq!(cache.size().0, 2);
}

/// Proves: FR8.5
#[tokio::test(start_paused = true)]
async fn the_bytes_of_all_are_bounded_and_what_is_larger_is_not_kept() {
    let cache = cache(1000, 40);
    let text = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    for uri in ["fx://a", "fx://b"] {
        store_resource(&cache, uri, &text(14)).await;
    }
    assert_eq!(cache.size(), (2, 40), "the limit itself fits");
    store_resource(&cache, "fx://c", &text(9)).await;
    assert_eq!(cache.size(), (2, 35));
    assert!(!is_cached(&cache, "fx://a"));
    store_resource(&cache, "fx://d", &text(34)).await;
    assert_eq!(cache.size(), (1, 40), "both others made room");
    store_resource(&cache, "fx://d", &text(35)).await;
    assert_eq!(cache.size(), (0, 0), "one past the limit is not kept, nor what it replaces");
}

/// Proves: FR8.2
#[tokio::test(start_paused = true)]
async fn a_prompt_is_kept_by_its_name_and_arguments_in_any_order() {
    let arguments = |value: Value| value.as_object().unwrap().clone();
    let key = |name: &str, value: Value| CacheKey::prompt(name, &arguments(value));
    let one = key("fx.greet", json!({"name": "Ada", "style": "warm"}));
    assert_eq!(one, key("fx.greet", json!({"style": "warm", "name": "Ada"})));
    for other in [
        key("fx.greet", json!({"name": "Ada"})),
        key("fx.greet", json!({"name": "Ada", "style": "cold"})),
        key("fx.meet", json!({"name": "Ada", "style": "warm"})),
        CacheKey::resource("fx.greet"),
    ] {
        assert_ne!(one, other);
    }
}

/// Proves: FR8.1
#[tokio::test(start_paused = true)]
async fn a_hundred_readers_at_once_are_one_request() {
    let (cache, key) = (large_cache(), CacheKey::resource("fx://a"));
    let server = CountingServer { latency: seconds(1), ..CountingServer::default() };
    let read = join_all((0..100).map(|_| server.read(&cache, &key))).await;
    assert!(read.iter().all(|result| result.as_deref() == Ok(r#"{"n":1}"#)), "{read:?}");
    assert_eq!(server.request_count.get(), 1);
    assert!(cache.lock_state().in_flight.is_empty());
}

#[tokio::test(start_paused = true)]
async fn when_the_first_goes_away_the_next_takes_over_and_nobody_fails() {
    let (cache, key) = (large_cache(), CacheKey::resource("fx://a"));
    let server = CountingServer { latency: seconds(1), ..CountingServer::default() };
    let mut first = Box::pin(server.read(&cache, &key));
    assert!(first.as_mut().now_or_never().is_none());
    let mut others = pin!(join_all((0..9).map(|_| server.read(&cache, &key))));
    assert!(others.as_mut().now_or_never().is_none());
    drop(first);
    let read = others.await;
    assert!(read.iter().all(|result| result.as_deref() == Ok(r#"{"n":2}"#)), "{read:?}");
    assert_eq!(server.request_count.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn when_the_first_fails_each_asks_once_for_itself() {
    let (cache, key) = (large_cache(), CacheKey::resource("fx://a"));
    let server = CountingServer { latency: seconds(1), fails: true, ..CountingServer::default() };
    let read = join_all((0..10).map(|_| server.read(&cache, &key))).await;
    let mut errors: Vec<u32> = read
        .into_iter()
        .map(|result| match result {
            Err(CacheReadError::Failed(number)) => number,
            other => panic!("{other:?}"),
        })
        .collect();
    errors.sort_unstable();
    assert_eq!(errors, (1..=10).collect::<Vec<_>>(), "each has an error of its own");
    assert_eq!(cache.size(), (0, 0), "errors are not kept");
    assert!(cache.lock_state().in_flight.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_another_is_bounded_by_its_own_time() {
    let (cache, key) = (large_cache(), CacheKey::resource("fx://a"));
    let server = CountingServer { latency: seconds(20), fails: true, ..CountingServer::default() };
    let secs = |seconds| Duration::from_secs(seconds);
    let started_at = Instant::now();
    let (first, late, second) = tokio::join!(
        server.read(&cache, &key),
        async {
            let read = cache.read(&key, false, secs(5), |_| server.respond()).await;
            assert_eq!(started_at.elapsed(), secs(5));
            read.unwrap_err()
        },
        cache.read(&key, false, secs(28), |remaining| {
            assert_eq!(remaining, secs(8), "its own time goes on");
            server.respond()
        }),
    );
    assert_eq!((first.unwrap_err(), late), (CacheReadError::Failed(1), CacheReadError::Timeout));
    assert_eq!(second.unwrap_err(), CacheReadError::Failed(2));
}

#[tokio::test(start_paused = true)]
async fn the_followers_of_a_failed_request_ask_side_by_side() {
    let (cache, key) = (large_cache(), CacheKey::resource("fx://a"));
    let server = CountingServer { latency: seconds(1), fails: true, ..CountingServer::default() };
    let started_at = Instant::now();
    join_all((0..10).map(|_| server.read(&cache, &key))).await;
    assert_eq!(started_at.elapsed(), seconds(2), "one request, then nine at once");
}

#[tokio::test(start_paused = true)]
async fn a_time_without_end_is_as_long_as_the_longest_request() {
    let (cache, key) = (large_cache(), CacheKey::resource("fx://a"));
    let latency = MAX_REQUEST_TIMEOUT + seconds(1);
    let server = CountingServer { latency, ..CountingServer::default() };
    let read = || cache.read(&key, false, Duration::MAX, |_| server.respond());
    let started_at = Instant::now();
    let (first, second) = tokio::join!(read(), async {
        let result = read().await;
        assert_eq!(started_at.elapsed(), MAX_REQUEST_TIMEOUT);
        result
    });
    assert!(matches!(first, Ok(CacheRead::Fetched(_))), "{first:?}");
    assert!(matches!(second, Err(CacheReadError::Timeout)), "{second:?}");
}

/// Proves: FR8.4
#[tokio::test(start_paused = true)]
async fn a_fresh_answer_passes_the_kept_one_by_and_replaces_it() {
    let (cache, server, key) =
        (large_cache(), CountingServer::default(), CacheKey::resource("fx://a"));
    server.read(&cache, &key).await.unwrap();
    let cache_read = cache.read(&key, true, READ_TIMEOUT, |_| server.respond()).await.unwrap();
    assert!(
        matches!(&cache_read, CacheRead::Fetched(result) if result.get() == r#"{"n":2}"#),
        "{cache_read:?}"
    );
    assert_eq!(server.read(&cache, &key).await.unwrap(), r#"{"n":2}"#);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_under_way_before_a_fresh_one_does_not_replace_it() {
    let (cache, key) = (large_cache(), CacheKey::resource("fx://a"));
    let slow = CountingServer { latency: seconds(5), ..CountingServer::default() };
    let quick = CountingServer {
        latency: seconds(1),
        request_count: Cell::new(10),
        ..CountingServer::default()
    };
    let (old, fresh) = tokio::join!(
        slow.read(&cache, &key),
        cache.read(&key, true, READ_TIMEOUT, |_| quick.respond()),
    );
    let (old, fresh) = (old.unwrap(), fresh.unwrap());
    assert_eq!((&*old, result_text(&fresh)), (r#"{"n":1}"#, r#"{"n":11}"#));
    assert_eq!(slow.read(&cache, &key).await.unwrap(), r#"{"n":11}"#);
}

/// Proves: FR8.3
#[tokio::test(start_paused = true)]
async fn a_list_change_drops_its_kind_and_an_update_its_uri() {
    let (cache, server) = (large_cache(), CountingServer::default());
    let prompt = CacheKey::prompt("fx.greet", &Map::new());
    server.read(&cache, &prompt).await.unwrap();
    for uri in ["fx://a", "fx://b"] {
        store_resource(&cache, uri, "{}").await;
    }
    cache.invalidate_uri("fx://a");
    assert!(!is_cached(&cache, "fx://a") && is_cached(&cache, "fx://b"));
    cache.invalidate_changed(false, false);
    assert_eq!(cache.size().0, 2, "nothing is kept of tools");
    cache.invalidate_changed(true, false);
    assert!(!is_cached(&cache, "fx://b"));
    assert_eq!(server.read(&cache, &prompt).await.unwrap(), r#"{"n":1}"#, "prompts stay");
    cache.invalidate_changed(false, true);
    assert_eq!(server.read(&cache, &prompt).await.unwrap(), r#"{"n":2}"#);
    assert_eq!(server.request_count.get(), 2);
}

/// Proves: FR8.3
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_under_way_at_a_change_is_given_and_not_kept() {
    let (cache, key) = (large_cache(), CacheKey::resource("fx://a"));
    let server = CountingServer { latency: seconds(2), ..CountingServer::default() };
    let (before, (), after) = tokio::join!(
        server.read(&cache, &key),
        async {
            sleep(seconds(1)).await;
            cache.invalidate_uri("fx://a");
        },
        async {
            sleep(Duration::from_millis(1500)).await;
            server.read(&cache, &key).await
        },
    );
    assert_eq!((before.unwrap(), after.unwrap()), (r#"{"n":1}"#.into(), r#"{"n":2}"#.into()));
    assert_eq!(server.read(&cache, &key).await.unwrap(), r#"{"n":2}"#);
}

/// Proves: FR7.3
#[tokio::test(start_paused = true)]
async fn an_old_copy_is_returned_with_its_age_until_it_is_evicted() {
    let (cache, key) = (cache(1, 1 << 20), CacheKey::resource("fx://a"));
    assert!(cache.get_stale(&key).is_none());
    store_resource(&cache, "fx://a", r#"{"contents":[]}"#).await;
    sleep(seconds(1000)).await;
    let (copy, age) = cache.get_stale(&key).unwrap();
    assert_eq!(age, seconds(1000));
    assert_eq!(
        copy.to_stale(age).get(),
        r#"{"_meta":{"stale":true,"ageSeconds":1000},"contents":[]}"#
    );
    store_resource(&cache, "fx://b", "{}").await;
    assert!(cache.get_stale(&key).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_clean_once_it_was_scanned_and_one_that_is_dropped_takes_no_other_with_it() {
    let (cache, key) = (large_cache(), CacheKey::resource("fx://a"));
    store_resource(&cache, "fx://a", "{}").await;
    let (unread, _) = cache.get_stale(&key).unwrap();
    assert!(!unread.is_clean());
    unread.mark_clean();
    assert!(cache.get_stale(&key).unwrap().0.is_clean());
    let looked_at =
        async |_| Ok::<_, ()>(FetchedResult { result: raw("[]"), cacheable: true, clean: true });
    cache.read(&key, true, READ_TIMEOUT, looked_at).await.unwrap();
    cache.remove_if_same(&key, &unread);
    let (clean, _) = cache.get_stale(&key).unwrap();
    assert!(clean.is_clean());
    cache.remove_if_same(&key, &clean);
    assert!(cache.get_stale(&key).is_none());
    assert_eq!(cache.size(), (0, 0));
}
