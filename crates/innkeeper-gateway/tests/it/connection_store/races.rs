//! Two replicas that change connections at the same time.

use std::sync::Arc;

use innkeeper_gateway::connections::store::{ConnectionStore, Created, Lookup, StoreOptions};
use innkeeper_gateway::connections::{ConnectionLifecycleState, LifecycleMessage};
use tokio::task::JoinSet;

use super::stores::{Stores, connection};

/// Number of connections that change at the same time.
const PARALLEL: usize = 8;

/// Moves connections through their life from both replicas, and checks that each move succeeds once.
/// Three moves of a connection are three races.
async fn race(stores: &Stores, races: usize) {
    let mut running = JoinSet::new();
    for _ in 0..PARALLEL {
        let (first, second) = (stores.first.clone(), stores.second.clone());
        running.spawn(async move {
            for _ in 0..races.div_ceil(3 * PARALLEL) {
                race_one(&first, &second).await;
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
}

async fn race_one(first: &Arc<dyn ConnectionStore>, second: &Arc<dyn ConnectionStore>) {
    use LifecycleMessage::{Exit, Initialized, Shutdown};
    let connection = connection(None);
    let id = connection.id;
    assert_eq!(first.create(&connection).await.unwrap(), Created::Added);
    for message in [Initialized, Shutdown, Exit] {
        let (one, other) = tokio::join!(first.advance(id, message), second.advance(id, message));
        match (one.unwrap(), other.unwrap()) {
            (Lookup::Found(Ok(moved)), Lookup::Found(Err(late)))
            | (Lookup::Found(Err(late)), Lookup::Found(Ok(moved))) => {
                assert_eq!((late.state, late.message), (moved.state, message));
            }
            both => panic!("{both:?}"),
        }
    }
    // Neither a touch nor a move revives the connection.
    let (touched, moved) = tokio::join!(second.touch(id, None), first.advance(id, Initialized));
    let Lookup::Found(touched) = touched.unwrap() else { panic!("the connection is lost") };
    assert_eq!(touched.state, ConnectionLifecycleState::Terminated);
    assert!(matches!(moved.unwrap(), Lookup::Found(Err(_))));
}

/// Proves: B8
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_replicas_that_move_a_connection_one_succeeds() {
    race(&Stores::memory(StoreOptions::default()), 10_000).await;
    race(&Stores::files(StoreOptions::default()).await, 1_000).await;
    race(&Stores::redis(StoreOptions::default()).await, 10_000).await;
}

/// Attack: remote | a user opens connections over two replicas at the same time | the replicas together
/// keep the limits | No unbounded memory
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_replicas_together_keep_the_limits() {
    let options = StoreOptions { max_connections: 40, ..StoreOptions::default() };
    for stores in
        [Stores::memory(options), Stores::files(options).await, Stores::redis(options).await]
    {
        // The user gets half, and everyone together the rest.
        for user in [Some("ann"), None] {
            let mut running = JoinSet::new();
            for number in 0..100 {
                let store = if number % 2 == 0 { &stores.first } else { &stores.second };
                let store = store.clone();
                running.spawn(async move { store.create(&connection(user)).await.unwrap() });
            }
            let results = running.join_all().await;
            let added = results.iter().filter(|result| **result == Created::Added).count();
            assert_eq!(added, 20, "{user:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_that_two_replicas_set_at_the_same_time_are_all_there() {
    let options = StoreOptions::default();
    for stores in
        [Stores::memory(options), Stores::files(options).await, Stores::redis(options).await]
    {
        let id = stores.create().await;
        let mut running = JoinSet::new();
        for number in 0..100 {
            let store = if number % 2 == 0 { &stores.first } else { &stores.second };
            let store = store.clone();
            running.spawn(async move {
                let key = number.to_string();
                assert!(store.set_session_data(id, &key, Some(number.into())).await.unwrap());
            });
        }
        running.join_all().await;
        let Lookup::Found(found) = stores.first.find(id).await.unwrap() else {
            panic!("no connection");
        };
        for number in 0..100 {
            assert_eq!(found.session_data[&number.to_string()], number);
        }
    }
}
