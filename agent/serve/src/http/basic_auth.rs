//! Passwords (RFC 7617), kept as bcrypt hashes.
//!
//! A check takes a tenth of a second of CPU time. Checks run on a thread of their own, one at a time, and the last good password of each
//! user is remembered: a peer that guesses passwords delays no scrape.
//!
//! A check goes on when its connection is closed. It therefore keeps its turn, and its place among the checks that wait, until it ends: a
//! peer that guesses and closes at once starts no second check.

use super::places;
use anyhow::{Context, ensure};
use base64::Engine;
use base64::alphabet::BCRYPT;
use base64::engine::GeneralPurpose;
use base64::engine::general_purpose::{NO_PAD, STANDARD};
use hyper::header::HeaderValue;
use ring::hmac;
use ring::rand::SystemRandom;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Semaphore;

/// Checks of one peer that may wait or run.
const WAITING: usize = 4;
/// Checks of all peers that may wait or run.
const ALL_WAITING: usize = 16;
/// Costs that a hash may have. Each step doubles the time of a check; at 16 it takes some seconds.
const COSTS: RangeInclusive<u32> = 4..=16;
/// Salt and hash for the password of an unknown user, so that the time of a check does not reveal names. No user has this hash.
const NOBODY: &str = "QOauhQNbBCuQDKes6eFzPeMqBSjb7Mr5DUmpZ/VcEd00UAV/LDeSi";
/// Length of a salt in characters; the hash follows.
const SALT: usize = 22;

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Welcome,
    /// No password, or a wrong one.
    Refused,
    /// Too many checks are under way, for this peer or in all.
    Busy,
}

/// Users with their hashes.
pub(super) struct Users {
    hashes: HashMap<String, String>,
    /// Hash that no password has, and whose check takes as long as the slowest user's.
    nobody: String,
    good: Good,
    turn: Arc<Semaphore>,
    waiting: Waiting,
}

/// The last good password of each user.
#[derive(Clone)]
struct Good {
    /// Key of this process, without which the remembered tags are useless.
    key: hmac::Key,
    tags: Arc<Mutex<HashMap<String, hmac::Tag>>>,
}

/// Number of checks that each peer has under way.
type Waiting = Arc<Mutex<HashMap<IpAddr, usize>>>;

impl std::fmt::Debug for Users {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.hashes.keys()).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Good {
    fn new() -> anyhow::Result<Good> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        Ok(Good {
            key: key.ok().context("the system gives no random numbers")?,
            tags: Arc::default(),
        })
    }

    fn has(&self, name: &str, password: &str) -> bool {
        let Some(tag) = lock(&self.tags).get(name).copied() else {
            return false;
        };
        hmac::verify(&self.key, secret(name, password).as_bytes(), tag.as_ref()).is_ok()
    }

    fn remember(&self, name: String, password: &str) {
        let tag = hmac::sign(&self.key, secret(&name, password).as_bytes());
        lock(&self.tags).insert(name, tag);
    }

    /// Remembered passwords of those users alone whose name `keep` accepts.
    fn only(&self, keep: impl Fn(&str) -> bool) -> Good {
        let tags = lock(&self.tags);
        let kept = tags.iter().filter(|(name, _)| keep(name));
        let kept = kept.map(|(name, tag)| (name.clone(), *tag)).collect();
        Good {
            key: self.key.clone(),
            tags: Arc::new(Mutex::new(kept)),
        }
    }
}

fn secret(name: &str, password: &str) -> String {
    format!("{name}\0{password}")
}

impl Users {
    /// Builds the users from names and hashes.
    pub(super) fn new(hashes: BTreeMap<String, String>) -> anyhow::Result<Users> {
        let mut most = *COSTS.start();
        for (name, hash) in &hashes {
            most = most.max(cost(hash).with_context(|| name.clone())?);
        }
        Ok(Users {
            hashes: hashes.into_iter().collect(),
            nobody: format!("$2y${most:02}${NOBODY}"),
            good: Good::new()?,
            turn: Arc::new(Semaphore::new(1)),
            waiting: Waiting::default(),
        })
    }

    /// Replaces other users: keeps the good passwords of users whose hash is the same. It shares the turn of checks, so that
    /// those under way count.
    pub(super) fn succeed(&mut self, old: &Users) {
        let same = |name: &str| self.hashes.get(name) == old.hashes.get(name);
        self.good = old.good.only(same);
        self.turn = old.turn.clone();
        self.waiting = old.waiting.clone();
    }

    /// Checks the header `Authorization` of a request of this peer.
    pub(super) async fn check(&self, header: Option<&HeaderValue>, peer: IpAddr) -> Verdict {
        let Some((name, password)) = header.and_then(credentials) else {
            return Verdict::Refused;
        };
        if self.good.has(&name, &password) {
            return Verdict::Welcome;
        }
        let Some(waits) = Waits::new(&self.waiting, places::peer(peer)) else {
            return Verdict::Busy;
        };
        let Ok(turn) = self.turn.clone().acquire_owned().await else {
            return Verdict::Busy;
        };
        // An earlier check may have found the same password good.
        if self.good.has(&name, &password) {
            return Verdict::Welcome;
        }
        let compare = self.compare(name, password);
        let check = move || {
            let welcome = compare();
            drop((waits, turn));
            welcome
        };
        match tokio::task::spawn_blocking(check).await {
            Ok(true) => Verdict::Welcome,
            _ => Verdict::Refused,
        }
    }

    /// Returns the slow part of a check: it compares a password with its hash, and remembers a good one.
    fn compare(&self, name: String, password: String) -> impl FnOnce() -> bool + Send + use<> {
        let known = self.hashes.contains_key(&name);
        let hash = self.hashes.get(&name).unwrap_or(&self.nobody).clone();
        let good = self.good.clone();
        move || {
            let same = bcrypt::verify(&password, &hash).unwrap_or(false);
            let welcome = same && known;
            if welcome {
                good.remember(name, &password);
            }
            welcome
        }
    }
}

/// Cost of a hash, if this program can compare it.
fn cost(hash: &str) -> anyhow::Result<u32> {
    let parts: bcrypt::HashParts = hash
        .parse()
        .ok()
        .context("not a bcrypt hash; htpasswd -nBC 10 makes one")?;
    let cost = parts.get_cost();
    ensure!(
        COSTS.contains(&cost),
        "cost {cost} is not from {} to {}; htpasswd -nBC 10 makes a good hash",
        COSTS.start(),
        COSTS.end()
    );
    let text = hash.rsplit('$').find(|part| !part.is_empty());
    let (salt, rest) = text.and_then(|t| t.split_at_checked(SALT)).unzip();
    let long = |text: Option<&str>, bytes| {
        let decoder = GeneralPurpose::new(&BCRYPT, NO_PAD);
        text.and_then(|t| decoder.decode(t).ok())
            .is_some_and(|decoded| decoded.len() == bytes)
    };
    ensure!(
        long(salt, 16) && long(rest, 23),
        "a bcrypt hash with a wrong character; htpasswd -nBC 10 makes one"
    );
    Ok(cost)
}

/// Counts a check of a peer until it is dropped.
struct Waits(Waiting, IpAddr);

impl Waits {
    fn new(all: &Waiting, peer: IpAddr) -> Option<Self> {
        let mut counts = lock(all);
        let own = counts.get(&peer).copied().unwrap_or_default();
        if own >= WAITING || counts.values().sum::<usize>() >= ALL_WAITING {
            return None;
        }
        counts.insert(peer, own + 1);
        Some(Waits(all.clone(), peer))
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        let mut counts = lock(&self.0);
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
    use std::future::Future;
    use std::task::{Context, Poll, Waker};
    use tokio::runtime::{Builder, Runtime};

    const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    fn hash(password: &str) -> String {
        bcrypt::hash(password, 4).unwrap()
    }

    fn with(hashes: &[(&str, &str)]) -> Users {
        let owned = hashes.iter().map(|(n, h)| ((*n).into(), (*h).into()));
        Users::new(owned.collect()).unwrap()
    }

    fn users() -> Users {
        with(&[("alice", &hash("open sesame"))])
    }

    fn header(text: &str) -> HeaderValue {
        format!("Basic {}", STANDARD.encode(text)).parse().unwrap()
    }

    /// Polls a check once, and returns its result if it has one.
    fn start<T>(check: impl Future<Output = T>) -> Option<T> {
        let mut check = Box::pin(check);
        begin(&mut check)
    }

    fn begin<T>(check: &mut std::pin::Pin<Box<impl Future<Output = T>>>) -> Option<T> {
        match check.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => Some(value),
            Poll::Pending => None,
        }
    }

    fn waiting(users: &Users) -> usize {
        lock(&users.waiting).values().sum()
    }

    fn addresses(count: u8) -> impl Iterator<Item = IpAddr> {
        (1..=count).map(|i| IpAddr::from([192, 0, 2, i]))
    }

    /// A runtime whose only thread for checks is blocked until the sender is dropped.
    fn held() -> (Runtime, std::sync::mpsc::Sender<()>) {
        let runtime = Builder::new_current_thread()
            .max_blocking_threads(1)
            .build()
            .unwrap();
        let (release, wait) = std::sync::mpsc::channel::<()>();
        runtime.spawn_blocking(move || wait.recv());
        (runtime, release)
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
        assert_eq!(lock(&users.good.tags).len(), 1);
        for odd in ["Bearer x", "Basic", "Basic !", "basic =", "Basic gICA"] {
            let odd = odd.parse().unwrap();
            assert_eq!(users.check(Some(&odd), PEER).await, Verdict::Refused);
        }
        assert_eq!(users.check(None, PEER).await, Verdict::Refused);
    }

    /// A remembered good password needs no turn, so that guesses do not delay it.
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
            assert_eq!(begin(guess), None);
        }
        assert_eq!(users.check(Some(&guess), PEER).await, Verdict::Busy);
        assert_eq!(users.check(Some(&good), PEER).await, Verdict::Welcome);
        drop(guesses);
        assert!(lock(&users.waiting).is_empty());
    }

    #[test]
    fn who_guesses_and_closes_starts_one_check_at_a_time() {
        let users = users();
        let (runtime, release) = held();
        let _inside = runtime.enter();
        let guess = header("alice:guess");
        let good = header("alice:open sesame");
        // The first check has the turn and keeps it, although its caller has gone.
        assert_eq!(start(users.check(Some(&good), PEER)), None);
        for peer in addresses(100) {
            assert_eq!(start(users.check(Some(&guess), peer)), None);
            assert_eq!(users.turn.available_permits(), 0);
            assert_eq!(waiting(&users), 1, "only what runs is counted");
        }
        drop(release);
        let turn = runtime.block_on(users.turn.acquire()).unwrap();
        assert_eq!(waiting(&users), 0);
        drop(turn);
        // The result of the check is not lost with its connection.
        let again = runtime.block_on(users.check(Some(&good), PEER));
        assert_eq!(again, Verdict::Welcome);
        assert!(users.good.has("alice", "open sesame"));
    }

    #[tokio::test]
    async fn all_peers_together_wait_in_bounded_number() {
        let users = users();
        let _taken = users.turn.acquire().await.unwrap();
        let guess = header("alice:guess");
        let mut checks: Vec<_> = addresses(100)
            .map(|peer| Box::pin(users.check(Some(&guess), peer)))
            .collect();
        let verdicts: Vec<_> = checks.iter_mut().map(begin).collect();
        let wait = verdicts.iter().filter(|v| v.is_none()).count();
        assert_eq!((wait, waiting(&users)), (ALL_WAITING, ALL_WAITING));
        assert_eq!(verdicts[ALL_WAITING], Some(Verdict::Busy));
    }

    #[tokio::test]
    async fn a_host_waits_as_one_peer_whatever_its_address() {
        let users = users();
        let _taken = users.turn.acquire().await.unwrap();
        let guess = header("alice:guess");
        let hosts: Vec<IpAddr> = (0..=WAITING)
            .map(|i| format!("2001:db8::{i:x}").parse().unwrap())
            .collect();
        let mut checks: Vec<_> = hosts
            .iter()
            .map(|peer| Box::pin(users.check(Some(&guess), *peer)))
            .collect();
        let verdicts: Vec<_> = checks.iter_mut().map(begin).collect();
        assert_eq!(verdicts[WAITING - 1], None);
        assert_eq!(verdicts[WAITING], Some(Verdict::Busy));
    }

    #[tokio::test]
    async fn a_reload_forgets_only_what_has_changed() {
        let (alice, bob) = (hash("open sesame"), hash("swordfish"));
        let old = with(&[("alice", &alice), ("bob", &bob), ("carol", &bob)]);
        for given in ["alice:open sesame", "bob:swordfish", "carol:swordfish"] {
            let verdict = old.check(Some(&header(given)), PEER).await;
            assert_eq!(verdict, Verdict::Welcome);
        }
        let mut new = with(&[("alice", &alice), ("bob", &hash("new"))]);
        new.succeed(&old);
        let turn = old.turn.acquire().await.unwrap();
        assert_eq!(new.turn.available_permits(), 0, "one turn for both");
        let good = header("alice:open sesame");
        assert_eq!(new.check(Some(&good), PEER).await, Verdict::Welcome);
        let revoked = header("bob:swordfish");
        assert_eq!(start(new.check(Some(&revoked), PEER)), None);
        drop(turn);
        assert_eq!(new.check(Some(&revoked), PEER).await, Verdict::Refused);
        let gone = header("carol:swordfish");
        assert_eq!(new.check(Some(&gone), PEER).await, Verdict::Refused);
    }

    #[test]
    fn hashes_that_no_password_could_have_are_refused() {
        let good = hash("open sesame");
        for (hash, why) in [
            ("secret".to_owned(), "not a bcrypt hash"),
            (good.replace("$04$", "$03$"), "cost 3 is not from 4 to 16"),
            (good.replace("$04$", "$17$"), "cost 17 is not from 4 to 16"),
            (format!("$2y$10$!{}", &NOBODY[1..]), "a wrong character"),
            (format!("$2y$10${}!", &NOBODY[..52]), "a wrong character"),
        ] {
            let e = Users::new([("a".to_owned(), hash)].into()).unwrap_err();
            let e = format!("{e:#}");
            assert!(e.starts_with("a: ") && e.contains(why), "{e}");
        }
    }

    #[test]
    fn an_unknown_name_takes_as_long_as_the_slowest_user() {
        let slow = format!("$2y$11${NOBODY}");
        let users = with(&[("alice", &hash("x")), ("bob", &slow)]);
        assert_eq!(cost(&users.nobody).unwrap(), 11);
    }
}
