//! Gzip encoder without compression: stored blocks, which every decoder supports.

/// Maximum size of a stored block in bytes.
const MAX_STORED_BLOCK_BYTES: usize = u16::MAX as usize;

/// An encoder of one body; a header of ten bytes precedes the first block.
#[derive(Debug, Default)]
pub(super) struct GzipEncoder {
    header_written: bool,
    crc: Crc32,
    length: u32,
}

#[derive(Debug)]
struct Crc32(u32);

impl Default for Crc32 {
    fn default() -> Self {
        Self(u32::MAX)
    }
}

impl GzipEncoder {
    pub(super) fn encode_chunk(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(chunk.len() + 16);
        if !std::mem::replace(&mut self.header_written, true) {
            out.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
        }
        for block in chunk.chunks(MAX_STORED_BLOCK_BYTES) {
            write_stored_block(&mut out, block, false);
            self.crc.update(block);
            self.length = self.length.wrapping_add(block.len() as u32);
        }
        out
    }

    /// Returns the end of the body.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let mut out = self.encode_chunk(&[]);
        write_stored_block(&mut out, &[], true);
        out.extend((!self.crc.0).to_le_bytes());
        out.extend(self.length.to_le_bytes());
        out
    }
}

fn write_stored_block(out: &mut Vec<u8>, block: &[u8], last: bool) {
    let length = block.len() as u16;
    out.push(u8::from(last));
    out.extend(length.to_le_bytes());
    out.extend((!length).to_le_bytes());
    out.extend(block);
}

impl Crc32 {
    fn update(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 ^= u32::from(byte);
            for _ in 0..8 {
                let carry = self.0 & 1;
                self.0 = (self.0 >> 1) ^ (0xedb8_8320 & carry.wrapping_neg());
            }
        }
    }
}
