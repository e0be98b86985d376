//! The remote sessions of a session, sealed for its next owner: only a replica with the secret opens them, and
//! only for the same session of the same principal.

use indexmap::IndexMap;
use innkeeper_host::RemoteSession;

use super::Replicas;
use crate::sealed_state::StateSealer;

/// Maximum length of sealed sessions: far more than `initialize` returns, and a small part of what Redis
/// stores for the streams of a session.
const MAX_SEALED_BYTES: usize = 256 << 10;

/// The session that remote sessions belong to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SealedFor<'a> {
    pub(crate) session: &'a str,
    pub(crate) principal: &'a str,
    /// What the endpoint is called among replicas.
    pub(crate) endpoint: &'a str,
}

impl SealedFor<'_> {
    /// Returns a text that no other session has.
    fn owner(&self) -> Option<Vec<u8>> {
        serde_json::to_vec(&("remote sessions", self.session, self.principal, self.endpoint)).ok()
    }
}

impl Replicas {
    /// Returns the sealed sessions by server; `None` if they are too long, or the system has no random
    /// numbers.
    pub(crate) fn seal_sessions(
        &self,
        owner: SealedFor<'_>,
        sessions: &IndexMap<String, RemoteSession>,
    ) -> Option<String> {
        let owner = owner.owner()?;
        let sealer = StateSealer::from_secret(self.secret(), &owner, MAX_SEALED_BYTES)?;
        sealer.seal(sessions, &owner).filter(|sealed| sealed.len() <= MAX_SEALED_BYTES)
    }

    /// Returns the sessions by server; `None` for a text that was not sealed for this session.
    pub(crate) fn open_sessions(
        &self,
        owner: SealedFor<'_>,
        sealed: &str,
    ) -> Option<IndexMap<String, RemoteSession>> {
        let owner = owner.owner()?;
        let sealer = StateSealer::from_secret(self.secret(), &owner, MAX_SEALED_BYTES)?;
        sealer.open(sealed, &owner).ok()
    }
}
