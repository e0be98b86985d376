//! Converts quantized GGUF weights to half precision, because few CPUs support the quantized types.

/// Why weights could not be converted.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum WeightsError {
    /// The file is truncated, or the header is invalid.
    #[error("the model file is not a valid GGUF file")]
    Malformed,
    /// An unsupported tensor type, by its number in GGUF.
    #[error("unsupported tensor type {0}")]
    UnsupportedType(u32),
}

/// The result of an operation on a GGUF file.
type GgufResult<T = ()> = Result<T, WeightsError>;

/// GGUF numbers of the tensor types in the model file, and of the type they are converted to.
const F32: u32 = 0;
const F16: u32 = 1;
const Q4_1: u32 = 3;
const Q8_0: u32 = 8;

/// Number of weights in one quantized block.
const WEIGHTS_PER_BLOCK: usize = 32;
/// Alignment of tensors in bytes: the GGUF default, which the file does not change.
const ALIGNMENT: usize = 32;

/// Size in bytes of each metadata type, by its number; strings (8) and arrays (9) have no fixed
/// size.
const METADATA_TYPE_BYTES: [usize; 13] = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8];
const STRING_TYPE: u32 = 8;
const ARRAY_TYPE: u32 = 9;

/// A tensor entry of the header.
struct TensorInfo<'a> {
    name: &'a [u8],
    dimensions: Vec<u64>,
    ggml_type: u32,
    offset: usize,
}

impl TensorInfo<'_> {
    fn weight_count(&self) -> GgufResult<usize> {
        let product = self.dimensions.iter().try_fold(1, |all: u64, side| all.checked_mul(*side));
        product.and_then(|all| all.try_into().ok()).ok_or(WeightsError::Malformed)
    }
}

/// A cursor over the header.
struct GgufReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> GgufReader<'a> {
    fn take_bytes(&mut self, length: usize) -> GgufResult<&'a [u8]> {
        let end = self.position.checked_add(length).ok_or(WeightsError::Malformed)?;
        let slice = self.bytes.get(self.position..end).ok_or(WeightsError::Malformed)?;
        self.position = end;
        Ok(slice)
    }

    fn read_array<const N: usize>(&mut self) -> GgufResult<[u8; N]> {
        self.take_bytes(N)?.try_into().map_err(|_| WeightsError::Malformed)
    }

    fn read_u32(&mut self) -> GgufResult<u32> {
        self.read_array().map(u32::from_le_bytes)
    }

    fn read_u64(&mut self) -> GgufResult<u64> {
        self.read_array().map(u64::from_le_bytes)
    }

    fn read_length(&mut self) -> GgufResult<usize> {
        self.read_u64()?.try_into().map_err(|_| WeightsError::Malformed)
    }

    fn read_string(&mut self) -> GgufResult<&'a [u8]> {
        let length = self.read_length()?;
        self.take_bytes(length)
    }

    fn skip_value(&mut self, kind: u32) -> GgufResult {
        match kind {
            STRING_TYPE => self.read_string().map(drop),
            ARRAY_TYPE => {
                let inner = self.read_u32()?;
                let count = self.read_length()?;
                (0..count).try_for_each(|_| self.skip_value(inner))
            }
            other => {
                let size =
                    METADATA_TYPE_BYTES.get(other as usize).ok_or(WeightsError::Malformed)?;
                self.take_bytes(*size).map(drop)
            }
        }
    }

    fn read_tensor_info(&mut self) -> GgufResult<TensorInfo<'a>> {
        let name = self.read_string()?;
        let dimensions =
            (0..self.read_u32()?).map(|_| self.read_u64()).collect::<GgufResult<_>>()?;
        Ok(TensorInfo {
            name,
            dimensions,
            ggml_type: self.read_u32()?,
            offset: self.read_length()?,
        })
    }
}

/// Returns the same file with every quantized tensor in half precision.
///
/// # Errors
///
/// The file is invalid or has an unsupported tensor type.
pub(crate) fn dequantize(file: &[u8]) -> GgufResult<Vec<u8>> {
    let mut reader = GgufReader { bytes: file, position: 0 };
    if reader.take_bytes(4)? != b"GGUF" {
        return Err(WeightsError::Malformed);
    }
    reader.read_u32()?;
    let tensors = reader.read_u64()?;
    let pairs = reader.read_u64()?;
    for _ in 0..pairs {
        reader.read_string()?;
        let kind = reader.read_u32()?;
        reader.skip_value(kind)?;
    }
    let mut out = file[..reader.position].to_vec();
    let tensors =
        (0..tensors).map(|_| reader.read_tensor_info()).collect::<GgufResult<Vec<_>>>()?;
    let data =
        file.get(reader.position.next_multiple_of(ALIGNMENT)..).ok_or(WeightsError::Malformed)?;
    let mut body = Vec::new();
    for tensor in &tensors {
        let from = data.get(tensor.offset..).ok_or(WeightsError::Malformed)?;
        body.resize(body.len().next_multiple_of(ALIGNMENT), 0);
        write_tensor_info(&mut out, tensor, body.len());
        dequantize_tensor(tensor.ggml_type, tensor.weight_count()?, from, &mut body)?;
    }
    out.resize(out.len().next_multiple_of(ALIGNMENT), 0);
    out.append(&mut body);
    Ok(out)
}

/// Writes a tensor entry of the header.
fn write_tensor_info(out: &mut Vec<u8>, tensor: &TensorInfo<'_>, offset: usize) {
    out.extend((tensor.name.len() as u64).to_le_bytes());
    out.extend(tensor.name);
    out.extend((tensor.dimensions.len() as u32).to_le_bytes());
    out.extend(tensor.dimensions.iter().flat_map(|side| side.to_le_bytes()));
    let kind = if tensor.ggml_type == F32 { F32 } else { F16 };
    out.extend(kind.to_le_bytes());
    out.extend((offset as u64).to_le_bytes());
}

fn dequantize_tensor(kind: u32, weights: usize, from: &[u8], out: &mut Vec<u8>) -> GgufResult {
    let blocks = weights / WEIGHTS_PER_BLOCK;
    match kind {
        F32 => out.extend(from.get(..weights * 4).ok_or(WeightsError::Malformed)?),
        Q4_1 => {
            for block in from.get(..blocks * 20).ok_or(WeightsError::Malformed)?.chunks_exact(20) {
                let scale = f16_to_f32(block[0], block[1]);
                let least = f16_to_f32(block[2], block[3]);
                let low_nibbles = block[4..].iter().map(|pair| pair & 15);
                let high_nibbles = block[4..].iter().map(|pair| pair >> 4);
                out.extend(low_nibbles.chain(high_nibbles).flat_map(|nibble: u8| {
                    f32_to_f16(scale * f32::from(nibble) + least).to_le_bytes()
                }));
            }
        }
        Q8_0 => {
            for block in from.get(..blocks * 34).ok_or(WeightsError::Malformed)?.chunks_exact(34) {
                let scale = f16_to_f32(block[0], block[1]);
                out.extend(block[2..].iter().flat_map(|byte| {
                    f32_to_f16(scale * f32::from(byte.cast_signed())).to_le_bytes()
                }));
            }
        }
        other => return Err(WeightsError::UnsupportedType(other)),
    }
    Ok(())
}

/// Converts a half-precision number.
fn f16_to_f32(low: u8, high: u8) -> f32 {
    let bits = u32::from(u16::from_le_bytes([low, high]));
    let exponent = (bits >> 10) & 0x1f;
    let fraction = bits & 0x3ff;
    let size = match exponent {
        0 => fraction as f32 / (1 << 24) as f32,
        _ => f32::from_bits(((exponent + 112) << 23) | (fraction << 13)),
    };
    if bits & 0x8000 == 0 { size } else { -size }
}

/// Returns the nearest half-precision number; weights are far below the maximum.
fn f32_to_f16(number: f32) -> u16 {
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
    fn every_half_precision_number_survives_a_round_trip() {
        for bits in (0..0x7c00).chain(0x8000..0xfc00_u16) {
            let [low, high] = bits.to_le_bytes();
            assert_eq!(f32_to_f16(f16_to_f32(low, high)), bits);
        }
        assert!((f16_to_f32(0x55, 0x35) - 0.3333).abs() < 1e-3);
    }

    /// Returns a file with one tensor of 32 weights; its name and its metadata have odd lengths.
    pub(crate) fn gguf_file(kind: u32, data: &[u8]) -> Vec<u8> {
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
    fn quantized_weights_become_half_precision_in_data_and_header() {
        let one = 0x3c00_u16.to_le_bytes();
        let halves = |weights: &[f32]| -> Vec<u8> {
            weights.iter().flat_map(|weight| f32_to_f16(*weight).to_le_bytes()).collect()
        };
        let nibbles: Vec<u8> = [one, one].concat().into_iter().chain([0x21; 16]).collect();
        let weights = [[2.0; 16], [3.0; 16]].concat();
        assert_eq!(
            dequantize(&gguf_file(Q4_1, &nibbles)).unwrap(),
            gguf_file(F16, &halves(&weights))
        );
        let bytes: Vec<u8> = one.into_iter().chain([0xfe; 32]).collect();
        assert_eq!(
            dequantize(&gguf_file(Q8_0, &bytes)).unwrap(),
            gguf_file(F16, &halves(&[-2.0; 32]))
        );
        let plain = gguf_file(F32, &[7; 128]);
        assert_eq!(dequantize(&plain).unwrap(), plain);
    }

    #[test]
    fn truncated_files_and_unknown_types_are_rejected() {
        let full_file = gguf_file(F32, &[7; 128]);
        for length in 0..full_file.len() {
            assert!(dequantize(&full_file[..length]).is_err(), "{length}");
        }
        assert_eq!(dequantize(&gguf_file(2, &[0; 128])), Err(WeightsError::UnsupportedType(2)));
    }
}
