//! The numbers of connections in a store.

use innkeeper_gateway::connections::store::{ConnectionStore, Created, StoreOptions};
use innkeeper_gateway::connections::{ConnectionId, ConnectionLifecycleState};

use super::stores::{advance_to, connection, over_each};

/// A store for five connections, of which a user can have three.
const OPTIONS: StoreOptions =
    StoreOptions { expiry: std::time::Duration::from_secs(1_800), max_connections: 5 };

async fn create(store: &dyn ConnectionStore, user: Option<&str>) -> (Created, ConnectionId) {
    let connection = connection(user);
    (store.create(&connection).await.unwrap(), connection.id)
}

/// Attack: remote | a user opens connections until the store takes no more | the user gets half of the
/// connections, and another user gets one | No unbounded memory
#[tokio::test]
async fn a_user_gets_half_of_the_connections() {
    over_each(OPTIONS, async |stores| {
        for store in [&stores.first, &stores.second, &stores.first] {
            assert_eq!(create(&**store, Some("ann")).await.0, Created::Added);
        }
        for store in [&stores.first, &stores.second] {
            assert_eq!(create(&**store, Some("ann")).await.0, Created::UserLimit);
        }
        assert_eq!(create(&*stores.second, Some("bob")).await.0, Created::Added);
        assert_eq!(create(&*stores.first, None).await.0, Created::Added);
        // The total comes before the share of the user.
        for user in [Some("ann"), Some("bob"), Some("local"), None] {
            assert_eq!(create(&*stores.second, user).await.0, Created::TotalLimit);
        }
        stores.pass(OPTIONS.expiry).await;
        assert_eq!(create(&*stores.second, Some("ann")).await.0, Created::Added);
    })
    .await;
}

#[tokio::test]
async fn connections_without_another_user_can_be_all_connections() {
    for user in [Some("local"), None] {
        over_each(OPTIONS, async |stores| {
            for _ in 0..OPTIONS.max_connections {
                assert_eq!(create(&*stores.first, user).await.0, Created::Added);
            }
            assert_eq!(create(&*stores.second, user).await.0, Created::TotalLimit);
        })
        .await;
    }
}

#[tokio::test]
async fn a_user_gets_a_new_connection_when_one_has_ended_or_expired() {
    over_each(OPTIONS, async |stores| {
        let (_, ended) = create(&*stores.first, Some("ann")).await;
        for _ in 0..2 {
            assert_eq!(create(&*stores.first, Some("ann")).await.0, Created::Added);
        }
        advance_to(&*stores.second, ended, ConnectionLifecycleState::Terminated).await;
        assert_eq!(create(&*stores.first, Some("ann")).await.0, Created::UserLimit);
        stores.pass(std::time::Duration::from_secs(30)).await;
        let (created, renewed) = create(&*stores.second, Some("ann")).await;
        assert_eq!(created, Created::Added);
        assert_eq!(create(&*stores.second, Some("ann")).await.0, Created::UserLimit);

        // A renewed connection counts until its new expiry.
        let half = OPTIONS.expiry / 2;
        stores.pass(half).await;
        stores.first.touch(renewed, Some("ann")).await.unwrap();
        stores.pass(half).await;
        for expected in [Created::Added, Created::Added, Created::UserLimit] {
            assert_eq!(create(&*stores.second, Some("ann")).await.0, expected);
        }
    })
    .await;
}

#[tokio::test]
async fn a_store_of_no_or_one_connection_is_possible() {
    for max_connections in [0, 1] {
        over_each(StoreOptions { max_connections, ..OPTIONS }, async |stores| {
            for _ in 0..max_connections {
                assert_eq!(create(&*stores.first, Some("ann")).await.0, Created::Added);
            }
            assert_eq!(create(&*stores.first, Some("bob")).await.0, Created::TotalLimit);
        })
        .await;
    }
}
