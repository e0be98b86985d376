//! The process tree behind one server, independent of the system that runs it.

use std::fmt;

use futures_util::future::BoxFuture;

use super::{ExitStatus, KillHandle, LaunchProbe, Process, ProcessContainment};

/// A running server process with its descendants. Dropping it kills the whole tree.
pub trait ServerProcess: fmt::Debug + Send + Sync {
    /// Returns the id of the server's main process.
    fn id(&self) -> u32;

    /// Returns how the tree is contained.
    fn containment(&self) -> ProcessContainment;

    /// Waits until the main process exits; cancel-safe, and can be called repeatedly.
    fn wait(&mut self) -> BoxFuture<'_, ExitStatus>;

    /// Returns the exit status of the main process, if a wait has observed it.
    fn exit_status(&self) -> Option<ExitStatus>;

    /// Requests the termination of every process of the tree; never blocks.
    fn terminate(&self);

    /// Kills every process of the tree; never blocks.
    fn kill(&self);

    /// Waits until the whole tree is gone and reaped; cancel-safe. Completes after a kill, and
    /// after the exit of the main process.
    fn wait_tree(&mut self) -> BoxFuture<'_, ()>;

    /// Returns a handle that can kill the tree and does not keep it alive.
    fn kill_handle(&self) -> KillHandle;

    /// Returns whether the main process, a launcher, has started the server; `None` if the system
    /// does not report it.
    fn has_started(&self, launching: &mut LaunchProbe) -> Option<bool>;
}

impl ServerProcess for Process {
    fn id(&self) -> u32 {
        self.id()
    }

    fn containment(&self) -> ProcessContainment {
        self.containment()
    }

    fn wait(&mut self) -> BoxFuture<'_, ExitStatus> {
        Box::pin(self.wait())
    }

    fn exit_status(&self) -> Option<ExitStatus> {
        self.exit_status()
    }

    fn terminate(&self) {
        self.terminate();
    }

    fn kill(&self) {
        self.kill();
    }

    fn wait_tree(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.wait_tree())
    }

    fn kill_handle(&self) -> KillHandle {
        self.kill_handle()
    }

    fn has_started(&self, launching: &mut LaunchProbe) -> Option<bool> {
        self.has_started(launching)
    }
}
