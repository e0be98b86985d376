//! The sessions of browsers: random ids in cookies, and the tokens of their forms.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use ring::digest::{SHA256, digest};
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;
use tokio::time::Instant;

use crate::principal::Principal;

/// Maximum number of sessions; a new one replaces the one that was unused for the longest time.
const MAX_SESSIONS: usize = 64;

/// Time after which an unused session ends.
const IDLE_TIME: Duration = Duration::from_mins(30);

/// Time after which a session ends.
pub(crate) const MAX_AGE: Duration = Duration::from_hours(8);

pub(crate) const SESSION_COOKIE: &str = "innkeeper_console";

/// The cookie of the sign-in form, so that its token belongs to a browser.
pub(crate) const SIGN_IN_COOKIE: &str = "innkeeper_console_sign_in";

/// What a token of a form belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FormOwner<'a> {
    /// The id of a session.
    Session(&'a str),
    /// A principal without a session: the local user, or a client with a credential in its headers.
    Principal(&'a Principal),
    /// The value of [`SIGN_IN_COOKIE`].
    SignIn(&'a str),
}

/// A signed-in browser.
#[derive(Clone)]
struct Session {
    principal: Principal,
    /// Checked at each request, so that a session lasts no longer than its credential.
    credential: HeaderValue,
    started: Instant,
    last_used: Instant,
}

impl Session {
    fn has_ended(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.last_used) >= IDLE_TIME
            || now.saturating_duration_since(self.started) >= MAX_AGE
    }
}

pub(crate) struct FoundSession {
    pub(crate) principal: Principal,
    pub(crate) credential: HeaderValue,
}

pub(crate) struct Sessions {
    /// By the hash of the id: the time of a lookup tells nothing about an id.
    table: Mutex<HashMap<[u8; 32], Session>>,
    form_key: Option<hmac::Key>,
    random: SystemRandom,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sessions")
    }
}

impl Sessions {
    pub(crate) fn new() -> Self {
        let random = SystemRandom::new();
        let form_key = hmac::Key::generate(hmac::HMAC_SHA256, &random).ok();
        Self { table: Mutex::default(), form_key, random }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<[u8; 32], Session>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a random text; `None` if the system has no random numbers.
    pub(crate) fn random_text(&self) -> Option<String> {
        let mut bytes = [0; 32];
        self.random.fill(&mut bytes).ok()?;
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    /// Starts a session. The id is always new: no id of a browser is accepted.
    pub(crate) fn start(
        &self,
        principal: Principal,
        mut credential: HeaderValue,
    ) -> Option<String> {
        let id = self.random_text()?;
        let now = Instant::now();
        credential.set_sensitive(true);
        let mut table = self.table();
        table.retain(|_, session| !session.has_ended(now));
        if table.len() >= MAX_SESSIONS
            && let Some(oldest) = table.iter().min_by_key(|(_, session)| session.last_used)
        {
            let oldest = *oldest.0;
            table.remove(&oldest);
        }
        table.insert(hash(&id), Session { principal, credential, started: now, last_used: now });
        Some(id)
    }

    pub(crate) fn find(&self, id: &str) -> Option<FoundSession> {
        let key = hash(id);
        let now = Instant::now();
        let mut table = self.table();
        let session = table.get_mut(&key)?;
        if session.has_ended(now) {
            table.remove(&key);
            return None;
        }
        session.last_used = now;
        let Session { principal, credential, .. } = session.clone();
        Some(FoundSession { principal, credential })
    }

    pub(crate) fn end(&self, id: &str) {
        self.table().remove(&hash(id));
    }

    pub(crate) fn form_token(&self, owner: FormOwner<'_>) -> Option<String> {
        let key = self.form_key.as_ref()?;
        let (kind, id): (u8, &str) = match owner {
            FormOwner::Session(id) => (0, id),
            FormOwner::Principal(principal) => (1, principal.id()),
            FormOwner::SignIn(id) => (2, id),
        };
        let message = [&[kind], id.as_bytes()].concat();
        Some(URL_SAFE_NO_PAD.encode(hmac::sign(key, &message)))
    }

    pub(crate) fn is_form_token(&self, owner: FormOwner<'_>, token: &str) -> bool {
        let expected = self.form_token(owner);
        expected.is_some_and(|expected| expected.as_bytes().ct_eq(token.as_bytes()).into())
    }
}

fn hash(id: &str) -> [u8; 32] {
    let mut key = [0; 32];
    key.copy_from_slice(digest(&SHA256, id.as_bytes()).as_ref());
    key
}

/// Returns the only cookie of a name. With several, a page of a neighbour may have added one.
pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let values = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let pairs = values.flat_map(|value| value.split(';')).filter_map(|pair| pair.split_once('='));
    let mut found = pairs.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim());
    let first = found.next();
    if found.next().is_some() { None } else { first }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(sessions: &Sessions, name: &str) -> String {
        sessions.start(Principal::new(name), HeaderValue::from_static("Bearer x")).unwrap()
    }

    /// Attack: remote | a page sends the token of another session, of a principal or of the sign-in |
    /// no token works for another owner | Isolation
    #[test]
    fn a_form_token_works_for_its_owner_only() {
        let sessions = Sessions::new();
        let ann = Principal::new("x");
        let owners = [
            FormOwner::Session("x"),
            FormOwner::Session("y"),
            FormOwner::Principal(&ann),
            FormOwner::SignIn("x"),
        ];
        for (index, owner) in owners.into_iter().enumerate() {
            let token = sessions.form_token(owner).unwrap();
            for (other_index, other) in owners.into_iter().enumerate() {
                assert_eq!(sessions.is_form_token(other, &token), index == other_index);
            }
            assert!(!Sessions::new().is_form_token(owner, &token));
            assert!(
                !sessions.is_form_token(owner, "") && !sessions.is_form_token(owner, &token[1..])
            );
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_ends_when_it_is_unused_too_old_or_signed_out() {
        let sessions = Sessions::new();
        let (idle, used, out) =
            (start(&sessions, "a"), start(&sessions, "b"), start(&sessions, "c"));
        sessions.end(&out);
        assert!(sessions.find(&out).is_none());
        // One second less than the maximum in all.
        for _ in 0..16 {
            tokio::time::advance(IDLE_TIME - Duration::from_secs(1)).await;
            assert!(sessions.find(&used).is_some());
        }
        assert!(sessions.find(&idle).is_none());
        tokio::time::advance(Duration::from_secs(15)).await;
        assert!(sessions.find(&used).is_some());
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(sessions.find(&used).is_none(), "older than {MAX_AGE:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_above_the_maximum_replaces_the_one_that_is_unused_for_the_longest_time() {
        let sessions = Sessions::new();
        let mut ids = Vec::new();
        for number in 0..MAX_SESSIONS {
            ids.push(start(&sessions, &number.to_string()));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert!(sessions.find(&ids[0]).is_some());
        let next = start(&sessions, "next");
        assert!(sessions.find(&ids[1]).is_none());
        assert!(sessions.find(&ids[0]).is_some() && sessions.find(&next).is_some());
        assert_eq!(sessions.table().len(), MAX_SESSIONS);
    }

    /// Attack: remote | a neighbour on the same host adds a second cookie of the name | none of both
    /// counts | Isolation
    #[test]
    fn two_cookies_of_one_name_are_no_cookie() {
        let mut headers = HeaderMap::new();
        headers.append(COOKIE, HeaderValue::from_static("a=1; innkeeper_console=x"));
        assert_eq!(cookie(&headers, SESSION_COOKIE), Some("x"));
        assert_eq!(cookie(&headers, "b"), None);
        headers.append(COOKIE, HeaderValue::from_static("innkeeper_console=y"));
        assert_eq!(cookie(&headers, SESSION_COOKIE), None);
    }
}
