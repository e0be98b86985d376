//! Depth one: no sampling inside of sampling.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

tokio::task_local! {
    /// Present in the task of a model that answers a sampling request.
    static ANSWERS_SAMPLING: ();
}

/// The servers whose sampling requests are being answered.
#[derive(Clone, Debug, Default)]
pub(super) struct ActiveSampling(Arc<Mutex<HashSet<Arc<str>>>>);

/// A sampling request that is being answered. Dropping the value ends the request.
#[derive(Debug)]
pub(super) struct SamplingPermit {
    active: ActiveSampling,
    server: Arc<str>,
}

impl ActiveSampling {
    /// Starts a sampling request. Returns `None` if a request of the server is being answered, or if
    /// the request belongs to a call that was made in the task of an answering model.
    pub(super) fn start(&self, server: &Arc<str>) -> Option<SamplingPermit> {
        let is_nested = ANSWERS_SAMPLING.try_with(|()| ()).is_ok();
        let mut servers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_nested || !servers.insert(server.clone()) {
            return None;
        }
        Some(SamplingPermit { active: self.clone(), server: server.clone() })
    }
}

impl SamplingPermit {
    /// Runs the model. Calls that the model makes in the same task cannot start sampling.
    pub(super) async fn run<T>(&self, model: impl Future<Output = T>) -> T {
        ANSWERS_SAMPLING.scope((), model).await
    }
}

impl Drop for SamplingPermit {
    fn drop(&mut self) {
        let mut servers = self.active.0.lock().unwrap_or_else(PoisonError::into_inner);
        servers.remove(&self.server);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_has_one_sampling_request_at_a_time_and_none_inside_of_another() {
        let active = ActiveSampling::default();
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        let permit = active.start(&a).unwrap();
        assert!(active.start(&a).is_none());
        assert!(active.start(&b).is_some(), "another server, outside of the model");
        permit.run(async { assert!(active.start(&b).is_none()) }).await;
        drop(permit);
        assert!(active.start(&a).is_some());
    }
}
