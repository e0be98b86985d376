//! Hits, misses, limits, shared requests and what is dropped, with the clock stopped.

use std::cell::Cell;
use std::pin::pin;

use futures_util::FutureExt;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::sleep;

use super::*;

const PATIENCE: Duration = Duration::from_secs(30);

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

fn cache(max_entries: usize, max_bytes: u64) -> Cache {
    Cache::new(Policy { ttl: seconds(300), max_entries, max_bytes })
}

fn roomy() -> Cache {
    cache(1000, 1 << 20)
}

fn text(found: &Found) -> &str {
    match found {
        Found::Asked(result) => result.get(),
        Found::Copy(answer, _) => answer.result().get(),
    }
}

/// A server that counts what it is asked and answers the count after a while.
#[derive(Default)]
struct Server {
    asked: Cell<u32>,
    takes: Duration,
    fails: bool,
}

impl Server {
    async fn answer(&self) -> Result<Box<RawValue>, u32> {
        let number = self.asked.get() + 1;
        self.asked.set(number);
        sleep(self.takes).await;
        if self.fails { Err(number) } else { Ok(raw(&format!(r#"{{"n":{number}}}"#))) }
    }

    async fn read(&self, cache: &Cache, key: &Key) -> Result<String, Missed<u32>> {
        let found = cache.read(key, false, PATIENCE, |_| self.answer()).await?;
        Ok(text(&found).to_owned())
    }
}

/// Whether a resource is kept and good, without asking for it.
fn kept(cache: &Cache, uri: &str) -> bool {
    cache.shelves().store.get(&Key::resource(uri), Instant::now()).is_some()
}

async fn keep(cache: &Cache, uri: &str, text: &str) {
    let ask = |_| async { Ok::<_, ()>(raw(text)) };
    cache.read(&Key::resource(uri), true, PATIENCE, ask).await.unwrap();
}

/// Proves: FR8.1, TR5.5
#[tokio::test(start_paused = true)]
async fn a_copy_is_good_for_299_seconds_and_not_for_301() {
    let (cache, server, key) = (roomy(), Server::default(), Key::resource("fx://a"));
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
        assert_eq!(good_for(&raw(hint), ttl), expected, "{hint}");
    }
    let cache = roomy();
    keep(&cache, "fx://a", r#"{"ttlMs":0}"#).await;
    assert!(!kept(&cache, "fx://a"), "it is asked for again at once");
}

#[tokio::test(start_paused = true)]
async fn with_a_time_of_zero_nothing_is_kept_or_shared() {
    let policy = Policy { ttl: Duration::ZERO, max_entries: 9, max_bytes: 1 << 20 };
    let (cache, key) = (Cache::new(policy), Key::resource("fx://a"));
    let server = Server { takes: seconds(1), ..Server::default() };
    let both = join_all([server.read(&cache, &key), server.read(&cache, &key)]).await;
    assert!(both.iter().all(Result::is_ok));
    assert_eq!((server.asked.get(), cache.size()), (2, (0, 0)));
}

/// Proves: FR8.5
#[tokio::test(start_paused = true)]
async fn with_room_for_two_the_third_takes_the_place_of_the_one_unused_for_longest() {
    let cache = cache(2, 1 << 20);
    keep(&cache, "fx://a", "{}").await;
    keep(&cache, "fx://b", "{}").await;
    assert!(kept(&cache, "fx://a"), "used last");
    keep(&cache, "fx://c", "{}").await;
    assert!(!kept(&cache, "fx://b"));
    assert!(kept(&cache, "fx://a") && kept(&cache, "fx://c"));
    keep(&cache, "fx://c", r#"{"again":1}"#).await;
    assert!(kept(&cache, "fx://a"), "an entry that is replaced takes nobody's place");
    assert_eq!(cache.size().0, 2);
}

/// Proves: FR8.5
#[tokio::test(start_paused = true)]
async fn the_bytes_of_all_are_bounded_and_what_is_larger_is_not_kept() {
    let cache = cache(1000, 40);
    let text = |bytes: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(bytes - 8));
    for uri in ["fx://a", "fx://b"] {
        keep(&cache, uri, &text(14)).await;
    }
    assert_eq!(cache.size(), (2, 40), "the limit itself fits");
    keep(&cache, "fx://c", &text(9)).await;
    assert_eq!(cache.size(), (2, 35));
    assert!(!kept(&cache, "fx://a"));
    keep(&cache, "fx://d", &text(34)).await;
    assert_eq!(cache.size(), (1, 40), "both others made room");
    keep(&cache, "fx://d", &text(35)).await;
    assert_eq!(cache.size(), (0, 0), "one past the limit is not kept, nor what it replaces");
}

/// Proves: FR8.2
#[tokio::test(start_paused = true)]
async fn a_prompt_is_kept_by_its_name_and_arguments_in_any_order() {
    let arguments = |value: Value| value.as_object().unwrap().clone();
    let key = |name: &str, value: Value| Key::prompt(name, &arguments(value));
    let one = key("fx.greet", json!({"name": "Ada", "style": "warm"}));
    assert_eq!(one, key("fx.greet", json!({"style": "warm", "name": "Ada"})));
    for other in [
        key("fx.greet", json!({"name": "Ada"})),
        key("fx.greet", json!({"name": "Ada", "style": "cold"})),
        key("fx.meet", json!({"name": "Ada", "style": "warm"})),
        Key::resource("fx.greet"),
    ] {
        assert_ne!(one, other);
    }
}

/// Proves: FR8.1
#[tokio::test(start_paused = true)]
async fn a_hundred_readers_at_once_are_one_request() {
    let (cache, key) = (roomy(), Key::resource("fx://a"));
    let server = Server { takes: seconds(1), ..Server::default() };
    let read = join_all((0..100).map(|_| server.read(&cache, &key))).await;
    assert!(read.iter().all(|result| result.as_deref() == Ok(r#"{"n":1}"#)), "{read:?}");
    assert_eq!(server.asked.get(), 1);
    assert!(cache.shelves().flights.is_empty());
}

#[tokio::test(start_paused = true)]
async fn when_the_first_goes_away_the_next_takes_over_and_nobody_fails() {
    let (cache, key) = (roomy(), Key::resource("fx://a"));
    let server = Server { takes: seconds(1), ..Server::default() };
    let mut first = Box::pin(server.read(&cache, &key));
    assert!(first.as_mut().now_or_never().is_none());
    let mut others = pin!(join_all((0..9).map(|_| server.read(&cache, &key))));
    assert!(others.as_mut().now_or_never().is_none());
    drop(first);
    let read = others.await;
    assert!(read.iter().all(|result| result.as_deref() == Ok(r#"{"n":2}"#)), "{read:?}");
    assert_eq!(server.asked.get(), 2);
}

#[tokio::test(start_paused = true)]
async fn when_the_first_fails_each_asks_once_for_itself() {
    let (cache, key) = (roomy(), Key::resource("fx://a"));
    let server = Server { takes: seconds(1), fails: true, ..Server::default() };
    let read = join_all((0..10).map(|_| server.read(&cache, &key))).await;
    let mut errors: Vec<u32> = read
        .into_iter()
        .map(|result| match result {
            Err(Missed::Failed(number)) => number,
            other => panic!("{other:?}"),
        })
        .collect();
    errors.sort_unstable();
    assert_eq!(errors, (1..=10).collect::<Vec<_>>(), "each has an error of its own");
    assert_eq!(cache.size(), (0, 0), "errors are not kept");
    assert!(cache.shelves().flights.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_another_is_bounded_by_its_own_time() {
    let (cache, key) = (roomy(), Key::resource("fx://a"));
    let server = Server { takes: seconds(20), fails: true, ..Server::default() };
    let brief = |seconds| Duration::from_secs(seconds);
    let began = Instant::now();
    let (first, late, second) = tokio::join!(
        server.read(&cache, &key),
        async {
            let read = cache.read(&key, false, brief(5), |_| server.answer()).await;
            assert_eq!(began.elapsed(), brief(5));
            read.unwrap_err()
        },
        cache.read(&key, false, brief(28), |left| {
            assert_eq!(left, brief(8), "its own time goes on");
            server.answer()
        }),
    );
    assert_eq!((first.unwrap_err(), late), (Missed::Failed(1), Missed::Late));
    assert_eq!(second.unwrap_err(), Missed::Failed(2));
}

/// Proves: FR8.4
#[tokio::test(start_paused = true)]
async fn a_fresh_answer_passes_the_kept_one_by_and_replaces_it() {
    let (cache, server, key) = (roomy(), Server::default(), Key::resource("fx://a"));
    server.read(&cache, &key).await.unwrap();
    let found = cache.read(&key, true, PATIENCE, |_| server.answer()).await.unwrap();
    assert!(matches!(&found, Found::Asked(result) if result.get() == r#"{"n":2}"#), "{found:?}");
    assert_eq!(server.read(&cache, &key).await.unwrap(), r#"{"n":2}"#);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_under_way_before_a_fresh_one_does_not_replace_it() {
    let (cache, key) = (roomy(), Key::resource("fx://a"));
    let slow = Server { takes: seconds(5), ..Server::default() };
    let quick = Server { takes: seconds(1), asked: Cell::new(10), ..Server::default() };
    let (old, fresh) = tokio::join!(
        slow.read(&cache, &key),
        cache.read(&key, true, PATIENCE, |_| quick.answer()),
    );
    let (old, fresh) = (old.unwrap(), fresh.unwrap());
    assert_eq!((&*old, text(&fresh)), (r#"{"n":1}"#, r#"{"n":11}"#));
    assert_eq!(slow.read(&cache, &key).await.unwrap(), r#"{"n":11}"#);
}

/// Proves: FR8.3
#[tokio::test(start_paused = true)]
async fn a_change_drops_its_kind_and_an_update_its_uri() {
    let (cache, server) = (roomy(), Server::default());
    let prompt = Key::prompt("fx.greet", &Map::new());
    server.read(&cache, &prompt).await.unwrap();
    for uri in ["fx://a", "fx://b"] {
        keep(&cache, uri, "{}").await;
    }
    cache.forget_uri("fx://a");
    assert!(!kept(&cache, "fx://a") && kept(&cache, "fx://b"));
    cache.changed(Change { tools: true, ..Change::default() });
    assert_eq!(cache.size().0, 2, "nothing is kept of tools");
    cache.changed(Change { resources: true, ..Change::default() });
    assert!(!kept(&cache, "fx://b"));
    assert_eq!(server.read(&cache, &prompt).await.unwrap(), r#"{"n":1}"#, "prompts stay");
    cache.changed(Change { prompts: true, ..Change::default() });
    assert_eq!(server.read(&cache, &prompt).await.unwrap(), r#"{"n":2}"#);
    assert_eq!(server.asked.get(), 2);
}

/// Proves: FR8.3
#[tokio::test(start_paused = true)]
async fn an_answer_that_was_under_way_at_a_change_is_given_and_not_kept() {
    let (cache, key) = (roomy(), Key::resource("fx://a"));
    let server = Server { takes: seconds(2), ..Server::default() };
    let (before, (), after) = tokio::join!(
        server.read(&cache, &key),
        async {
            sleep(seconds(1)).await;
            cache.forget_uri("fx://a");
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
async fn an_old_copy_is_given_with_its_age_until_there_is_no_room_for_it() {
    let (cache, key) = (cache(1, 1 << 20), Key::resource("fx://a"));
    assert!(cache.last(&key).is_none());
    keep(&cache, "fx://a", r#"{"contents":[]}"#).await;
    sleep(seconds(1000)).await;
    let (copy, age) = cache.last(&key).unwrap();
    assert_eq!(age, seconds(1000));
    assert_eq!(
        copy.stale(age).get(),
        r#"{"_meta":{"stale":true,"ageSeconds":1000},"contents":[]}"#
    );
    keep(&cache, "fx://b", "{}").await;
    assert!(cache.last(&key).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_copy_is_clean_once_it_was_looked_at_and_one_that_is_dropped_takes_no_other_with_it() {
    let (cache, key) = (roomy(), Key::resource("fx://a"));
    keep(&cache, "fx://a", "{}").await;
    let (unread, _) = cache.last(&key).unwrap();
    assert!(!unread.is_clean());
    unread.cleared();
    assert!(cache.last(&key).unwrap().0.is_clean());
    let looked_at = async |_| Ok::<_, ()>(Reply { result: raw("[]"), keep: true, clean: true });
    cache.read(&key, true, PATIENCE, looked_at).await.unwrap();
    cache.drop_answer(&key, &unread);
    let (clean, _) = cache.last(&key).unwrap();
    assert!(clean.is_clean());
    cache.drop_answer(&key, &clean);
    assert!(cache.last(&key).is_none());
    assert_eq!(cache.size(), (0, 0));
}
