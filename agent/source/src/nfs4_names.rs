//! Names that NFSv4 clients chose for themselves, by address, from the last reading of their state.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

static NAMES: Mutex<BTreeMap<IpAddr, String>> = Mutex::new(BTreeMap::new());

/// All names.
pub fn all() -> BTreeMap<IpAddr, String> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Replaces the names that are known.
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) fn publish(names: BTreeMap<IpAddr, String>) {
    *NAMES.lock().unwrap_or_else(PoisonError::into_inner) = names;
}

/// Host name within the name that a client gives itself. Clients of Linux write it behind their version, in NFSv4.0 before the address, and
/// in later versions behind the id that a host may have: `Linux NFSv4.2 db1`, `Linux NFSv4.0 db1/10.9.0.2`, `Linux NFSv4.1 5f2c/db1`
/// (fs/nfs/nfs4proc.c).
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
pub(crate) fn host_in(name: &str) -> &str {
    let Some((version, rest)) = (name.strip_prefix("Linux NFSv")).and_then(|n| n.split_once(' '))
    else {
        return name;
    };
    let part = match version {
        "4.0" => rest.split('/').next(),
        _ => rest.rsplit('/').next(),
    };
    part.filter(|host| !host.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::host_in;

    #[test]
    fn the_host_stands_where_clients_of_linux_write_it() {
        for (name, host) in [
            ("Linux NFSv4.2 db1", "db1"),
            ("Linux NFSv4.0 db1/10.9.0.2", "db1"),
            ("Linux NFSv4.0 db1/5f2c/10.9.0.2", "db1"),
            ("Linux NFSv4.1 5f2c/db1.example", "db1.example"),
            ("Linux NFSv4.1 db1/", "Linux NFSv4.1 db1/"),
            ("VMware ESXi e3", "VMware ESXi e3"),
            ("Linux NFSv4.1", "Linux NFSv4.1"),
        ] {
            assert_eq!(host_in(name), host);
        }
    }
}
