//! The standing request of the modern era under which a server tells of changes.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::view::ServerCapabilities;
use innkeeper_protocol::{Era, method};
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::age;
use super::connection::{Connection, LONGEST};
use super::meta::Meta;
use super::session::{Answer, Fault, Outgoing};
use super::wishes::Wishes;
use crate::error::ProtocolFault;
use crate::tasks::Tasks;

/// How long lists are not read because the server has not said yet that it tells of their changes.
const OPENING: Duration = Duration::from_millis(500);

/// How long it may take to say so until it counts as one that does so without a word.
const ACKNOWLEDGING: Duration = Duration::from_secs(5);

/// The pause before the request is sent again; doubles with every failure.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A request that was open for so long did not fail at once.
const STABLE: Duration = Duration::from_secs(60);

#[derive(Serialize)]
struct ListenParams<'a> {
    notifications: Filter,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    prompts_list_changed: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resources_list_changed: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
}

impl Filter {
    fn of(declared: &ServerCapabilities, wishes: &Wishes) -> Option<Self> {
        let tells = |list: Option<bool>| list.unwrap_or_default();
        let resources = declared.resources.unwrap_or_default();
        let filter = Self {
            tools_list_changed: tells(declared.tools.map(|list| list.list_changed)),
            prompts_list_changed: tells(declared.prompts.map(|list| list.list_changed)),
            resources_list_changed: resources.list_changed,
            resource_subscriptions: wishes.all(),
        };
        let lists = filter.tools_list_changed
            || filter.prompts_list_changed
            || filter.resources_list_changed;
        (lists || !filter.resource_subscriptions.is_empty()).then_some(filter)
    }
}

/// Has a server of the modern era listened to until its session closes. Ends once it has said that it
/// tells of changes, or that it does not: what changes after that is heard, and what changed before is
/// in lists that are read after that. Waits a moment at most; where it says so later, every list
/// counts as changed.
pub(super) async fn begin(
    connection: &Arc<Connection>,
    declared: &ServerCapabilities,
    tasks: &Tasks,
) {
    if connection.revision.era() == Era::Legacy {
        return;
    }
    let (first, told) = oneshot::channel();
    let (connection, declared) = (connection.clone(), declared.clone());
    tasks.spawn(async move {
        tokio::select! {
            biased;
            _ = connection.session.closed() => {}
            () = async {
                listen(&connection, &declared, first).await;
                age::look_again(&connection).await;
            } => {}
        }
    });
    drop(timeout(OPENING, told).await);
}

/// Keeps the request open; returns where the server will not tell of changes. `first` is told when it
/// does for the first time, and dropped where it does not.
async fn listen(
    connection: &Connection,
    declared: &ServerCapabilities,
    first: oneshot::Sender<()>,
) {
    let (server, wishes, mut pause) = (&*connection.server, &connection.wishes, PAUSE);
    let mut first = Some(first);
    loop {
        let Some(filter) = Filter::of(declared, wishes) else {
            drop(first.take());
            wishes.changed().await;
            continue;
        };
        let opened = Instant::now();
        let session = &connection.session;
        let answer = tokio::select! {
            biased;
            answer = ask(connection, filter, &mut first) => answer,
            // Dropping the request ends it at the server; the next one asks for what is wanted now.
            () = wishes.changed() => continue,
        };
        let over = match answer {
            // Both were said politely: it tells of nothing, or it tells nothing more for now.
            Err(Fault::Answer(error)) => {
                let code = error.code;
                tracing::info!(server, code, "the server does not tell of changes");
                true
            }
            // A gateway that is out of order, or out of patience, says nothing for the server.
            Err(Fault::Protocol(ProtocolFault::Status { status: 408 | 500.., .. })) => false,
            Err(Fault::Protocol(_)) => true,
            Ok(_) => false,
            Err(Fault::Lost { reason, .. }) => {
                tracing::debug!(server, reason = reason.to_string(), "no changes are heard");
                false
            }
            Err(Fault::Late) => continue,
        };
        if over {
            // What changed since it was heard last was told to nobody.
            if first.take().is_none() {
                session.assume_changed();
            }
            return;
        }
        pause = if opened.elapsed() >= STABLE { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause / 2).await;
    }
}

/// Sends the request and waits for its end. Once the server says that it tells of changes, lists that
/// were read before count as changed.
async fn ask(
    connection: &Connection,
    filter: Filter,
    first: &mut Option<oneshot::Sender<()>>,
) -> Answer {
    let session = &connection.session;
    let params = ListenParams { notifications: filter, meta: connection.identity.meta(None) };
    let (id, now) = (session.next_id(), Instant::now());
    let outgoing = Outgoing::new(id, method::SUBSCRIPTIONS_LISTEN, &params, now + LONGEST);
    let request = session.request(Outgoing { background: true, ..outgoing });
    let told = async {
        let acknowledged = session.acknowledged(id);
        tokio::pin!(acknowledged);
        let in_time = timeout(ACKNOWLEDGING, &mut acknowledged).await.is_ok();
        let waits = first.take().is_some_and(|first| in_time && first.send(()).is_ok());
        if !waits {
            session.assume_changed();
        }
        if !in_time {
            acknowledged.await;
            session.assume_changed();
        }
        std::future::pending().await
    };
    tokio::select! {
        biased;
        answer = request => answer,
        never = told => never,
    }
}

#[cfg(test)]
mod tests;
