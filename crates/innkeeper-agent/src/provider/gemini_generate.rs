//! The codec of this wire.

use super::codec::{Asking, Fault, Outgoing, Reader};

pub(super) fn encode(_asking: Asking<'_>) -> Result<Outgoing, Fault> {
    unimplemented!()
}

pub(super) fn reader(_model: &str, _streaming: bool) -> Box<dyn Reader> {
    unimplemented!()
}

pub(super) fn fault(_status: u16, _body: &[u8]) -> Fault {
    unimplemented!()
}
