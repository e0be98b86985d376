//! Gzip without compressing: a format every reader takes, written in stored blocks.

/// Bytes a stored block holds.
const BLOCK: usize = u16::MAX as usize;

/// A body being written; ten bytes of head come before its first block.
#[derive(Debug, Default)]
pub(super) struct Gzip {
    begun: bool,
    crc: Crc,
    length: u32,
}

#[derive(Debug)]
struct Crc(u32);

impl Default for Crc {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl Gzip {
    /// The bytes for a piece of the body.
    pub(super) fn piece(&mut self, piece: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(piece.len() + 16);
        if !std::mem::replace(&mut self.begun, true) {
            out.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
        }
        for block in piece.chunks(BLOCK) {
            store(&mut out, block, false);
            self.crc.add(block);
            self.length = self.length.wrapping_add(block.len() as u32);
        }
        out
    }

    /// The bytes that end the body.
    pub(super) fn end(mut self) -> Vec<u8> {
        let mut out = self.piece(&[]);
        store(&mut out, &[], true);
        out.extend((!self.crc.0).to_le_bytes());
        out.extend(self.length.to_le_bytes());
        out
    }
}

fn store(out: &mut Vec<u8>, block: &[u8], last: bool) {
    let length = block.len() as u16;
    out.push(u8::from(last));
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(block);
}

impl Crc {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 ^= u32::from(byte);
            for _ in 0..8 {
                let carry = self.0 & 1;
                self.0 = (self.0 >> 1) ^ (0xedb8_8320 & carry.wrapping_neg());
            }
        }
    }
}
