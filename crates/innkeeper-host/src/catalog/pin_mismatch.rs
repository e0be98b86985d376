//! The items of a server that do not match their pins.

use std::collections::HashMap;

/// One item that does not match its pin.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct PinMismatch {
    pub(crate) subject: String,
    pub(crate) reason: &'static str,
    pub(crate) withheld: bool,
}

/// Withheld tools by name, with the reason of each.
pub(crate) type WithheldTools = HashMap<Box<str>, &'static str>;
