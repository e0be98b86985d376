//! Calls of many clients at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::client::{Call, Client, STATELESS};
use super::cluster::PROGRESS_STEPS;
use super::history::{CallKind, EventKind, History, Outcome};

/// The clients: a revision, and how many of them have how many calls at the same time.
const CLIENTS: [(&str, usize, usize); 5] = [
    ("2025-11-25", 8, 2),
    ("2025-06-18", 4, 2),
    ("2025-03-26", 3, 1),
    ("2024-11-05", 1, 1),
    (STATELESS, 6, 1),
];

/// The revision with batches.
const WITH_BATCHES: &str = "2025-03-26";

/// Number of clients that end their sessions.
const VISITORS: usize = 2;

/// Random numbers of a seed.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Clients with sessions that stay from one part of the load to the next.
#[derive(Debug)]
pub(super) struct Load {
    clients: Vec<(Arc<Client>, usize, bool)>,
    visitors: Vec<Arc<Client>>,
    history: Arc<History>,
    shared: Arc<Shared>,
    seed: u64,
}

/// What all lanes of a part share.
#[derive(Debug)]
struct Shared {
    next_number: AtomicU64,
    /// Number of calls of this part.
    started: AtomicU64,
    is_ending: AtomicBool,
}

impl Load {
    pub(super) fn new(url: &str, history: &Arc<History>, seed: u64) -> Self {
        let client = |revision| Arc::new(Client::new(url.to_owned(), revision, history));
        let clients = CLIENTS.into_iter().flat_map(|(revision, count, lanes)| {
            let has_batches = revision == WITH_BATCHES;
            (0..count).map(move |_| (client(revision), lanes, has_batches))
        });
        let shared = Shared {
            next_number: AtomicU64::new(1),
            started: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
        };
        Self {
            clients: clients.collect(),
            visitors: (0..VISITORS).map(|_| client("2025-11-25")).collect(),
            history: history.clone(),
            shared: Arc::new(shared),
            seed,
        }
    }

    /// Sends calls while the future runs, and at least so many. Returns when all calls have ended.
    pub(super) async fn run(&mut self, count: u64, during: impl Future<Output = ()>) {
        self.shared.started.store(0, Ordering::Relaxed);
        self.shared.is_ending.store(false, Ordering::Relaxed);
        let mut lanes = JoinSet::new();
        for (client, width, has_batches) in &self.clients {
            for _ in 0..*width {
                self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (client, shared) = (client.clone(), self.shared.clone());
                lanes.spawn(run_lane(client, shared, Random(self.seed | 1), *has_batches));
            }
        }
        for client in &self.visitors {
            lanes.spawn(visit(client.clone(), self.shared.clone(), self.history.clone()));
        }
        during.await;
        while self.shared.started.load(Ordering::Relaxed) < count {
            sleep(Duration::from_millis(20)).await;
        }
        self.shared.is_ending.store(true, Ordering::Relaxed);
        while let Some(ended) = lanes.join_next().await {
            ended.unwrap();
        }
    }
}

impl Shared {
    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Relaxed)
    }

    fn next(&self) -> u64 {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }
}

/// Sends one call after the other.
async fn run_lane(client: Arc<Client>, shared: Arc<Shared>, mut random: Random, has_batches: bool) {
    while !shared.is_ending() {
        let is_batch = has_batches && random.below(4) == 0;
        let calls: Vec<Call> =
            (0..=u64::from(is_batch)).map(|_| next_call(shared.next(), &mut random)).collect();
        client.call(&calls).await;
        sleep(Duration::from_millis(random.below(60))).await;
    }
}

/// Returns the next call of the mix.
fn next_call(number: u64, random: &mut Random) -> Call {
    match random.below(100) {
        0..50 => effect(number),
        50..65 => {
            let params = json!({ "name": "fx.sleep",
                "arguments": { "ms": 300 + random.below(1_200), "number": number } });
            Call { params, expected: "slept".to_owned(), ..effect(number) }
        }
        65..80 => {
            let call = effect(number);
            let mut params = call.params.clone();
            params["name"] = json!("pr.echo");
            Call { params, steps: PROGRESS_STEPS, ..call }
        }
        80..92 => {
            let params = json!({ "name": "fx.read",
                "arguments": { "path": "/proc/version", "number": number } });
            let (kind, expected) = (CallKind::ReadOnly, "Linux".to_owned());
            Call { kind, params, expected, ..effect(number) }
        }
        _ => {
            let (kind, params) = (CallKind::List, json!({}));
            let (method, expected) = ("tools/list", "fx.echo".to_owned());
            Call { kind, method, params, expected, ..effect(number) }
        }
    }
}

/// Returns a call that may not run twice.
pub(super) fn effect(number: u64) -> Call {
    let message = format!("call {number}");
    let params =
        json!({ "name": "fx.echo", "arguments": { "message": message, "number": number } });
    let (kind, method) = (CallKind::Effect, "tools/call");
    Call { number, kind, steps: 0, method, params, expected: message }
}

/// Opens a session, calls a tool, and ends the session: no replica has the session afterwards.
async fn visit(client: Arc<Client>, shared: Arc<Shared>, history: Arc<History>) {
    while !shared.is_ending() {
        client.call(&[effect(shared.next())]).await;
        let Some(session) = client.session() else { continue };
        let status = client.delete(&session).await;
        client.forget(&session);
        if status == Some(204) && responds(&client, &session).await {
            let number = shared.next();
            history.add(number, EventKind::Started { kind: CallKind::List, steps: 0 });
            let outcome = Outcome::Wrong("a session responds after its end".to_owned());
            history.add(number, EventKind::Ended(outcome));
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Returns whether a session responds, as soon as a replica can tell.
async fn responds(client: &Client, session: &str) -> bool {
    let ping = json!({ "jsonrpc": "2.0", "id": "late", "method": "ping" });
    loop {
        match client.post(Some(session), &ping).await {
            Ok(response) if response.status() == 200 => return true,
            Ok(response) if response.status() == 404 => return false,
            // The load ends long before a store or a replica that does not return.
            Ok(_) | Err(_) => sleep(Duration::from_millis(200)).await,
        }
    }
}
