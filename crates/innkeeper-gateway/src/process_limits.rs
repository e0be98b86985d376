//! The maximum number of server processes, and the maximum of their memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::principal::Principal;
use crate::quota::{Quota, QuotaExceeded, Reservation};

#[derive(Debug)]
pub(crate) struct ProcessLimits {
    quota: Arc<Quota>,
    processes: usize,
    /// In bytes.
    memory: Option<u64>,
    /// The memory of all processes at the last measurement, in bytes.
    used_memory: AtomicU64,
}

/// The reason why no further process can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProcessLimitExceeded {
    /// The client has its share.
    #[error(
        "this client has as many server processes as one client can have: half of \
         `serve.limits.processes` ({maximum}), without the processes that all clients share; end a \
         session, or try again later"
    )]
    Own { maximum: usize },
    /// All clients together have all processes.
    #[error(
        "all clients together have too many server processes: `serve.limits.processes` permits \
         {maximum}; end a session, or try again later"
    )]
    Total { maximum: usize },
    /// The running processes use all memory.
    #[error(
        "the server processes use all memory: `serve.limits.memory` permits {maximum} bytes; end a \
         session, or try again later"
    )]
    Memory { maximum: u64 },
}

impl ProcessLimitExceeded {
    /// Returns the key of the limit in the configuration, and whose limit it is.
    pub(crate) fn limit(self) -> (&'static str, &'static str) {
        match self {
            Self::Own { .. } => ("serve.limits.processes", "client"),
            Self::Total { .. } => ("serve.limits.processes", "total"),
            Self::Memory { .. } => ("serve.limits.memory", "total"),
        }
    }
}

impl ProcessLimits {
    pub(crate) fn new(processes: usize, memory: Option<u64>) -> Self {
        let quota = Quota::new(processes);
        Self { quota, processes, memory, used_memory: AtomicU64::new(0) }
    }

    /// Returns the maximum memory in bytes.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Records the memory of all processes in bytes. Returns whether it exceeds the maximum.
    pub(crate) fn record_memory(&self, used: u64) -> bool {
        self.used_memory.store(used, Ordering::Relaxed);
        self.memory.is_some_and(|maximum| used > maximum)
    }

    pub(crate) fn try_reserve(
        &self,
        owner: &Principal,
    ) -> Result<Reservation, ProcessLimitExceeded> {
        if let Some(maximum) = self.memory
            && self.used_memory.load(Ordering::Relaxed) >= maximum
        {
            return Err(ProcessLimitExceeded::Memory { maximum });
        }
        let maximum = self.processes;
        self.quota.reserve(owner, 1).map_err(|exceeded| match exceeded {
            QuotaExceeded::Own => ProcessLimitExceeded::Own { maximum },
            QuotaExceeded::Total => ProcessLimitExceeded::Total { maximum },
        })
    }

    /// Reserves a process that runs already, if the maximum permits it.
    pub(crate) fn reserve_running(&self, owner: &Principal) -> Option<Reservation> {
        self.quota.reserve(owner, 1).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ann() -> Principal {
        Principal::new("ann")
    }

    /// Attack: remote | a client starts processes until the maximum is reached | it gets half of what the
    /// servers of all clients leave, with an error that says whose limit it is | Isolation
    #[test]
    fn a_client_leaves_half_of_the_processes_for_others() {
        let limits = ProcessLimits::new(5, None);
        let _shared = limits.reserve_running(&Principal::local_user()).unwrap();
        let held = [limits.try_reserve(&ann()).unwrap(), limits.try_reserve(&ann()).unwrap()];
        let own = limits.try_reserve(&ann()).unwrap_err();
        assert_eq!(own, ProcessLimitExceeded::Own { maximum: 5 });
        let ben = Principal::new("ben");
        let _of_ben = [limits.try_reserve(&ben).unwrap(), limits.try_reserve(&ben).unwrap()];
        let total = limits.try_reserve(&Principal::new("cid")).unwrap_err();
        assert_eq!(total, ProcessLimitExceeded::Total { maximum: 5 });
        drop(held);
        assert!(limits.try_reserve(&ann()).is_ok());
    }

    #[test]
    fn processes_that_run_over_the_limit_count_as_far_as_it_permits() {
        let limits = ProcessLimits::new(2, Some(100));
        let all = Principal::local_user();
        limits.record_memory(200);
        let running = [(); 3].map(|()| limits.reserve_running(&all));
        assert_eq!(running.iter().flatten().count(), 2);
        limits.record_memory(0);
        assert!(limits.try_reserve(&ann()).is_err());
        drop(running);
        assert!(limits.try_reserve(&ann()).is_ok());
    }

    #[test]
    fn no_process_starts_while_the_memory_is_used() {
        let limits = ProcessLimits::new(3, Some(100));
        assert!(!limits.record_memory(99));
        let _ = limits.try_reserve(&ann()).unwrap();
        assert!(!limits.record_memory(100));
        let error = limits.try_reserve(&ann()).unwrap_err();
        assert_eq!(error, ProcessLimitExceeded::Memory { maximum: 100 });
        assert!(limits.record_memory(101));
    }
}
