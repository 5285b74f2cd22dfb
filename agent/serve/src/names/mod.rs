//! Names of clients and users, beside their addresses and numbers. They are never labels of a metric, and no request waits for them.
//!
//! A thread of its own reads tables and asks name servers. Other threads use the names that are known by then. Sources of a client's name,
//! the first match counts: the site's file, `/etc/hosts`, the name server, the client itself.

mod dns;
mod site;

pub use site::Site;

use nfscope_source::{host_table, nfs4_names};
use nfscope_text::console::warn;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

/// Time between two readings of the tables.
const READ_AGAIN: Duration = Duration::from_secs(30);
/// Most addresses that wait for the thread. The next window asks again for an address that found no place.
const MOST_WAITING: usize = 256;
/// Most answers of the name server that are kept.
const MOST_ANSWERS: usize = 4096;
/// Time for which a name of the name server holds; then the time for which an address without a name is not asked for again.
const HOLDS: Duration = Duration::from_secs(3600);
const NONE_HOLDS: Duration = Duration::from_secs(600);
/// Limit of consecutive questions without an answer, and the pause after that many.
const MOST_UNANSWERED: u32 = 3;
const PAUSE: Duration = Duration::from_secs(60);
/// Longest name in characters.
const LONGEST: usize = 100;

/// Choices of the admin about names.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// True if name servers are asked for the names of addresses.
    pub reverse_dns: bool,
    /// Path of the site's own file.
    pub file: Option<PathBuf>,
}

/// Names that are known by now. Clones share them. The default knows none.
#[derive(Debug, Clone, Default)]
pub struct Names(Option<Arc<Shared>>);

#[derive(Debug)]
struct Shared {
    known: RwLock<Known>,
    /// Addresses whose name was wanted, up to [`MOST_ANSWERS`].
    wanted: Mutex<HashSet<IpAddr>>,
    asks: SyncSender<IpAddr>,
}

#[derive(Debug, Default)]
struct Known {
    site: Site,
    hosts: HashMap<IpAddr, String>,
    /// Names that NFSv4 clients give themselves.
    own: BTreeMap<IpAddr, String>,
    /// Answers of the name server, and when they came.
    dns: HashMap<IpAddr, (Option<String>, Instant)>,
    users: HashMap<String, String>,
}

impl Known {
    /// Name of this address, and true if the name server may have a better one.
    fn name(&self, of: IpAddr, now: Instant) -> (Option<String>, bool) {
        let (name, place) = self.site.of(of);
        let given = name.or_else(|| self.hosts.get(&of).map(String::as_str));
        let answer = self.dns.get(&of);
        let ask = given.is_none() && answer.is_none_or(|a| !holds(a, now));
        let name = given
            .or_else(|| answer.and_then(|(name, _)| name.as_deref()))
            .or_else(|| self.own.get(&of).map(String::as_str));
        let name = match (name, place) {
            (Some(name), Some(place)) => Some(format!("{name} [{place}]")),
            (None, Some(place)) => Some(format!("[{place}]")),
            (name, None) => name.map(str::to_owned),
        };
        (name.map(|n| n.chars().take(LONGEST).collect()), ask)
    }

    fn user(&self, number: &str) -> Option<&String> {
        let of_site = self.site.users().get(number);
        of_site.or_else(|| self.users.get(number))
    }

    fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        let hosts = self.hosts.keys().chain(self.own.keys());
        let all = hosts.chain(self.dns.keys()).copied();
        all.chain(self.site.addresses())
    }
}

fn holds((name, came): &(Option<String>, Instant), now: Instant) -> bool {
    let long = match name {
        Some(_) => HOLDS,
        None => NONE_HOLDS,
    };
    now.saturating_duration_since(*came) < long
}

impl Names {
    /// Starts the thread, which reads and asks until the last clone is dropped. Without a thread there are no names, and a warning says so.
    pub fn start(options: Options, site: Site) -> Names {
        let (asks, asked) = sync_channel(MOST_WAITING);
        let shared = Arc::new(Shared {
            known: RwLock::new(Known {
                site,
                ..Known::default()
            }),
            wanted: Mutex::default(),
            asks,
        });
        let weak = Arc::downgrade(&shared);
        let thread = std::thread::Builder::new().name("names".to_owned());
        match thread.spawn(move || run(&weak, &asked, options)) {
            Ok(_) => Names(Some(shared)),
            Err(e) => {
                warn(&format!("clients have no names: there is no thread: {e}"));
                Names::default()
            }
        }
    }

    /// Names for a test: addresses, or numbers of users, with their names.
    pub fn of_pairs(pairs: &[(&str, &str)]) -> Names {
        let mut known = Known::default();
        for (of, name) in pairs {
            match of.parse() {
                Ok(ip) => drop(known.hosts.insert(ip, (*name).to_owned())),
                Err(_) => drop(known.users.insert((*of).to_owned(), (*name).to_owned())),
            }
        }
        let (asks, _) = sync_channel(0);
        Names(Some(Arc::new(Shared {
            known: RwLock::new(known),
            wanted: Mutex::default(),
            asks,
        })))
    }

    /// Name of the client with this address, if one is known by now.
    pub fn client(&self, address: &str) -> Option<String> {
        let shared = self.0.as_ref()?;
        let address: IpAddr = address.parse().ok()?;
        let known = shared.known.read().unwrap_or_else(PoisonError::into_inner);
        let (name, ask) = known.name(address, Instant::now());
        let mut wanted = shared.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        // Clients that are still shown are wanted again with the next window.
        if wanted.len() >= MOST_ANSWERS && !wanted.contains(&address) {
            wanted.clear();
        }
        wanted.insert(address);
        drop(wanted);
        if ask {
            // A question that finds no room is asked with the next window.
            let _ = shared.asks.try_send(address);
        }
        name
    }

    /// Name of the user with this number.
    pub fn user(&self, number: &str) -> Option<String> {
        let shared = self.0.as_ref()?;
        let known = shared.known.read().unwrap_or_else(PoisonError::into_inner);
        known.user(number).cloned()
    }

    /// Addresses of clients with this name, which may be the first part of a name with dots.
    pub fn addresses(&self, name: &str) -> Vec<String> {
        let Some(shared) = &self.0 else {
            return Vec::new();
        };
        let known = shared.known.read().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_it = |own: &str| {
            let own = own.split(' ').next().unwrap_or(own);
            own.eq_ignore_ascii_case(name)
                || (own.split('.').next()).is_some_and(|first| first.eq_ignore_ascii_case(name))
        };
        let wanted = shared.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let all = known.addresses().chain(wanted.iter().copied());
        let named = all.filter(|a| known.name(*a, now).0.is_some_and(|own| is_it(&own)));
        let mut found: Vec<_> = named.map(|a| a.to_string()).collect();
        found.sort();
        found.dedup();
        found
    }

    /// Numbers of users with this name.
    pub fn users(&self, name: &str) -> Vec<String> {
        let Some(shared) = &self.0 else {
            return Vec::new();
        };
        let known = shared.known.read().unwrap_or_else(PoisonError::into_inner);
        let all = known.users.iter().chain(known.site.users());
        // The site may give another name to a number than the host.
        let named = all.filter(|(number, _)| known.user(number).is_some_and(|own| own == name));
        let found: BTreeSet<_> = named.map(|(number, _)| number.clone()).collect();
        found.into_iter().collect()
    }
}

/// Loop of the thread.
fn run(shared: &Weak<Shared>, asked: &Receiver<IpAddr>, options: Options) {
    let mut read = None;
    let mut site_failed = false;
    let mut servers = Servers::default();
    loop {
        let due = read.is_none_or(|at: Instant| at.elapsed() >= READ_AGAIN);
        let address = match due {
            true => None,
            false => match asked.recv_timeout(READ_AGAIN) {
                Ok(address) => Some(address),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            },
        };
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if due {
            read_tables(&shared, &options, &mut site_failed);
            read = Some(Instant::now());
        }
        if let Some(address) = address.filter(|_| options.reverse_dns) {
            servers.ask(&shared, address);
        }
    }
}

fn read_tables(shared: &Shared, options: &Options, site_failed: &mut bool) {
    let hosts = host_table::read("/etc/hosts").map(|text| of_hosts(&text));
    let users = host_table::read("/etc/passwd").map(|text| of_passwd(&text));
    let site = options.file.as_deref().map(Site::read);
    let own = nfs4_names::all();
    let mut known = shared.known.write().unwrap_or_else(PoisonError::into_inner);
    known.own = own;
    // Tables that cannot be read now keep their last contents.
    known.hosts = hosts.unwrap_or(std::mem::take(&mut known.hosts));
    known.users = users.unwrap_or(std::mem::take(&mut known.users));
    match site {
        Some(Ok(site)) => {
            *site_failed = false;
            known.site = site;
        }
        Some(Err(e)) if !std::mem::replace(site_failed, true) => {
            warn(&format!("names of the site stay as they were: {e:#}"));
        }
        _ => {}
    }
}

/// The first name of each address.
fn of_hosts(text: &str) -> HashMap<IpAddr, String> {
    let mut all = HashMap::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or("");
        let mut words = line.split_whitespace();
        let address = words.next().and_then(|a| a.parse::<IpAddr>().ok());
        if let (Some(address), Some(name)) = (address, words.next()) {
            all.entry(address.to_canonical())
                .or_insert_with(|| name.to_owned());
        }
    }
    all
}

/// The first name of each number.
fn of_passwd(text: &str) -> HashMap<String, String> {
    let mut all = HashMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(_), Some(number)) = (fields.next(), fields.next(), fields.next())
            && !name.is_empty()
            && let Ok(number) = number.parse::<u32>()
        {
            all.entry(number.to_string())
                .or_insert_with(|| name.to_owned());
        }
    }
    all
}

/// State of the name servers.
#[derive(Debug, Default)]
struct Servers {
    unanswered: u32,
    paused: Option<Instant>,
}

impl Servers {
    fn ask(&mut self, shared: &Shared, address: IpAddr) {
        let now = Instant::now();
        if address.is_loopback() || self.paused.is_some_and(|at| now < at + PAUSE) {
            return;
        }
        {
            let known = shared.known.read().unwrap_or_else(PoisonError::into_inner);
            // Each window asks until there is an answer, so the address may be known by now.
            if !known.name(address, now).1 {
                return;
            }
        }
        let answer = dns::name_of(address);
        let mut known = shared.known.write().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(name) => {
                self.unanswered = 0;
                keep(&mut known.dns, address, name, now);
            }
            Err(_) => {
                self.unanswered += 1;
                // An old answer is kept if there is no new one.
                let before = known.dns.remove(&address).and_then(|(name, _)| name);
                keep(&mut known.dns, address, before, now);
                if self.unanswered >= MOST_UNANSWERED {
                    (self.paused, self.unanswered) = (Some(now), 0);
                }
            }
        }
    }
}

/// Keeps an answer. If there are too many, the oldest one is dropped.
fn keep(
    all: &mut HashMap<IpAddr, (Option<String>, Instant)>,
    address: IpAddr,
    name: Option<String>,
    now: Instant,
) {
    if all.len() >= MOST_ANSWERS && !all.contains_key(&address) {
        all.retain(|_, answer| holds(answer, now));
    }
    if all.len() >= MOST_ANSWERS && !all.contains_key(&address) {
        let oldest = all.iter().min_by_key(|(_, (_, at))| *at);
        if let Some(oldest) = oldest.map(|(address, _)| *address) {
            all.remove(&oldest);
        }
    }
    all.insert(address, (name, now));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_site_comes_before_the_host_and_the_client_itself_last() {
        let now = Instant::now();
        let mut known = Known::default();
        let told = |known: &Known| known.name(ip("10.0.0.7"), now);
        assert_eq!(told(&known), (None, true));
        known.own.insert(ip("10.0.0.7"), "says".to_owned());
        assert_eq!(told(&known), (Some("says".to_owned()), true));
        keep(
            &mut known.dns,
            ip("10.0.0.7"),
            Some("dns.example".to_owned()),
            now,
        );
        assert_eq!(told(&known), (Some("dns.example".to_owned()), false));
        known.hosts = of_hosts("10.0.0.7 hosts other # 10.0.0.8 no\n::ffff:10.0.0.9 nine\nx y\n");
        assert_eq!(told(&known).0.as_deref(), Some("hosts"));
        assert_eq!(known.hosts[&ip("10.0.0.9")], "nine");
        known.site = Site::parse(
            "[[client]]\naddress = \"10.0.0.0/24\"\nrack = \"r1\"\n[[client]]\naddress = \"10.0.0.7\"\nname = \"db\"\n",
        )
        .unwrap();
        assert_eq!(told(&known).0.as_deref(), Some("db [r1]"));
        assert_eq!(
            known.name(ip("10.0.0.8"), now),
            (Some("[r1]".to_owned()), true)
        );
    }

    #[test]
    fn answers_grow_old_and_are_bounded() {
        let now = Instant::now();
        let mut known = Known::default();
        let address = |i: usize| IpAddr::from([10, 0, (i >> 8) as u8, i as u8]);
        for i in 0..MOST_ANSWERS + 10 {
            keep(&mut known.dns, address(i), None, now);
        }
        assert_eq!(known.dns.len(), MOST_ANSWERS);
        let last = address(MOST_ANSWERS + 9);
        assert!(!known.name(last, now).1);
        let later = now + NONE_HOLDS;
        assert!(known.name(last, later).1);
        let new = address(MOST_ANSWERS + 10);
        keep(&mut known.dns, new, Some("a".to_owned()), later);
        assert_eq!(known.dns.len(), 1);
        assert!(!known.name(new, later + NONE_HOLDS).1);
        assert!(known.name(new, later + HOLDS).1);
    }

    #[test]
    fn users_and_clients_are_found_by_name() {
        let names = Names::of_pairs(&[
            ("10.0.0.7", "db.example.org"),
            ("10.0.0.8", "web [r1]"),
            ("1000", "alice"),
        ]);
        assert_eq!(names.client("10.0.0.7").as_deref(), Some("db.example.org"));
        assert_eq!(names.client("local"), None);
        assert_eq!(names.addresses("DB"), ["10.0.0.7"]);
        assert_eq!(names.addresses("db.example.org"), ["10.0.0.7"]);
        assert_eq!(names.addresses("web"), ["10.0.0.8"]);
        assert!(names.addresses("none").is_empty());
        // A range has the addresses that were seen in it.
        let site = Site::parse("[[client]]\naddress = \"10.1.0.0/16\"\nname = \"farm\"\n");
        let farm = Names::start(Options::default(), site.unwrap());
        assert!(farm.addresses("farm").is_empty());
        assert_eq!(farm.client("10.1.2.3").as_deref(), Some("farm"));
        assert_eq!(farm.addresses("farm"), ["10.1.2.3"]);
        assert_eq!(names.user("1000").as_deref(), Some("alice"));
        assert_eq!(names.users("alice"), ["1000"]);
        let none = Names::default();
        assert_eq!((none.client("10.0.0.7"), none.user("0")), (None, None));
        let passwd = of_passwd("root:x:0:0::/:/bin/sh\nbad\n:x:5:\ntoor:x:0:\nalice:x:1000:1000\n");
        assert_eq!(passwd.len(), 2);
        assert_eq!((&*passwd["0"], &*passwd["1000"]), ("root", "alice"));
    }
}
