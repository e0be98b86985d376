//! The standing request of the modern era under which a server tells of changes.

use std::time::Duration;

use innkeeper_protocol::method;
use innkeeper_protocol::view::ServerCapabilities;
use serde::Serialize;
use tokio::time::{Instant, sleep};

use super::connection::{Connection, LONGEST};
use super::meta::Meta;
use super::session::{Fault, Outgoing};
use super::wishes::Wishes;
use crate::error::ProtocolFault;

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

/// Keeps the request open; returns where the server has nothing to tell or will not.
pub(super) async fn listen(connection: &Connection, declared: &ServerCapabilities) {
    let (server, wishes, mut pause) = (&*connection.server, &connection.wishes, PAUSE);
    loop {
        let Some(filter) = Filter::of(declared, wishes) else {
            wishes.changed().await;
            continue;
        };
        let opened = Instant::now();
        let session = &connection.session;
        let params = ListenParams { notifications: filter, meta: connection.identity.meta(None) };
        let outgoing = Outgoing::new(
            session.next_id(),
            method::SUBSCRIPTIONS_LISTEN,
            &params,
            opened + LONGEST,
        );
        let request = session.request(Outgoing { background: true, ..outgoing });
        let answer = tokio::select! {
            biased;
            answer = request => answer,
            // Dropping the request ends it at the server; the next one asks for what is wanted now.
            () = wishes.changed() => continue,
        };
        match answer {
            // Both were said politely: it tells of nothing, or it tells nothing more for now.
            Err(Fault::Answer(error)) => {
                let code = error.code;
                tracing::info!(server, code, "the server does not tell of changes");
                return;
            }
            // A gateway that is out of order, or out of patience, says nothing for the server.
            Err(Fault::Protocol(ProtocolFault::Status { status: 408 | 500.., .. })) => {}
            Err(Fault::Protocol(_)) => return,
            Ok(_) => {}
            Err(Fault::Lost { reason, .. }) => {
                tracing::debug!(server, reason = reason.to_string(), "no changes are heard");
            }
            Err(Fault::Late) => continue,
        }
        pause = if opened.elapsed() >= STABLE { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        sleep(pause / 2).await;
        // What changed in between was told to nobody.
        session.assume_changed();
    }
}
