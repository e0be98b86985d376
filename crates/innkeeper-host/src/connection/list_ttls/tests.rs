//! Tests of cache hints and refreshes with a paused clock.

use innkeeper_protocol::method;
use innkeeper_protocol::view::{ListCapability, ResourcesCapability, ServerCapabilities};
use innkeeper_protocol::{Era, Revision};
use serde_json::json;
use tokio::time::{advance, sleep};

use super::*;
use crate::connection::listing;
use crate::connection::task_poll::tests::connect;

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn hints(page: &str) -> ReportedHints {
    ReportedHints::from_page(&RawValue::from_string(page.to_owned()).unwrap())
}

/// Returns the hints of a page with this time to live.
fn ttl_hints(millis: u64) -> Option<ReportedHints> {
    Some(hints(&format!(r#"{{"ttlMs":{millis}}}"#)))
}

/// Panics unless the next refresh is due after this time and a tenth of the time at most.
fn assert_next(ttls: &ListTtls, interval: Duration) {
    let delay = ttls.next_refresh().unwrap() - Instant::now();
    assert!(delay >= interval && delay <= interval + interval / 10, "{delay:?}, {interval:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_refreshed_after_its_ttl_and_a_second_at_least_and_never_without_one() {
    let ttls = ListTtls::default();
    ttls.record_refresh([Some(hints("{}")), ttl_hints(0), None, None]);
    assert_eq!(ttls.next_refresh(), None);
    ttls.record_refresh([ttl_hints(1), ttl_hints(5000), ttl_hints(u64::MAX), None]);
    assert_next(&ttls, MIN_TTL);
    assert_eq!(ttls.take_expired(), ListChanges::default());
    advance(seconds(1) + MIN_TTL / 10).await;
    let tools = ListChanges { tools: true, ..ListChanges::default() };
    assert_eq!((ttls.take_expired(), ttls.take_expired()), (tools, ListChanges::default()));
    ttls.record_refresh([Some(hints("{}")), None, None, ttl_hints(9000)]);
    advance(seconds(5)).await;
    let prompts = ListChanges { prompts: true, ..ListChanges::default() };
    assert_eq!(ttls.take_expired(), prompts);
    advance(seconds(5)).await;
    assert!(ttls.take_expired().resources, "the templates expired");
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_fails_is_repeated_after_growing_delays() {
    let ttls = ListTtls::default();
    ttls.record_refresh([ttl_hints(4000), None, None, None]);
    for interval in [4, 8, 16, 32] {
        assert_next(&ttls, seconds(interval));
        advance(seconds(interval) * 11 / 10).await;
        assert!(ttls.take_expired().tools);
    }
    ttls.record_refresh([ttl_hints(4000), None, None, None]);
    assert_next(&ttls, seconds(4));
}

#[tokio::test(start_paused = true)]
async fn a_list_is_as_fresh_as_its_first_page_to_expire_and_private_if_one_page_is() {
    let public = |millis: u64| hints(&format!(r#"{{"ttlMs":{millis},"cacheScope":"public"}}"#));
    let private = hints(r#"{"ttlMs":9000,"cacheScope":"private"}"#);
    let first = public(5000);
    advance(seconds(3)).await;
    let hint = first.merge(public(4000)).to_hint();
    assert_eq!(hint, ListCacheHint { remaining: seconds(2), scope: CacheScope::Public });
    assert_eq!(first.merge(private).to_hint().scope, CacheScope::Private);
    assert_eq!(first.merge(hints(r#"{"ttlMs":9000}"#)).to_hint().scope, CacheScope::Private);
    for page in ["{}", r#"{"ttlMs":-1}"#, r#"{"ttlMs":"300"}"#, r#"{"ttlMs":0}"#] {
        assert_eq!(hints(page).to_hint().remaining, Duration::ZERO, "{page}");
        assert_eq!(first.merge(hints(page)).to_hint().remaining, Duration::ZERO, "{page}");
    }
    assert_eq!(public(u64::MAX).to_hint().remaining, MAX_REQUEST_TIMEOUT);
    advance(seconds(60)).await;
    assert_eq!(first.to_hint().remaining, Duration::ZERO, "expired");
}

/// The hints of each list of a server, read page by page.
#[tokio::test(start_paused = true)]
async fn the_hints_of_each_list_count_down_until_the_list_is_read_again() {
    let (mut peer, connection, _tasks) = connect(Revision::V2026_07_28);
    assert_eq!(connection.negotiated.revision.era(), Era::Modern);
    let capabilities = ServerCapabilities {
        tools: Some(ListCapability::default()),
        resources: Some(ResourcesCapability::default()),
        ..ServerCapabilities::default()
    };
    let responding = async {
        for _ in 0..4 {
            let request = peer.next_message().await.unwrap();
            let is_second = request["params"]["cursor"] == "more";
            let result = match request["method"].as_str().unwrap() {
                method::TOOLS_LIST if is_second => {
                    json!({"tools": [], "ttlMs": 60_000, "cacheScope": "public"})
                }
                method::TOOLS_LIST => json!({"tools": [], "nextCursor": "more", "ttlMs": 20_000,
                    "cacheScope": "public"}),
                method::RESOURCES_LIST => {
                    json!({"resources": [], "ttlMs": 10_000, "cacheScope": "private"})
                }
                _ => {
                    peer.respond_error(&request["id"], -32601, "no such method").await;
                    continue;
                }
            };
            peer.respond(&request["id"], result).await;
        }
    };
    let (mut excluded, limit) = (Vec::new(), seconds(5));
    let reading = listing::read_all(&connection, &capabilities, limit, &mut excluded);
    let (read, ()) = tokio::join!(reading, responding);
    read.unwrap();
    sleep(seconds(4)).await;
    let hints = connection.freshness.list_ttls.hints();
    let hint =
        |seconds, scope| Some(ListCacheHint { remaining: Duration::from_secs(seconds), scope });
    assert_eq!(hints.tools, hint(16, CacheScope::Public));
    assert_eq!(hints.resources, hint(6, CacheScope::Private));
    assert_eq!((hints.prompts, hints.resource_templates), (None, None));
    sleep(seconds(30)).await;
    assert_eq!(connection.freshness.list_ttls.hints().tools, hint(0, CacheScope::Public));
}

#[test]
fn the_shorter_time_to_live_counts_and_one_alone_too() {
    let (short, long) = (Some(seconds(1)), Some(seconds(2)));
    assert_eq!([min_ttl(short, long), min_ttl(long, short)], [short; 2]);
    assert_eq!([min_ttl(None, long), min_ttl(long, None)], [long; 2]);
    assert_eq!(min_ttl(None, None), None);
}
