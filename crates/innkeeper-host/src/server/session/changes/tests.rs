//! What a server says has changed, against a server in memory.

use std::time::Duration;

use innkeeper_protocol::method;
use innkeeper_testkit::Peer;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::*;
use crate::cache::Key;
use crate::callback::Callbacks;
use crate::config;
use crate::event::Events;
use crate::server::session::{Limits, Outgoing, Owner};
use crate::tasks::Tasks;

const PATIENCE: Duration = Duration::from_secs(30);

/// A session with a cache in which are these resources and one prompt.
async fn keeping(uris: &[&str]) -> (Peer, Session, Arc<Cache>, Tasks) {
    let (peer, reader, writer) = Peer::new();
    let (tasks, callbacks, events) = (Tasks::default(), Callbacks::default(), Events::new());
    let owner = Owner { server: "fx".into(), callbacks, events, tasks: tasks.clone() };
    let session = Session::open(owner, reader, writer, Limits::default());
    let policy = config::Cache { ttl: PATIENCE, max_entries: 9, max_bytes: 1 << 20 };
    let cache = Arc::new(Cache::new(policy));
    session.keeps(cache.clone());
    let prompt = Key::prompt("fx.greet", &serde_json::Map::new());
    for key in uris.iter().copied().map(Key::resource).chain([prompt]) {
        let ask =
            |_| async { Ok::<Box<RawValue>, ()>(RawValue::from_string("{}".into()).unwrap()) };
        cache.read(&key, false, PATIENCE, ask).await.unwrap();
    }
    (peer, session, cache, tasks)
}

/// Calls a tool that has the server say this before it answers.
async fn call(peer: &mut Peer, session: &Session, method: &str, params: Value) {
    let nothing = json!({});
    let deadline = Instant::now() + PATIENCE;
    let outgoing = Outgoing::new(session.next_id(), method::TOOLS_CALL, &nothing, deadline);
    let answering = async {
        let asked = peer.expect(method::TOOLS_CALL).await;
        peer.notify(method, params).await;
        peer.reply(&asked["id"], json!({})).await;
    };
    let (answer, ()) = tokio::join!(session.request(outgoing), answering);
    answer.unwrap();
}

/// Nobody follows what the session says has changed here, as while lists are read again.
///
/// Proves: FR8.3
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_after_a_change_was_told_finds_the_old_copy_gone() {
    let (mut peer, session, cache, _tasks) = keeping(&["fx://a", "fx://b"]).await;
    assert_eq!(cache.size().0, 3);
    let updated = json!({"uri": "fx://a"});
    call(&mut peer, &session, method::RESOURCES_UPDATED, updated).await;
    assert_eq!(cache.size().0, 2, "the one that was updated");
    call(&mut peer, &session, method::TOOLS_LIST_CHANGED, json!({})).await;
    assert_eq!(cache.size().0, 2, "nothing is kept of tools");
    call(&mut peer, &session, method::RESOURCES_LIST_CHANGED, json!({})).await;
    assert_eq!(cache.size().0, 1, "the prompt");
    call(&mut peer, &session, method::PROMPTS_LIST_CHANGED, json!({})).await;
    assert_eq!(cache.size().0, 0);
}

#[tokio::test(start_paused = true)]
async fn all_is_dropped_in_the_moment_in_which_every_list_is_taken_for_changed() {
    let (_peer, session, cache, _tasks) = keeping(&["fx://a"]).await;
    session.assume_changed();
    assert_eq!(cache.size().0, 0);
}
