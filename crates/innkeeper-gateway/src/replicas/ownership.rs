//! Keys of which one replica at a time is the owner: sessions, and the servers of a principal.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::Replicas;
use super::lease::{LEASE_PREFIX, milliseconds};
use super::scripts;
use crate::principal::Principal;
use crate::redis_client::Reply;
use crate::store_error::StoreError;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum OwnedKey {
    /// A session, by its id.
    Session(Box<str>),
    /// The servers and sessions of a principal.
    Principal(Principal),
    /// The singleton servers, and the sessions that use them.
    Singletons,
}

impl fmt::Display for OwnedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session(id) => write!(f, "session:{id}"),
            Self::Principal(principal) => write!(f, "principal:{principal}"),
            Self::Singletons => f.write_str("singletons"),
        }
    }
}

impl OwnedKey {
    /// Returns the name of the owner in Redis.
    pub(super) fn owner(&self) -> String {
        format!("mcp:owner:{self}")
    }

    /// Returns the name of the records of calls in Redis.
    pub(super) fn calls(&self) -> String {
        format!("mcp:calls:{self}")
    }
}

/// A key that this replica owned at some time.
#[derive(Debug)]
pub(crate) struct Ownership {
    pub(crate) key: OwnedKey,
    /// Grows with each owner: Redis accepts nothing of an owner with a smaller one.
    pub(crate) fence: u64,
    /// How often the key had another owner before.
    pub(crate) moves: u64,
    /// The epoch of the lease in which Redis confirmed the ownership.
    epoch: AtomicU64,
    lost: AtomicBool,
    /// Whether a request used the key since Redis was last told to keep it.
    used: AtomicBool,
    /// When Redis was last told to keep the key.
    kept: Mutex<Instant>,
}

impl Ownership {
    /// Returns whether another replica can own the key.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }
}

#[cfg(test)]
impl Ownership {
    pub(crate) fn for_test() -> Self {
        Self {
            key: OwnedKey::Session("s".into()),
            fence: 1,
            moves: 0,
            epoch: AtomicU64::new(1),
            lost: AtomicBool::new(false),
            used: AtomicBool::new(true),
            kept: Mutex::new(Instant::now()),
        }
    }
}

/// Another replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplicaAddress {
    pub(crate) id: String,
    pub(crate) url: String,
}

/// Who owns a key.
#[derive(Clone, Debug)]
pub(crate) enum Claim {
    /// This replica.
    Owned(Arc<Ownership>),
    Elsewhere(ReplicaAddress),
    /// Nobody, and the key was not to be created.
    Unknown,
}

#[derive(Debug, Default)]
pub(super) struct OwnedKeys {
    by_key: RwLock<HashMap<OwnedKey, Arc<Ownership>>>,
    /// The lost keys whose sessions and servers here have not ended.
    lost: Mutex<Vec<OwnedKey>>,
    has_lost: Notify,
}

impl OwnedKeys {
    fn get(&self, key: &OwnedKey) -> Option<Arc<Ownership>> {
        self.by_key.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn all(&self) -> Vec<Arc<Ownership>> {
        self.by_key.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Returns the ownership with a fence: the known one, or a new one in place of a lost one.
    fn confirm(&self, key: &OwnedKey, fence: u64, moves: u64, epoch: u64) -> Arc<Ownership> {
        let mut by_key = self.by_key.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = by_key.get(key) {
            if known.fence == fence {
                known.epoch.fetch_max(epoch, Ordering::AcqRel);
                return known.clone();
            }
            self.mark_lost(known);
        }
        let ownership = Arc::new(Ownership {
            key: key.clone(),
            fence,
            moves,
            epoch: AtomicU64::new(epoch),
            lost: AtomicBool::new(false),
            used: AtomicBool::new(true),
            kept: Mutex::new(Instant::now()),
        });
        by_key.insert(key.clone(), ownership.clone());
        ownership
    }

    fn lose(&self, ownership: &Ownership) {
        let mut by_key = self.by_key.write().unwrap_or_else(PoisonError::into_inner);
        if by_key.get(&ownership.key).is_some_and(|known| known.fence == ownership.fence) {
            by_key.remove(&ownership.key);
        }
        self.mark_lost(ownership);
    }

    fn mark_lost(&self, ownership: &Ownership) {
        if !ownership.lost.swap(true, Ordering::AcqRel) {
            tracing::warn!(key = %ownership.key, "another replica can own the key");
            let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
            lost.push(ownership.key.clone());
            self.has_lost.notify_one();
        }
    }
}

impl Replicas {
    /// Returns whether this replica owns a key now, without a request to Redis.
    pub(crate) fn owns(&self, ownership: &Ownership) -> bool {
        let lease = &self.0.lease;
        // The epoch after the lease: a lease that began anew in between does not count.
        !ownership.is_lost()
            && lease.is_valid()
            && ownership.epoch.load(Ordering::Acquire) == lease.epoch()
    }

    /// Claims a key, unless another replica with a lease owns it. Without `create`, only a key that
    /// has or had an owner.
    ///
    /// # Errors
    ///
    /// Redis does not respond, or this replica has no lease.
    pub(crate) async fn claim(&self, key: &OwnedKey, create: bool) -> Result<Claim, StoreError> {
        let shared = &*self.0;
        let known = shared.owned.get(key);
        if let Some(known) = &known
            && self.owns(known)
        {
            known.used.store(true, Ordering::Relaxed);
            return Ok(Claim::Owned(known.clone()));
        }
        let epoch = shared.lease.epoch();
        let mut call = scripts::CLAIM.prepare_invoke();
        call.key(key.owner()).key(format!("{LEASE_PREFIX}{}", shared.id));
        call.arg(&shared.id).arg(LEASE_PREFIX);
        call.arg(milliseconds(shared.options.idle)).arg(u8::from(create));
        let reply: Reply = shared.redis.run(&call).await?;
        match reply.name() {
            "owned" | "claimed" => {
                let fence = reply.number(0)?;
                let moves = reply.number(1)?;
                Ok(Claim::Owned(shared.owned.confirm(key, fence, moves, epoch)))
            }
            "elsewhere" => {
                self.lose_known(known.as_deref());
                let text = |index: usize| {
                    let item = reply.items().get(index)?;
                    Some(String::from_utf8_lossy(item).into_owned())
                };
                let (Some(id), Some(url)) = (text(0), text(1)) else {
                    return Err(reply.unexpected());
                };
                Ok(Claim::Elsewhere(ReplicaAddress { id, url }))
            }
            "unknown" => {
                self.lose_known(known.as_deref());
                Ok(Claim::Unknown)
            }
            "no_lease" => Err(no_lease()),
            _ => Err(reply.unexpected()),
        }
    }

    fn lose_known(&self, known: Option<&Ownership>) {
        if let Some(known) = known {
            self.0.owned.lose(known);
        }
    }

    /// Records that Redis knows another owner.
    pub(super) fn lose(&self, ownership: &Ownership) {
        self.0.owned.lose(ownership);
    }

    /// Asks Redis whether this replica still owns what it owned before its lease ended.
    pub(super) async fn verify_owned(&self) {
        for ownership in self.0.owned.all() {
            if let Err(error) = self.claim(&ownership.key, false).await {
                // The next request of a client asks again.
                tracing::warn!(%error, key = %ownership.key, "ownership not verified");
                return;
            }
        }
    }

    /// Waits until this replica lost keys, and returns them.
    pub(crate) async fn lost(&self) -> Vec<OwnedKey> {
        let owned = &self.0.owned;
        owned.has_lost.notified().await;
        std::mem::take(&mut *owned.lost.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Keeps the keys of several sessions that clients use, and gives up those that no client uses for
    /// the idle time. `has_state` says of a key whether a session or a server of it is here.
    pub(crate) async fn keep_used(&self, has_state: impl Fn(&OwnedKey) -> bool) {
        let idle = self.0.options.idle;
        for ownership in self.0.owned.all() {
            let since = {
                let kept = ownership.kept.lock().unwrap_or_else(PoisonError::into_inner);
                kept.elapsed()
            };
            if matches!(ownership.key, OwnedKey::Session(_)) || since < idle / 8 {
                continue;
            }
            // A session uses its key without a claim, and a server that runs must not start elsewhere.
            let result =
                if ownership.used.swap(false, Ordering::Relaxed) || has_state(&ownership.key) {
                    *ownership.kept.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
                    self.keep(&ownership, &[]).await.map(drop)
                } else if since >= idle {
                    self.release(&ownership, None).await
                } else {
                    continue;
                };
            if let Err(error) = result {
                tracing::warn!(%error, "owned keys not kept");
                return;
            }
        }
    }

    /// Gives a key up. With `forget`, nobody claims the key again, and what belongs to it is removed.
    ///
    /// # Errors
    ///
    /// Redis does not respond.
    pub(crate) async fn release(
        &self,
        ownership: &Ownership,
        forget: Option<Vec<String>>,
    ) -> Result<(), StoreError> {
        let shared = &*self.0;
        // The owner ends its own sessions and servers.
        ownership.lost.store(true, Ordering::Release);
        shared.owned.lose(ownership);
        let mut call = scripts::RELEASE.prepare_invoke();
        call.key(ownership.key.owner());
        if forget.is_some() {
            call.key(ownership.key.calls());
        }
        for name in forget.iter().flatten() {
            call.key(name);
        }
        call.arg(&shared.id).arg(ownership.fence).arg(u8::from(forget.is_some()));
        shared.redis.run(&call).await.map(drop)
    }

    /// Gives everything up, so that other replicas take over at once.
    pub(crate) async fn leave(&self) {
        for ownership in self.0.owned.all() {
            if let Err(error) = self.release(&ownership, None).await {
                tracing::warn!(%error, "the keys of this replica stay until the end of its lease");
                return;
            }
        }
    }

    /// Keeps a key and what belongs to it for another idle time.
    ///
    /// # Errors
    ///
    /// Redis does not respond.
    pub(crate) async fn keep(
        &self,
        ownership: &Ownership,
        names: &[String],
    ) -> Result<bool, StoreError> {
        let shared = &*self.0;
        let mut call = scripts::KEEP.prepare_invoke();
        call.key(ownership.key.owner()).key(ownership.key.calls());
        for name in names {
            call.key(name);
        }
        call.arg(&shared.id).arg(ownership.fence).arg(milliseconds(shared.options.idle));
        let reply: Reply = shared.redis.run(&call).await?;
        match reply.name() {
            "kept" => Ok(true),
            "not_owner" => {
                self.lose(ownership);
                Ok(false)
            }
            _ => Err(reply.unexpected()),
        }
    }

    /// Returns the address of a replica; `None` if it has no lease.
    ///
    /// # Errors
    ///
    /// Redis does not respond.
    pub(crate) async fn address(&self, id: &str) -> Result<Option<ReplicaAddress>, StoreError> {
        let mut call = scripts::FIND_VALUE.prepare_invoke();
        call.key(format!("{LEASE_PREFIX}{id}"));
        let reply: Reply = self.0.redis.run(&call).await?;
        match (reply.name(), reply.items().first()) {
            ("found", Some(url)) => {
                let url = String::from_utf8_lossy(url).into_owned();
                Ok(Some(ReplicaAddress { id: id.to_owned(), url }))
            }
            ("unknown", _) => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    /// Returns whether another replica has a lease.
    ///
    /// # Errors
    ///
    /// Redis does not respond.
    pub(crate) async fn is_alive(&self, replica: &ReplicaAddress) -> Result<bool, StoreError> {
        Ok(self.address(&replica.id).await?.is_some())
    }
}

pub(super) fn no_lease() -> StoreError {
    StoreError { reason: "the lease of this replica has ended".to_owned() }
}
