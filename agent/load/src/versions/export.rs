//! The export that is measured: `SERVER:/PATH`.

use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// Port of NFS if the mount's options have no port=.
pub const PORT: u16 = 2049;
/// Handshakes with the server. The shortest one met no delay of a CPU.
const HANDSHAKES: u32 = 5;
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// A server and a path on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    server: String,
    path: String,
}

impl FromStr for Export {
    type Err = String;

    fn from_str(text: &str) -> Result<Export, String> {
        match text.find(":/") {
            Some(at) if at > 0 && !text.starts_with('-') => Ok(Export {
                server: text[..at].to_owned(),
                path: text[at + 1..].to_owned(),
            }),
            _ => Err("give SERVER:/EXPORT, as in nfs1:/srv/export or [2001:db8::1]:/".to_owned()),
        }
    }
}

impl Export {
    /// `SERVER:/PATH`, as mount takes it.
    pub fn source(&self) -> String {
        format!("{}:{}", self.server, self.path)
    }

    /// A directory below the export, as mount takes it.
    pub fn below(&self, path: &Path) -> String {
        let path = Path::new(&self.path).join(path);
        format!("{}:{}", self.server, path.display())
    }

    /// Shortest of several TCP handshakes: a round trip without any work of the server. `None` if no server answers.
    pub fn round_trip(&self, port: u16) -> Option<Duration> {
        let name = self.server.trim_matches(['[', ']']);
        let addresses: Vec<_> = (name, port).to_socket_addrs().ok()?.collect();
        let handshake = || {
            addresses.iter().find_map(|address| {
                let began = Instant::now();
                let connected = TcpStream::connect_timeout(address, HANDSHAKE_TIMEOUT);
                connected.ok().map(|_| began.elapsed())
            })
        };
        (0..HANDSHAKES).map_while(|_| handshake()).min()
    }

    /// Returns true if the server is this host, as far as addresses tell.
    pub fn is_here(&self) -> bool {
        let name = self.server.trim_matches(['[', ']']);
        // A socket can be bound to addresses of this host only.
        (name, 0)
            .to_socket_addrs()
            .is_ok_and(|mut all| all.any(|a| UdpSocket::bind(a).is_ok()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_and_paths() {
        let read = |text: &str| text.parse::<Export>();
        let export = read("nfs1:/srv/a").unwrap();
        assert_eq!(export.source(), "nfs1:/srv/a");
        assert_eq!(export.below(Path::new("b/c")), "nfs1:/srv/a/b/c");
        let six = read("[::1]:/").unwrap();
        assert_eq!(six.below(Path::new("b")), "[::1]:/b");
        assert!(six.is_here() || read("127.0.0.1:/").unwrap().is_here());
        assert!(!read("192.0.2.1:/").unwrap().is_here());
        for wrong in ["", "nfs1", ":/srv", "/srv", "nfs1:srv", "-o:/x"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
