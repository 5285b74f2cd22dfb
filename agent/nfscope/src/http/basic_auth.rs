//! Passwords (RFC 7617), kept as bcrypt hashes.
//!
//! Checking one takes a tenth of a second of CPU time. It is done on a thread of its own, one at a time, and the last good
//! password of each user is remembered: whoever guesses passwords delays no scrape.

use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;
use ring::hmac;
use ring::rand::SystemRandom;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Checks of one peer that may wait.
const WAITING: usize = 4;
/// What an unknown user's password is held against, so that names cannot be told by time. It is nobody's.
const NOBODY: &str = "$2y$10$QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";

/// What a peer is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Welcome,
    /// No password, or not this one.
    Refused,
    /// This peer has too many checks under way.
    Busy,
}

/// Who may come in.
pub(super) struct Users {
    hashes: HashMap<String, String>,
    /// Of this process: what is remembered of passwords tells nothing elsewhere.
    key: hmac::Key,
    good: Mutex<HashMap<String, hmac::Tag>>,
    turn: Semaphore,
    waiting: Mutex<HashMap<IpAddr, usize>>,
}

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.hashes.keys()).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Users {
    /// Names and hashes.
    pub(super) fn new(hashes: BTreeMap<String, String>) -> anyhow::Result<Users> {
        for (name, hash) in &hashes {
            ensure!(
                hash.parse::<bcrypt::HashParts>().is_ok(),
                "{name}: not a bcrypt hash; htpasswd -nBC 10 makes one"
            );
        }
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        Ok(Users {
            hashes: hashes.into_iter().collect(),
            key: key.ok().context("the system gives no random numbers")?,
            good: Mutex::default(),
            turn: Semaphore::new(1),
            waiting: Mutex::default(),
        })
    }

    /// Takes the header `Authorization` of a request of this peer.
    pub(super) async fn check(&self, header: Option<&HeaderValue>, peer: IpAddr) -> Verdict {
        let Some((name, password)) = header.and_then(credentials) else {
            return Verdict::Refused;
        };
        let secret = format!("{name}\0{password}");
        if let Some(tag) = lock(&self.good).get(&name) {
            let same = hmac::verify(&self.key, secret.as_bytes(), tag.as_ref());
            if same.is_ok() {
                return Verdict::Welcome;
            }
        }
        let Some(_waits) = Waits::new(&self.waiting, peer) else {
            return Verdict::Busy;
        };
        let Ok(_turn) = self.turn.acquire().await else {
            return Verdict::Busy;
        };
        let known = self.hashes.get(&name).cloned();
        let hash = known.clone().unwrap_or_else(|| NOBODY.to_owned());
        let check = move || bcrypt::verify(password, &hash).unwrap_or(false);
        let same = tokio::task::spawn_blocking(check).await.unwrap_or(false);
        if !same || known.is_none() {
            return Verdict::Refused;
        }
        let tag = hmac::sign(&self.key, secret.as_bytes());
        lock(&self.good).insert(name, tag);
        Verdict::Welcome
    }
}

/// Counts a check of a peer until it is dropped.
struct Waits<'a>(&'a Mutex<HashMap<IpAddr, usize>>, IpAddr);

impl<'a> Waits<'a> {
    fn new(all: &'a Mutex<HashMap<IpAddr, usize>>, peer: IpAddr) -> Option<Self> {
        let mut counts = lock(all);
        let count = counts.entry(peer).or_default();
        if *count >= WAITING {
            return None;
        }
        *count += 1;
        Some(Waits(all, peer))
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut counts = lock(self.0);
        if let Some(count) = counts.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.1);
            }
        }
    }
}

/// Name and password of `Basic <base64>`.
fn credentials(header: &HeaderValue) -> Option<(String, String)> {
    let (scheme, text) = header.to_str().ok()?.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn users() -> Users {
        let hash = bcrypt::hash("open sesame", 4).unwrap();
        Users::new([("alice".to_owned(), hash)].into()).unwrap()
    }

    fn header(text: &str) -> HeaderValue {
        format!("Basic {}", STANDARD.encode(text)).parse().unwrap()
    }

    #[tokio::test]
    async fn only_the_right_password_opens() {
        let users = users();
        for (given, verdict) in [
            ("alice:open sesame", Verdict::Welcome),
            ("alice:open sesame", Verdict::Welcome),
            ("alice:open", Verdict::Refused),
            ("alice:", Verdict::Refused),
            ("bob:open sesame", Verdict::Refused),
            ("alice", Verdict::Refused),
        ] {
            assert_eq!(
                users.check(Some(&header(given)), PEER).await,
                verdict,
                "{given}"
            );
        }
        assert_eq!(lock(&users.good).len(), 1);
        for odd in ["Bearer x", "Basic", "Basic !", "basic =", "Basic gICA"] {
            let odd = odd.parse().unwrap();
            assert_eq!(users.check(Some(&odd), PEER).await, Verdict::Refused);
        }
        assert_eq!(users.check(None, PEER).await, Verdict::Refused);
    }

    /// While the turn is taken, a good password that is remembered needs none.
    #[tokio::test]
    async fn who_guesses_delays_nobody() {
        let users = users();
        let good = header("alice:open sesame");
        assert_eq!(users.check(Some(&good), PEER).await, Verdict::Welcome);
        let _taken = users.turn.acquire().await.unwrap();
        let guess = header("alice:guess");
        let mut guesses: Vec<_> = (0..WAITING)
            .map(|_| Box::pin(users.check(Some(&guess), PEER)))
            .collect();
        for guess in &mut guesses {
            assert!(
                std::future::Future::poll(
                    guess.as_mut(),
                    &mut std::task::Context::from_waker(std::task::Waker::noop())
                )
                .is_pending()
            );
        }
        assert_eq!(users.check(Some(&guess), PEER).await, Verdict::Busy);
        assert_eq!(users.check(Some(&good), PEER).await, Verdict::Welcome);
        drop(guesses);
        assert!(lock(&users.waiting).is_empty());
    }
}
