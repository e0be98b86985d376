//! State that clients or Redis store: encrypted and authenticated, so that whoever has it can neither
//! read nor change it.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use innkeeper_host::config::Secret;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Maximum length of a state that is opened; a sealed state has a fraction of it.
pub(crate) const MAX_STATE_BYTES: usize = 4_096;

/// Length of the id of a replica: 128 bits in hexadecimal.
const REPLICA_ID_CHARS: usize = 32;

/// What a state says about its parked call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CallState {
    /// The number of the parked call.
    pub(crate) call: u64,
    /// The number of the round, so that a state works once.
    pub(crate) round: u32,
    /// The request with its principal, so that no other one gets the call.
    pub(crate) request: String,
    /// Seconds since the start of the gateway at which the state expires.
    pub(crate) expires: u64,
}

/// The reason why a state is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StateError {
    #[error("`requestState` is not a state of this gateway")]
    Foreign,
    #[error("`requestState` has expired: send the request again without it")]
    Expired,
    #[error("`requestState` belongs to another request")]
    OtherRequest,
}

/// Seals and opens states with a key of its own. The states of another gateway are foreign.
pub(crate) struct StateSealer {
    key: LessSafeKey,
    random: SystemRandom,
    /// The replica, before each state.
    replica: Option<Box<str>>,
    /// Maximum length of a state that is opened.
    max_bytes: usize,
}

impl std::fmt::Debug for StateSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateSealer")
    }
}

impl StateSealer {
    /// Creates a sealer with a random key, for one replica if there are several. Returns `None` if the
    /// system has no random numbers.
    pub(crate) fn new(replica: Option<&str>) -> Option<Self> {
        let random = SystemRandom::new();
        let mut key = [0; 32];
        random.fill(&mut key).ok()?;
        let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).ok()?);
        Some(Self { key, random, replica: replica.map(Into::into), max_bytes: MAX_STATE_BYTES })
    }

    /// Creates a sealer whose states each process with the same secret opens, with a key for one owner.
    /// Returns `None` if no key can be derived.
    pub(crate) fn from_secret(secret: &Secret, owner: &[u8], max_bytes: usize) -> Option<Self> {
        let random_key =
            Salt::new(HKDF_SHA256, b"innkeeper sealed state").extract(secret.expose().as_bytes());
        let info = [owner];
        let key = UnboundKey::from(random_key.expand(&info, &AES_256_GCM).ok()?);
        let key = LessSafeKey::new(key);
        let random = SystemRandom::new();
        Some(Self { key, random, replica: None, max_bytes })
    }

    /// Returns the state as text for the client. The state opens only with the same `owner`, which
    /// the text does not contain.
    pub(crate) fn seal(&self, state: &impl Serialize, owner: &[u8]) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        self.random.fill(&mut nonce).ok()?;
        let mut sealed = serde_json::to_vec(state).ok()?;
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(unique, Aad::from(owner), &mut sealed).ok()?;
        let mut all = nonce.to_vec();
        all.append(&mut sealed);
        let sealed = URL_SAFE_NO_PAD.encode(all);
        Some(match &self.replica {
            Some(replica) => replica_token(replica, &sealed),
            None => sealed,
        })
    }

    /// Returns the state of a text that [`Self::seal`] returned.
    pub(crate) fn open<T: DeserializeOwned>(
        &self,
        text: &str,
        owner: &[u8],
    ) -> Result<T, StateError> {
        if text.len() > self.max_bytes {
            return Err(StateError::Foreign);
        }
        let text = match &self.replica {
            Some(replica) => {
                let own = text.strip_prefix(&**replica).and_then(|rest| rest.strip_prefix('.'));
                own.ok_or(StateError::Foreign)?
            }
            None => text,
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| StateError::Foreign)?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN).ok_or(StateError::Foreign)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| StateError::Foreign)?;
        let mut sealed = sealed.to_vec();
        let opened = self.key.open_in_place(nonce, Aad::from(owner), &mut sealed);
        let opened = opened.map_err(|_| StateError::Foreign)?;
        serde_json::from_slice(opened).map_err(|_| StateError::Foreign)
    }
}

/// Returns a text of a client that names the replica with what the text stands for.
pub(crate) fn replica_token(replica: &str, text: &str) -> String {
    format!("{replica}.{text}")
}

/// Returns the replica that a text of a client names.
pub(crate) fn replica_of(token: &str) -> Option<&str> {
    let (replica, _) = token.split_once('.')?;
    let is_id = replica.len() == REPLICA_ID_CHARS
        && replica.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f'));
    is_id.then_some(replica)
}

/// Fuzz target: opens the input, and a state that the input changes: its first two bytes are a
/// position, and each further byte is a change from there on.
///
/// # Panics
///
/// Panics if a state opens that was not sealed, or a sealed one does not open.
#[cfg(any(test, fuzzing))]
#[expect(clippy::expect_used, reason = "a fuzz target reports a defect with a panic")]
pub fn fuzz_sealed_state(input: &[u8]) {
    const OWNER: &[u8] = b"ada";
    static SEALED: std::sync::OnceLock<(StateSealer, CallState, String)> =
        std::sync::OnceLock::new();
    let (sealer, state, text) = SEALED.get_or_init(|| {
        let sealer = StateSealer::new(None).expect("random numbers");
        let request = r#"["notes","tools/call","notes.add","ada",2,"0f0f"]"#.to_owned();
        let state = CallState { call: 7, round: 1, request, expires: 60 };
        let text = sealer.seal(&state, OWNER).expect("a sealed state");
        (sealer, state, text)
    });
    let open = |text: &str| sealer.open(text, OWNER);
    assert_eq!(open(&String::from_utf8_lossy(input)), Err(StateError::Foreign));
    assert_eq!(open(&URL_SAFE_NO_PAD.encode(input)), Err(StateError::Foreign));
    if input != OWNER {
        assert_eq!(sealer.open::<CallState>(text, input), Err(StateError::Foreign));
    }
    let Some(([high, low], changes)) = input.split_first_chunk() else { return };
    let mut sealed = URL_SAFE_NO_PAD.decode(text).expect("base64");
    let start = usize::from(u16::from_be_bytes([*high, *low])) % sealed.len();
    for (byte, change) in sealed.iter_mut().skip(start).zip(changes) {
        *byte ^= change;
    }
    sealed.extend(changes.iter().skip(sealed.len() - start));
    let changed = URL_SAFE_NO_PAD.encode(sealed);
    let expected = if changed == *text { Ok(state.clone()) } else { Err(StateError::Foreign) };
    assert_eq!(open(&changed), expected);
}

#[cfg(test)]
mod tests;
