//! Connections and their states in a store.

use chrono::{TimeDelta, Utc};
use innkeeper_gateway::connections::store::{ConnectionStore, Created, Lookup, StoreOptions};
use innkeeper_gateway::connections::{
    ConnectionId, ConnectionLifecycleState, InvalidTransition, LifecycleMessage,
};
use serde_json::{Value, json};

use super::stores::{advance_to, connection, over_each, publish};

#[tokio::test]
async fn a_connection_is_found_by_each_replica_as_it_was_created() {
    over_each(StoreOptions::default(), async |stores| {
        for user in [None, Some(""), Some("ann"), Some("é\n:*")] {
            let created = connection(user);
            assert_eq!(stores.first.create(&created).await.unwrap(), Created::Added);
            // Another user neither finds nor renews the connection.
            let other = stores.first.touch(created.id, Some("bob")).await.unwrap();
            assert_eq!(other, Lookup::Unknown);
            let found = stores.second.find(created.id).await.unwrap();
            assert_eq!(found, Lookup::Found(created.clone()));
            let touched = stores.second.touch(created.id, user).await.unwrap();
            let Lookup::Found(touched) = touched else { panic!("{touched:?}") };
            assert_ne!(touched.last_activity, created.last_activity);
        }
        let other = ConnectionId::random();
        assert_eq!(stores.first.find(other).await.unwrap(), Lookup::Unknown);
        assert_eq!(stores.first.touch(other, None).await.unwrap(), Lookup::Unknown);
        let moved = stores.first.advance(other, LifecycleMessage::Shutdown).await.unwrap();
        assert_eq!(moved, Lookup::Unknown);
        assert!(!stores.first.set_session_data(other, "a", None).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn an_id_is_added_once() {
    over_each(StoreOptions::default(), async |stores| {
        let created = connection(Some("ann"));
        assert_eq!(stores.first.create(&created).await.unwrap(), Created::Added);
        let mut again = connection(Some("bob"));
        again.id = created.id;
        assert_eq!(stores.second.create(&again).await.unwrap(), Created::AlreadyExists);
        assert_eq!(stores.first.find(created.id).await.unwrap(), Lookup::Found(created.clone()));
        // The id of a connection that has expired cannot come back.
        stores.pass(stores.options.expiry).await;
        assert_eq!(stores.second.create(&again).await.unwrap(), Created::AlreadyExists);
        assert_eq!(stores.first.find(created.id).await.unwrap(), Lookup::Expired);
    })
    .await;
}

/// Proves: B8
#[tokio::test]
async fn a_store_permits_exactly_the_moves_of_the_lifecycle() {
    over_each(StoreOptions::default(), async |stores| {
        // No stored connection has the state `uninitialized`.
        for state in ConnectionLifecycleState::ALL.into_iter().skip(1) {
            for message in LifecycleMessage::ALL {
                let id = stores.create().await;
                advance_to(&*stores.first, id, state).await;
                let Lookup::Found(before) = stores.first.find(id).await.unwrap() else {
                    panic!("no connection");
                };
                let Lookup::Found(moved) = stores.second.advance(id, message).await.unwrap() else {
                    panic!("no connection");
                };
                let Lookup::Found(after) = stores.first.find(id).await.unwrap() else {
                    panic!("no connection");
                };
                match state.after(message) {
                    Ok(next) => {
                        assert_eq!(after.state, next);
                        assert_eq!(moved, Ok(after.clone()));
                        assert!(Utc::now() - after.last_activity < TimeDelta::minutes(1));
                        let same = innkeeper_gateway::connections::ConnectionState {
                            state: after.state,
                            last_activity: after.last_activity,
                            ..before
                        };
                        assert_eq!(after, same);
                    }
                    Err(_) => {
                        assert_eq!(moved, Err(InvalidTransition { state, message }));
                        assert_eq!(after, before);
                    }
                }
            }
        }
    })
    .await;
}

async fn session_data(store: &dyn ConnectionStore, id: ConnectionId) -> Value {
    match store.find(id).await.unwrap() {
        Lookup::Found(found) => found.session_data.into(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_data_of_the_application_changes_by_member_until_the_connection_ends() {
    over_each(StoreOptions::default(), async |stores| {
        let id = stores.create().await;
        let set = async |key: &str, value| stores.second.set_session_data(id, key, value).await;
        assert!(set("state", Some(json!({ "a": [1.5, "\u{0}é\n", null] }))).await.unwrap());
        assert!(set("page", Some(json!(4))).await.unwrap());
        assert!(set("", None).await.unwrap());
        assert!(set("absent", None).await.unwrap());
        let expected = json!({ "state": { "a": [1.5, "\u{0}é\n", null] }, "page": 4 });
        assert_eq!(session_data(&*stores.first, id).await, expected);
        advance_to(&*stores.first, id, ConnectionLifecycleState::Terminating).await;
        assert!(set("page", Some(json!(null))).await.unwrap());
        stores.first.advance(id, LifecycleMessage::Exit).await.unwrap();
        assert!(!set("page", Some(json!(5))).await.unwrap());
        assert_eq!(session_data(&*stores.first, id).await["page"], Value::Null);
        stores.pass(stores.options.expiry).await;
        assert!(!set("page", Some(json!(6))).await.unwrap());
        assert_eq!(stores.first.find(id).await.unwrap(), Lookup::Expired);
    })
    .await;
}

/// Proves: B44
#[tokio::test]
async fn only_active_connections_are_listed_and_get_events() {
    over_each(StoreOptions::default(), async |stores| {
        let mut ids = Vec::new();
        for state in ConnectionLifecycleState::ALL.into_iter().skip(1) {
            let id = stores.create().await;
            advance_to(&*stores.first, id, state).await;
            let is_active = state == ConnectionLifecycleState::Active;
            assert_eq!(stores.second.publish(id, "event".into()).await.unwrap(), is_active);
            ids.push(id);
        }
        assert_eq!(stores.second.active().await.unwrap(), [ids[1]]);
        let other = stores.create_active().await;
        publish(&*stores.second, other, "event").await;
        let mut active = stores.first.active().await.unwrap();
        active.sort();
        let mut expected = [ids[1], other];
        expected.sort();
        assert_eq!(active, expected);
        let half = stores.options.expiry / 2;
        stores.pass(half).await;
        stores.first.touch(other, None).await.unwrap();
        stores.pass(half).await;
        assert_eq!(stores.second.active().await.unwrap(), [other]);
        stores.pass(half).await;
        assert_eq!(stores.first.active().await.unwrap(), []);
        assert!(!stores.first.publish(other, "event".into()).await.unwrap());
        assert!(!stores.first.publish(ConnectionId::random(), "event".into()).await.unwrap());
    })
    .await;
}
