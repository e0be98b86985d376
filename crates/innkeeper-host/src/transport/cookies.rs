//! The cookies of one server, in memory.
//!
//! A load balancer binds a session to a node with a cookie. A jar belongs to one connection, whose
//! requests all go to one origin, so a cookie never reaches another origin or another server.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use reqwest::Url;
use reqwest::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use tokio::time::Instant;

/// Maximum number of cookies: load balancers set one or two.
const MAX_COOKIES: usize = 32;

/// Maximum size of the name and the value of a cookie in bytes, as in browsers.
const MAX_COOKIE_BYTES: usize = 4096;

#[derive(Default)]
pub(super) struct CookieJar(Mutex<Vec<Cookie>>);

struct Cookie {
    name: String,
    value: String,
    /// The path that a request must start with.
    path: String,
    expires: Option<Instant>,
}

impl std::fmt::Debug for CookieJar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CookieJar").finish_non_exhaustive()
    }
}

impl CookieJar {
    /// Stores the cookies of a response to a request for `url`.
    pub(super) fn store(&self, url: &Url, headers: &HeaderMap) {
        let mut received = headers.get_all(SET_COOKIE).iter().peekable();
        if received.peek().is_none() {
            return;
        }
        let mut cookies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for cookie in received.filter_map(|header| Cookie::parse(header.to_str().ok()?, url)) {
            cookies.retain(|known| (&known.name, &known.path) != (&cookie.name, &cookie.path));
            if cookie.is_alive() && cookies.len() < MAX_COOKIES {
                cookies.push(cookie);
            }
        }
    }

    /// Adds the cookies for `url` to the headers of a request, after those of the configuration.
    pub(super) fn add_to(&self, url: &Url, headers: &mut HeaderMap) {
        let mut cookies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cookies.is_empty() {
            return;
        }
        cookies.retain(Cookie::is_alive);
        let configured = headers.get(COOKIE).and_then(|value| value.to_str().ok());
        let mut pairs: Vec<String> = configured.map(str::to_owned).into_iter().collect();
        let matching = cookies.iter().filter(|cookie| cookie.matches(url.path()));
        pairs.extend(matching.map(|cookie| format!("{}={}", cookie.name, cookie.value)));
        if pairs.is_empty() {
            return;
        }
        if let Ok(mut value) = HeaderValue::from_str(&pairs.join("; ")) {
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
    }
}

impl Cookie {
    /// Parses one `Set-Cookie`. The domain does not matter: a cookie never leaves its origin.
    fn parse(header: &str, url: &Url) -> Option<Self> {
        let mut parts = header.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let name = name.trim();
        let value = value.trim();
        if name.is_empty() || name.len() + value.len() > MAX_COOKIE_BYTES {
            return None;
        }
        let directory = url.path().rsplit_once('/').map_or("", |(directory, _)| directory);
        let mut path = if directory.is_empty() { "/" } else { directory };
        let mut max_age = None;
        let mut expires = None;
        for attribute in parts {
            let (key, value) = attribute.split_once('=').unwrap_or((attribute, ""));
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "path" if value.starts_with('/') => path = value,
                "max-age" => max_age = value.parse::<i64>().ok(),
                "expires" => expires = httpdate::parse_http_date(value).ok(),
                "secure" if url.scheme() != "https" => return None,
                _ => {}
            }
        }
        let lifetime = match (max_age, expires) {
            (Some(seconds), _) => Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))),
            (None, Some(date)) => {
                Some(date.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO))
            }
            (None, None) => None,
        };
        let expires = lifetime.and_then(|lifetime| Instant::now().checked_add(lifetime));
        let name = name.to_owned();
        let value = value.to_owned();
        let path = path.to_owned();
        Some(Self { name, value, path, expires })
    }

    fn is_alive(&self) -> bool {
        self.expires.is_none_or(|expires| expires > Instant::now())
    }

    fn matches(&self, path: &str) -> bool {
        let rest = path.strip_prefix(&self.path);
        rest.is_some_and(|rest| {
            rest.is_empty() || rest.starts_with('/') || self.path.ends_with('/')
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(jar: &CookieJar, path: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        jar.add_to(&Url::parse(&format!("http://a{path}")).unwrap(), &mut headers);
        headers.get(COOKIE).map(|value| value.to_str().unwrap().to_owned())
    }

    fn store(jar: &CookieJar, url: &str, cookie: &str) {
        let headers = HeaderMap::from_iter([(SET_COOKIE, cookie.parse().unwrap())]);
        jar.store(&Url::parse(url).unwrap(), &headers);
    }

    #[tokio::test(start_paused = true)]
    async fn a_cookie_is_sent_back_until_it_expires_or_is_replaced() {
        let jar = CookieJar::default();
        assert_eq!(sent(&jar, "/mcp"), None);
        store(&jar, "http://a/mcp", "node=1; Path=/; HttpOnly");
        store(&jar, "http://a/mcp", "short=x; Max-Age=60");
        assert_eq!(sent(&jar, "/mcp").as_deref(), Some("node=1; short=x"));
        store(&jar, "http://a/mcp", "node=2; path=/");
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(sent(&jar, "/mcp").as_deref(), Some("node=2"));
        for gone in
            ["node=; Path=/; Max-Age=0", "node=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"]
        {
            store(&jar, "http://a/mcp", "node=3; Path=/");
            store(&jar, "http://a/mcp", gone);
            assert_eq!(sent(&jar, "/mcp"), None, "{gone}");
        }
    }

    #[test]
    fn a_cookie_belongs_to_its_path_and_a_secure_one_to_https() {
        let jar = CookieJar::default();
        store(&jar, "http://a/x/mcp", "below=1");
        store(&jar, "http://a/x/mcp", "other=1; Path=/y");
        store(&jar, "http://a/x/mcp", "secure=1; Secure; Path=/");
        store(&jar, "http://a/x/mcp", "no-value");
        assert_eq!(sent(&jar, "/x/mcp").as_deref(), Some("below=1"));
        assert_eq!(sent(&jar, "/y").as_deref(), Some("other=1"));
        assert_eq!(sent(&jar, "/yy"), None);
    }

    #[test]
    fn cookies_are_limited_in_number_and_in_size() {
        let jar = CookieJar::default();
        store(&jar, "http://a/", &format!("n={}", "x".repeat(MAX_COOKIE_BYTES)));
        for number in 0..=MAX_COOKIES {
            store(&jar, "http://a/", &format!("c{number}=1"));
        }
        assert_eq!(sent(&jar, "/").unwrap().split("; ").count(), MAX_COOKIES);
    }
}
