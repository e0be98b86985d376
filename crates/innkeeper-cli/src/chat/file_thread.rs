//! Reads and writes files in threads, so that a slow file system never stops the screen.

use std::sync::Arc;
use std::thread;

use tokio::sync::{Semaphore, oneshot};

/// Number of threads at the same time: one waits for a file system that does not respond, and
/// others still read.
const MAX_THREADS: usize = 3;

/// Threads that read or write files. The end of the program does not wait for them.
#[derive(Clone, Debug)]
pub(crate) struct FileThreads(Arc<Semaphore>);

impl Default for FileThreads {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_THREADS)))
    }
}

impl FileThreads {
    /// Runs a function in a thread; `None` if the thread cannot start or panics. A drop of the future
    /// loses the result, and the function runs to its end.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        function: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = self.0.clone().acquire_owned().await.ok()?;
        let (sender, receiver) = oneshot::channel();
        let thread = thread::Builder::new().name("innkeeper-files".to_owned());
        thread
            .spawn(move || {
                let result = function();
                drop(permit);
                // Nobody may wait for the result any more.
                sender.send(result).unwrap_or_default();
            })
            .ok()?;
        receiver.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;

    /// Attack: files | a directory of a file system that does not respond is completed | other files
    /// are read | No unbounded wait
    #[tokio::test]
    async fn a_thread_that_waits_stops_no_other_thread() {
        let threads = FileThreads::default();
        let (release, wait) = mpsc::channel::<()>();
        let slow = threads.run(move || wait.recv().is_ok());
        tokio::pin!(slow);
        tokio::select! {
            biased;
            _ = &mut slow => panic!("nothing released the thread"),
            () = sleep(Duration::from_secs(60)) => panic!("a thread waits for another"),
            fast = threads.run(|| 7) => assert_eq!(fast, Some(7)),
        }
        release.send(()).unwrap();
        assert_eq!(slow.await, Some(true));
    }
}
