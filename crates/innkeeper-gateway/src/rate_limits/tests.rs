//! Tests of the rates with a paused clock.

use serde_json::json;
use tokio::time::advance;

use super::*;

const fn rate(per_minute: u32, burst: u32) -> Rate {
    Rate { per_minute, burst }
}

fn names(tool: &str) -> ItemNames {
    ItemNames::single(tool)
}

fn client(name: &str) -> Principal {
    Principal::new(name)
}

fn requests(per_minute: u32, burst: u32) -> RateConfig {
    RateConfig { requests: Some(rate(per_minute, burst)), ..RateConfig::default() }
}

fn tools(rates: &[(&str, Rate)]) -> RateConfig {
    let tools = rates.iter().map(|(pattern, rate)| ((*pattern).to_owned(), *rate)).collect();
    RateConfig { requests: None, tools }
}

#[tokio::test(start_paused = true)]
async fn a_burst_at_the_limit_is_permitted_and_one_request_more_after_its_time() {
    let limits = RateLimits::new(requests(60, 5), []);
    let ann = client("ann");
    for _ in 0..5 {
        limits.count_request(&ann).unwrap();
    }
    let retry_after = Duration::from_secs(1);
    let exceeded = RateExceeded::Requests { rate: rate(60, 5), retry_after };
    assert_eq!(limits.count_request(&ann), Err(exceeded));
    advance(retry_after - Duration::from_millis(1)).await;
    assert!(limits.count_request(&ann).is_err(), "a rejected request does not count");
    advance(Duration::from_millis(1)).await;
    limits.count_request(&ann).unwrap();
    assert!(limits.count_request(&ann).is_err());
    advance(Duration::from_mins(10)).await;
    for _ in 0..5 {
        limits.count_request(&ann).unwrap();
    }
    assert!(limits.count_request(&ann).is_err(), "a pause earns no more than a burst");
}

#[tokio::test(start_paused = true)]
async fn a_steady_rate_at_the_limit_is_permitted() {
    let limits = RateLimits::new(requests(600, 1), []);
    for _ in 0..1_000 {
        limits.count_request(&client("ann")).unwrap();
        advance(Duration::from_millis(100)).await;
    }
}

/// Attack: remote | a client sends more requests than its rate | the requests of other clients are
/// permitted | Isolation
#[tokio::test(start_paused = true)]
async fn each_client_has_its_own_bucket_and_a_client_with_rates_of_its_own_has_these() {
    let limits = RateLimits::new(requests(60, 1), [(client("ci"), requests(60, 3))]);
    limits.count_request(&client("ann")).unwrap();
    assert!(limits.count_request(&client("ann")).is_err());
    limits.count_request(&client("ben")).unwrap();
    for _ in 0..3 {
        limits.count_request(&client("ci")).unwrap();
    }
    assert!(limits.count_request(&client("ci")).is_err());
}

#[tokio::test(start_paused = true)]
async fn each_tool_has_its_own_bucket_with_the_rate_of_the_first_pattern() {
    let rates = [("files.read_*", rate(60, 2)), ("files.*", rate(60, 1))];
    let limits = RateLimits::new(tools(&rates), []);
    let call = |name: &str, tool: &str| limits.count_call(&client(name), &names(tool));
    for tool in ["files.read_a", "files.read_b"] {
        call("ann", tool).unwrap();
        call("ann", tool).unwrap();
        let retry_after = Duration::from_secs(1);
        let exceeded = RateExceeded::Calls { rate: rate(60, 2), retry_after };
        assert_eq!(call("ann", tool), Err(exceeded));
    }
    call("ann", "files.write").unwrap();
    assert!(call("ann", "files.write").is_err());
    call("ben", "files.write").unwrap();
    for _ in 0..100 {
        call("ann", "git.log").unwrap();
    }
    limits.count_request(&client("ann")).unwrap();
}

/// Attack: remote | requests of more clients than the table has entries | a client that is counted keeps
/// its count, a new client waits, and an idle client makes room | No unbounded memory
/// Attack: data | a server names its tool like one of another server with a higher rate | the rate of its
/// own server holds | Isolation
#[tokio::test(start_paused = true)]
async fn a_tool_named_like_one_of_another_server_has_the_lower_rate() {
    let rates = [("git.*", rate(60, 100)), ("notes.*", rate(60, 1)), ("plain", rate(1, 1))];
    let limits = RateLimits::new(tools(&rates), []);
    let of_server = |server: &str, own: &str| {
        let names = ItemNames::new(innkeeper_host::config::NameStyle::Flat, server, own);
        names.with_servers(|name| ["git", "notes"].contains(&name))
    };
    let ann = client("ann");
    for (server, own, burst) in [("notes", "git.log", 1), ("git", "log", 100), ("x", "plain", 1)] {
        for _ in 0..burst {
            limits.count_call(&ann, &of_server(server, own)).unwrap();
        }
        assert!(limits.count_call(&ann, &of_server(server, own)).is_err(), "{server} {own}");
    }
}

#[tokio::test(start_paused = true)]
async fn as_many_clients_are_counted_as_the_limit_and_one_more_waits() {
    let limits = RateLimits::new(requests(60, 1), []);
    for index in 0..MAX_CLIENTS {
        limits.count_request(&client(&index.to_string())).unwrap();
    }
    let exceeded = RateExceeded::Clients { retry_after: FULL_TABLE_DELAY };
    assert_eq!(limits.count_request(&client("new")), Err(exceeded));
    let counted = limits.count_request(&client("0")).unwrap_err();
    assert!(matches!(counted, RateExceeded::Requests { .. }), "{counted:?}");
    advance(Duration::from_secs(1)).await;
    limits.count_request(&client("0")).unwrap();
    limits.count_request(&client("new")).unwrap();
    assert_eq!(limits.clients.lock().unwrap().len(), 2, "the idle clients were removed");
    assert!(limits.count_request(&client("0")).is_err(), "the active client was not");
}

/// Attack: remote | a client calls more tools than its table has entries, to reset the counts | the
/// counts stay, and the further tools share one bucket | No unbounded memory
#[tokio::test(start_paused = true)]
async fn tools_above_the_limit_share_one_bucket() {
    let limits = RateLimits::new(tools(&[("*", rate(60, 1))]), []);
    let call = |tool: &str| limits.count_call(&client("ann"), &names(tool));
    for index in 0..MAX_TOOLS_PER_CLIENT {
        call(&index.to_string()).unwrap();
    }
    call("further").unwrap();
    assert!(call("another").is_err());
    assert!(call("0").is_err());
    assert_eq!(limits.clients.lock().unwrap()["ann"].tools.len(), MAX_TOOLS_PER_CLIENT);
    advance(Duration::from_secs(1)).await;
    call("further").unwrap();
    call("another").unwrap();
    assert_eq!(limits.clients.lock().unwrap()["ann"].tools.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_is_idle_only_if_all_its_buckets_are_full() {
    let now = Instant::now();
    let (rate, later) = (rate(60, 1), now + Duration::from_secs(1));
    let mut buckets: [ClientBuckets; 3] = std::array::from_fn(|_| ClientBuckets::default());
    assert!(buckets.iter().all(|buckets| buckets.are_full(now)));
    buckets[0].requests.take(rate, now).unwrap();
    buckets[1].further_tools.take(rate, now).unwrap();
    buckets[2].tool("x", now).take(rate, now).unwrap();
    assert!(!buckets.iter().any(|buckets| buckets.are_full(now)));
    assert!(buckets.iter().all(|buckets| buckets.are_full(later)));
}

#[tokio::test(start_paused = true)]
async fn clients_without_a_maximum_have_no_entry() {
    let limits = RateLimits::new(RateConfig::default(), []);
    limits.count_request(&client("ann")).unwrap();
    limits.count_call(&client("ann"), &names("x")).unwrap();
    assert!(limits.clients.lock().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_rates_of_the_configuration_are_those_of_its_clients() {
    let serve = json!({
        "rate": {"perMinute": 60, "burst": 2},
        "auth": {
            "apiKeys": [
                {"principal": "ci", "sha256": "0".repeat(64), "rate": {"perMinute": 60, "burst": 3}},
                {"principal": "ann", "sha256": "1".repeat(64)},
            ],
            "oauth": {"issuer": "https://a.b", "audience": "https://a.b", "jwksUrl": "https://a.b",
                "rate": {"perMinute": 60, "burst": 4}},
        },
    });
    let limits = RateLimits::from_config(&crate::test_config::serve(&serve));
    for (name, burst) in [("local", 2), ("ann", 2), ("ci", 3), ("oauth:ann", 4)] {
        let permitted = (0..10).filter(|_| limits.count_request(&client(name)).is_ok()).count();
        assert_eq!(permitted, burst, "{name}");
    }
}

#[test]
fn the_response_has_the_status_and_the_time_to_wait() {
    let retry_after = Duration::from_millis(1500);
    let rejection = Rejection::from(RateExceeded::Requests { rate: rate(60, 5), retry_after });
    assert_eq!(rejection.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(rejection.headers()["retry-after"], "2");
    assert_eq!(rejection.message(), "more than 60 requests per minute (`serve.rate`)");
}

/// Attack: remote | the store of the replicas does not respond for an hour, and a client sends at its rate
/// | afterwards, the other replicas learn of no more tokens than the bucket lacks, and the client goes on |
/// Isolation
#[tokio::test(start_paused = true)]
async fn tokens_that_a_bucket_got_again_are_not_shared_late() {
    let config = RateConfig { requests: Some(rate(60, 5)), ..RateConfig::default() };
    let limits = RateLimits::new(config, []);
    limits.share();
    let ann = client("ann");
    for _ in 0..3600 {
        limits.count_request(&ann).unwrap();
        // The exchange fails.
        let pending = limits.take_pending();
        limits.restore_pending(pending);
        advance(Duration::from_secs(1)).await;
    }
    for _ in 0..5 {
        limits.count_request(&ann).unwrap();
    }
    let pending = limits.take_pending();
    let taken: Duration = pending.values().map(|taken| taken.time).sum();
    assert!(taken <= Duration::from_secs(6), "{taken:?}");
}
