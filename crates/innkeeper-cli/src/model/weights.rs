//! Model weights unpacked to half precision: their packed forms need instructions few machines have.

/// Why weights could not be unpacked.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum WeightsError {
    /// The bytes end too early, or have no such head.
    #[error("the model's file is not the GGUF it should be")]
    Broken,
    /// A form that is not known here, by its number in GGUF.
    #[error("the model's weights are packed in form {0}")]
    Form(u32),
}

/// What reading the file comes to.
type Read<T = ()> = Result<T, WeightsError>;

/// The two packed forms the model's file has, by their numbers in GGUF, and what they become.
const F32: u32 = 0;
const F16: u32 = 1;
const Q4_1: u32 = 3;
const Q8_0: u32 = 8;

/// Weights in one packed block.
const BLOCK: usize = 32;
/// Where a tensor may begin; the file states no other.
const ALIGNMENT: usize = 32;

/// Bytes of the fixed-size metadata types, by number; strings (8) and arrays (9) have none.
const SIZES: [usize; 13] = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const STRING: u32 = 8;
const ARRAY: u32 = 9;

/// One tensor as the file's head lists it.
struct Tensor<'a> {
    name: &'a [u8],
    sides: Vec<u64>,
    kind: u32,
    offset: usize,
}

impl Tensor<'_> {
    fn weights(&self) -> Read<usize> {
        let product = self.sides.iter().try_fold(1, |all: u64, side| all.checked_mul(*side));
        product.and_then(|all| all.try_into().ok()).ok_or(WeightsError::Broken)
    }
}

/// Reads the file's head piece by piece.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Read<&'a [u8]> {
        let end = self.at.checked_add(length).ok_or(WeightsError::Broken)?;
        let taken = self.bytes.get(self.at..end).ok_or(WeightsError::Broken)?;
        self.at = end;
        Ok(taken)
    }

    fn number<const N: usize>(&mut self) -> Read<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| WeightsError::Broken)
    }

    fn u32(&mut self) -> Read<u32> {
        self.number().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Read<u64> {
        self.number().map(u64::from_le_bytes)
    }

    fn length(&mut self) -> Read<usize> {
        self.u64()?.try_into().map_err(|_| WeightsError::Broken)
    }

    fn string(&mut self) -> Read<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    fn skip_value(&mut self, kind: u32) -> Read {
        match kind {
            STRING => self.string().map(drop),
            ARRAY => {
                let inner = self.u32()?;
                let count = self.length()?;
                (0..count).try_for_each(|_| self.skip_value(inner))
            }
            other => {
                let size = SIZES.get(other as usize).ok_or(WeightsError::Broken)?;
                self.take(*size).map(drop)
            }
        }
    }

    fn tensor(&mut self) -> Read<Tensor<'a>> {
        let name = self.string()?;
        let sides = (0..self.u32()?).map(|_| self.u64()).collect::<Read<_>>()?;
        Ok(Tensor { name, sides, kind: self.u32()?, offset: self.length()? })
    }
}

/// The same model with every packed tensor in half precision.
///
/// # Errors
///
/// The bytes are no such file, or pack weights in a form not known here.
pub(crate) fn unpacked(file: &[u8]) -> Read<Vec<u8>> {
    let mut reader = Reader { bytes: file, at: 0 };
    if reader.take(4)? != b"GGUF" {
        return Err(WeightsError::Broken);
    }
    reader.u32()?;
    let (tensors, pairs) = (reader.u64()?, reader.u64()?);
    for _ in 0..pairs {
        reader.string()?;
        let kind = reader.u32()?;
        reader.skip_value(kind)?;
    }
    let mut out = file[..reader.at].to_vec();
    let tensors = (0..tensors).map(|_| reader.tensor()).collect::<Read<Vec<_>>>()?;
    let data = file.get(reader.at.next_multiple_of(ALIGNMENT)..).ok_or(WeightsError::Broken)?;
    let mut body = Vec::new();
    for tensor in &tensors {
        let from = data.get(tensor.offset..).ok_or(WeightsError::Broken)?;
        body.resize(body.len().next_multiple_of(ALIGNMENT), 0);
        list(&mut out, tensor, body.len());
        unpack(tensor.kind, tensor.weights()?, from, &mut body)?;
    }
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    out.append(&mut body);
    Ok(out)
}

/// Writes a tensor's line of the head.
fn list(out: &mut Vec<u8>, tensor: &Tensor<'_>, offset: usize) {
    out.extend((tensor.name.len() as u64).to_le_bytes());
    out.extend(tensor.name);
    out.extend((tensor.sides.len() as u32).to_le_bytes());
    out.extend(tensor.sides.iter().flat_map(|side| side.to_le_bytes()));
    let kind = if tensor.kind == F32 { F32 } else { F16 };
    out.extend(kind.to_le_bytes());
    out.extend((offset as u64).to_le_bytes());
}

/// Writes a tensor's weights.
fn unpack(kind: u32, weights: usize, from: &[u8], out: &mut Vec<u8>) -> Read {
    let blocks = weights / BLOCK;
    match kind {
        F32 => out.extend(from.get(..weights * 4).ok_or(WeightsError::Broken)?),
        Q4_1 => {
            for block in from.get(..blocks * 20).ok_or(WeightsError::Broken)?.chunks_exact(20) {
                let (scale, least) = (half(block[0], block[1]), half(block[2], block[3]));
                let low = block[4..].iter().map(|pair| pair & 15);
                let high = block[4..].iter().map(|pair| pair >> 4);
                let weight = |quarter| to_half(scale * f32::from(quarter) + least);
                out.extend(low.chain(high).flat_map(|it: u8| weight(it).to_le_bytes()));
            }
        }
        Q8_0 => {
            for block in from.get(..blocks * 34).ok_or(WeightsError::Broken)?.chunks_exact(34) {
                let scale = half(block[0], block[1]);
                let weight = |byte: &u8| to_half(scale * f32::from(byte.cast_signed()));
                out.extend(block[2..].iter().flat_map(|byte| weight(byte).to_le_bytes()));
            }
        }
        other => return Err(WeightsError::Form(other)),
    }
    Ok(())
}

/// A number of half precision.
fn half(low: u8, high: u8) -> f32 {
    let bits = u32::from(u16::from_le_bytes([low, high]));
    let (exponent, fraction) = ((bits >> 10) & 0x1f, bits & 0x3ff);
    let size = match exponent {
        0 => fraction as f32 / (1 << 24) as f32,
        _ => f32::from_bits(((exponent + 112) << 23) | (fraction << 13)),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

/// The nearest number of half precision; weights are far below its largest.
fn to_half(number: f32) -> u16 {
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    let bits = number.abs().to_bits();
    let size = match bits >> 23 {
        ..113 => (number.abs() * (1 << 24) as f32).round() as u16,
        exponent => {
            ((((exponent - 112) << 10) | ((bits >> 13) & 0x3ff)) + ((bits >> 12) & 1)) as u16
        }
    };
    sign | size
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn every_number_of_half_precision_survives_the_way_there_and_back() {
        for bits in (0..0x7c00).chain(0x8000..0xfc00_u16) {
            let [low, high] = bits.to_le_bytes();
            assert_eq!(to_half(half(low, high)), bits);
        }
        assert!((half(0x55, 0x35) - 0.3333).abs() < 1e-3);
    }

    /// A file with one tensor of 32 weights, its name and its metadata odd in length.
    pub(crate) fn file(kind: u32, data: &[u8]) -> Vec<u8> {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend([1_u64, 2].iter().flat_map(|count| count.to_le_bytes()));
        file.extend(*b"\x01\0\0\0\0\0\0\0a\x08\0\0\0\x03\0\0\0\0\0\0\0xyz");
        file.extend(*b"\x01\0\0\0\0\0\0\0b\x09\0\0\0\x00\0\0\0\x02\0\0\0\0\0\0\0\x07\x08");
        file.extend(*b"\x01\0\0\0\0\0\0\0w\x01\0\0\0\x20\0\0\0\0\0\0\0");
        file.extend(kind.to_le_bytes());
        file.extend(0_u64.to_le_bytes());
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
        file.extend(data);
        file
    }

    #[test]
    fn packed_weights_come_out_in_half_precision_and_the_head_says_so() {
        let one = 0x3c00_u16.to_le_bytes();
        let halves = |weights: &[f32]| -> Vec<u8> {
            weights.iter().flat_map(|weight| to_half(*weight).to_le_bytes()).collect()
        };
        let nibbles: Vec<u8> = [one, one].concat().into_iter().chain([0x21; 16]).collect();
        let weights = [[2.0; 16], [3.0; 16]].concat();
        assert_eq!(unpacked(&file(Q4_1, &nibbles)).unwrap(), file(F16, &halves(&weights)));
        let bytes: Vec<u8> = one.into_iter().chain([0xfe; 32]).collect();
        assert_eq!(unpacked(&file(Q8_0, &bytes)).unwrap(), file(F16, &halves(&[-2.0; 32])));
        let plain = file(F32, &[7; 128]);
        assert_eq!(unpacked(&plain).unwrap(), plain);
    }

    #[test]
    fn what_is_cut_or_packed_otherwise_is_refused() {
        let whole = file(F32, &[7; 128]);
        for cut in 0..whole.len() {
            assert!(unpacked(&whole[..cut]).is_err(), "{cut}");
        }
        assert_eq!(unpacked(&file(2, &[0; 128])), Err(WeightsError::Form(2)));
    }
}
