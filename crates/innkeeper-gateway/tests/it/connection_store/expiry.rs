//! The time for which a store keeps a connection.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use innkeeper_gateway::connections::store::{
    ConnectionStore, Lookup, NextEvents, OpenedEvents, StoreOptions,
};
use innkeeper_gateway::connections::{ConnectionId, ConnectionLifecycleState, LifecycleMessage};
use serde_json::json;

use super::stores::{Stores, advance_to, next, open, over_each};

/// The time for which a store keeps a connection after `exit`.
const TERMINATED_TIME: Duration = Duration::from_secs(30);

/// The time for which a store knows that a connection has expired.
const EXPIRED_TIME: Duration = Duration::from_secs(60 * 60);

/// A time above the imprecision of a test in real time.
const MARGIN: Duration = Duration::from_secs(20);

async fn is_found(store: &dyn ConnectionStore, id: ConnectionId) -> bool {
    matches!(store.find(id).await.unwrap(), Lookup::Found(_))
}

/// Proves: B10
#[tokio::test]
async fn each_use_renews_the_expiry_of_1800_seconds() {
    over_each(StoreOptions::default(), async |stores| {
        assert_eq!(stores.options.expiry, Duration::from_secs(1_800));
        let almost = stores.options.expiry.checked_sub(MARGIN).unwrap();
        let (touched, moved, unused) =
            (stores.create().await, stores.create().await, stores.create().await);
        stores.pass(almost).await;
        let Lookup::Found(connection) = stores.second.touch(touched, None).await.unwrap() else {
            panic!("no connection");
        };
        assert!(Utc::now() - connection.last_activity < TimeDelta::minutes(1));
        assert_eq!(stores.first.find(touched).await.unwrap(), Lookup::Found(connection));
        let result = stores.second.advance(moved, LifecycleMessage::Shutdown).await.unwrap();
        assert!(matches!(result, Lookup::Found(Ok(_))));
        stores.pass(almost).await;
        assert!(is_found(&*stores.first, touched).await);
        assert!(is_found(&*stores.first, moved).await);
        assert_eq!(stores.first.find(unused).await.unwrap(), Lookup::Expired);
        stores.pass(MARGIN).await;
        assert_eq!(stores.first.find(touched).await.unwrap(), Lookup::Expired);
        assert_eq!(stores.first.find(moved).await.unwrap(), Lookup::Expired);
    })
    .await;
}

#[tokio::test]
async fn only_a_touch_and_a_move_renew_an_expiry() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        stores.pass(stores.options.expiry.checked_sub(MARGIN).unwrap()).await;
        assert!(is_found(&*stores.first, id).await);
        assert!(stores.first.set_session_data(id, "page", Some(json!(1))).await.unwrap());
        assert!(stores.first.publish(id, "event".into()).await.unwrap());
        let mut cursor = open(&*stores.first, id, None).await;
        assert!(matches!(next(&*stores.first, &mut cursor).await, NextEvents::Events(_)));
        assert_eq!(stores.first.active().await.unwrap(), [id]);
        let invalid = stores.first.advance(id, LifecycleMessage::Exit).await.unwrap();
        assert!(matches!(invalid, Lookup::Found(Err(_))));
        stores.pass(MARGIN).await;
        assert_eq!(stores.first.find(id).await.unwrap(), Lookup::Expired);
    })
    .await;
}

#[tokio::test]
async fn a_connection_that_expired_does_not_become_usable_again() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create_active().await;
        stores.pass(stores.options.expiry).await;
        for store in [&stores.first, &stores.second] {
            assert_eq!(store.touch(id, None).await.unwrap(), Lookup::Expired);
            for message in LifecycleMessage::ALL {
                assert_eq!(store.advance(id, message).await.unwrap(), Lookup::Expired);
            }
            assert_eq!(store.open_events(id, None).await.unwrap(), OpenedEvents::NotActive);
            assert!(!store.publish(id, "event".into()).await.unwrap());
            assert_eq!(store.find(id).await.unwrap(), Lookup::Expired);
        }
        stores.pass(EXPIRED_TIME.checked_sub(MARGIN).unwrap()).await;
        assert_eq!(stores.second.find(id).await.unwrap(), Lookup::Expired);
        stores.pass(MARGIN).await;
        assert_eq!(stores.second.find(id).await.unwrap(), Lookup::Unknown);
    })
    .await;
}

#[tokio::test]
async fn a_terminated_connection_stays_for_30_seconds_and_is_not_renewed() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create().await;
        advance_to(&*stores.first, id, ConnectionLifecycleState::Terminated).await;
        let ended = stores.second.find(id).await.unwrap();
        stores.pass(TERMINATED_TIME / 3).await;
        assert_eq!(stores.second.touch(id, None).await.unwrap(), ended);
        stores.pass(TERMINATED_TIME / 3).await;
        assert_eq!(stores.second.touch(id, None).await.unwrap(), ended);
        stores.pass(TERMINATED_TIME / 3).await;
        assert_eq!(stores.second.touch(id, None).await.unwrap(), Lookup::Expired);
    })
    .await;
}

#[tokio::test]
async fn an_expiry_below_the_time_after_exit_limits_that_time() {
    let options = StoreOptions { expiry: TERMINATED_TIME / 2, ..StoreOptions::default() };
    over_each(options, async |stores| {
        let id = stores.create().await;
        advance_to(&*stores.first, id, ConnectionLifecycleState::Terminated).await;
        stores.pass(options.expiry).await;
        assert_eq!(stores.second.touch(id, None).await.unwrap(), Lookup::Expired);
    })
    .await;
}

#[tokio::test]
async fn any_expiry_is_accepted() {
    for expiry in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        over_each(StoreOptions { expiry, ..StoreOptions::default() }, async |stores| {
            let id = stores.create().await;
            stores.pass(Duration::from_millis(1)).await;
            let found = is_found(&*stores.second, id).await;
            assert_eq!(found, expiry == Duration::MAX);
        })
        .await;
    }
}

#[tokio::test]
async fn an_expiry_of_a_year_is_not_shortened() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let options = StoreOptions { expiry: 365 * DAY, ..StoreOptions::default() };
    over_each(options, async |stores| {
        let id = stores.create().await;
        stores.pass(364 * DAY).await;
        assert!(is_found(&*stores.second, id).await);
    })
    .await;
}

async fn check_that_a_reader_ends_with_its_connection(stores: &Stores) {
    let id = stores.create_active().await;
    let mut cursor = open(&*stores.first, id, None).await;
    assert_eq!(next(&*stores.second, &mut cursor).await, NextEvents::Ended);
    assert_eq!(stores.second.find(id).await.unwrap(), Lookup::Expired);
}

/// Proves: B9
#[tokio::test]
async fn a_waiting_reader_ends_when_the_connection_expires() {
    let options = StoreOptions { expiry: Duration::from_secs(2), ..StoreOptions::default() };
    over_each(options, async |stores| check_that_a_reader_ends_with_its_connection(stores).await)
        .await;
}

/// Attack: remote | a client opens connections again and again, and lets them expire | the memory store
/// knows as many expired ids as it can have connections | No unbounded memory
#[tokio::test(start_paused = true)]
async fn the_memory_store_knows_a_limited_number_of_expired_ids() {
    let stores = Stores::memory(StoreOptions { max_connections: 2, ..StoreOptions::default() });
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.extend([stores.create().await, stores.create().await]);
        stores.pass(stores.options.expiry).await;
    }
    for id in &ids[..2] {
        assert_eq!(stores.first.find(*id).await.unwrap(), Lookup::Unknown);
    }
    for id in &ids[2..] {
        assert_eq!(stores.first.find(*id).await.unwrap(), Lookup::Expired);
    }
}
