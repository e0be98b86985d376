//! The terminal while the chat has its whole screen.

use std::io;
use std::mem::ManuallyDrop;

use crossterm::event::{Event, EventStream};
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use tokio::time::Instant;

use super::super::screen::Screen;
use super::closing::{self, TerminalEnd};
use super::guard::ScreenGuard;

pub(super) struct ChatTerminal {
    /// A drop of `Terminal` panics if the terminal is closed; the guard shows the cursor.
    terminal: ManuallyDrop<Terminal<CrosstermBackend<io::Stdout>>>,
    guard: ScreenGuard,
    keys: EventStream,
    end: TerminalEnd,
}

impl ChatTerminal {
    pub(super) fn open() -> io::Result<Self> {
        let end = TerminalEnd::watch()?;
        let guard = ScreenGuard::enter()?;
        let terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
        Ok(Self { terminal: ManuallyDrop::new(terminal), guard, keys: EventStream::new(), end })
    }

    /// Returns the next event; `None` if the terminal is closed. Cancel-safe.
    pub(super) async fn next_event(&mut self) -> Option<io::Result<Event>> {
        tokio::select! {
            biased;
            () = self.end.closed() => None,
            event = closing::next_event(&mut self.keys) => event,
        }
    }

    pub(super) fn draw(&mut self, screen: &mut Screen, now: Instant) -> io::Result<()> {
        self.terminal.draw(|frame| {
            let area = frame.area();
            screen.draw(area, frame.buffer_mut(), now);
        })?;
        Ok(())
    }

    pub(super) fn resize(&mut self) -> io::Result<()> {
        self.terminal.autoresize()
    }

    /// Gives the screen to another program until it ends.
    pub(super) async fn lend_to<T>(&mut self, program: impl Future<Output = T>) -> io::Result<T> {
        self.guard.suspend()?;
        let result = program.await;
        self.guard.resume()?;
        self.keys = EventStream::new();
        self.terminal.clear()?;
        Ok(result)
    }
}
