//! The state of the terminal while the chat has the whole screen.

use std::io;

use crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// The whole screen in raw mode. A drop restores the terminal, also after an interruption.
#[derive(Debug)]
pub(super) struct ScreenGuard(());

impl ScreenGuard {
    pub(super) fn enter() -> io::Result<Self> {
        enable_raw_mode()?;
        let guard = Self(());
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)?;
        Ok(guard)
    }

    /// Gives the terminal to another program, until [`Self::resume`].
    pub(super) fn suspend(&self) -> io::Result<()> {
        execute!(
            io::stdout(),
            DisableBracketedPaste,
            LeaveAlternateScreen,
            crossterm::cursor::Show
        )?;
        disable_raw_mode()
    }

    pub(super) fn resume(&self) -> io::Result<()> {
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen, EnableBracketedPaste)
    }
}

impl Drop for ScreenGuard {
    fn drop(&mut self) {
        // A closed terminal needs no restoration.
        self.suspend().unwrap_or_default();
    }
}
