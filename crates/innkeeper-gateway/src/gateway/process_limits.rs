//! The maximum number of server processes, and the maximum of their memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The limits of the server processes of a gateway.
#[derive(Debug)]
pub(crate) struct ProcessLimits {
    permits: Arc<Semaphore>,
    processes: usize,
    /// In bytes.
    memory: Option<u64>,
    /// The memory of all processes at the last measurement, in bytes.
    used_memory: AtomicU64,
}

/// The reason why no further process can start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProcessLimitExceeded {
    /// All permits are in use.
    #[error(
        "too many server processes: `serve.limits.processes` permits {maximum}; end a session, or \
         try again later"
    )]
    Processes { maximum: usize },
    /// The running processes use all memory.
    #[error(
        "the server processes use all memory: `serve.limits.memory` permits {maximum} bytes; end a \
         session, or try again later"
    )]
    Memory { maximum: u64 },
}

impl ProcessLimits {
    pub(crate) fn new(processes: usize, memory: Option<u64>) -> Self {
        let processes = processes.min(Semaphore::MAX_PERMITS);
        let permits = Arc::new(Semaphore::new(processes));
        Self { permits, processes, memory, used_memory: AtomicU64::new(0) }
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

    /// Reserves a number of processes.
    pub(crate) fn try_reserve(
        &self,
        count: usize,
    ) -> Result<Vec<OwnedSemaphorePermit>, ProcessLimitExceeded> {
        if let Some(maximum) = self.memory
            && count > 0
            && self.used_memory.load(Ordering::Relaxed) >= maximum
        {
            return Err(ProcessLimitExceeded::Memory { maximum });
        }
        let exceeded = ProcessLimitExceeded::Processes { maximum: self.processes };
        // A permit that is dropped becomes free at once.
        (0..count).map(|_| self.permits.clone().try_acquire_owned().map_err(|_| exceeded)).collect()
    }

    /// Reserves a number of processes that run already, as far as the maximum permits.
    pub(crate) fn reserve_running(&self, count: usize) -> Vec<OwnedSemaphorePermit> {
        (0..count).map_while(|_| self.permits.clone().try_acquire_owned().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reservation_over_the_limit_takes_nothing() {
        let limits = ProcessLimits::new(3, None);
        let first = limits.try_reserve(2).unwrap();
        let exceeded = ProcessLimitExceeded::Processes { maximum: 3 };
        assert_eq!(limits.try_reserve(2).unwrap_err(), exceeded);
        drop(limits.try_reserve(1).unwrap());
        drop(first);
        assert_eq!(limits.try_reserve(3).unwrap().len(), 3);
    }

    #[test]
    fn processes_that_run_over_the_limit_count_as_far_as_it_permits() {
        let limits = ProcessLimits::new(2, Some(100));
        limits.record_memory(200);
        assert_eq!(limits.reserve_running(1).len(), 1);
        let running = limits.reserve_running(3);
        assert_eq!(running.len(), 2);
        limits.record_memory(0);
        assert!(limits.try_reserve(1).is_err());
        drop(running);
        assert_eq!(limits.try_reserve(2).unwrap().len(), 2);
    }

    #[test]
    fn no_process_starts_while_the_memory_is_used() {
        let limits = ProcessLimits::new(3, Some(100));
        assert!(!limits.record_memory(99));
        drop(limits.try_reserve(1).unwrap());
        assert!(!limits.record_memory(100));
        assert_eq!(limits.try_reserve(0).unwrap().len(), 0);
        let error = limits.try_reserve(1).unwrap_err();
        assert_eq!(error, ProcessLimitExceeded::Memory { maximum: 100 });
        assert!(limits.record_memory(101));
    }
}
