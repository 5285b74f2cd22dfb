//! A change of the server or of its load.

use nfscope_text::units::seconds;
use serde::Serialize;

/// What would be different; `None` stays as it was measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Change {
    /// nfsd threads of all pools together.
    pub threads: Option<u32>,
    /// Seconds that the log's device takes for one request.
    pub log_seconds: Option<f64>,
    /// Seconds that the disks take for one request outside the log.
    pub disk_seconds: Option<f64>,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Times as many clients.
    pub clients_factor: Option<f64>,
}

impl Change {
    /// For example: 32 threads and a log of 0.1 ms.
    pub fn words(&self) -> String {
        let mut all = Vec::new();
        if let Some(n) = self.threads {
            all.push(format!("{n} thread{}", if n == 1 { "" } else { "s" }));
        }
        if let Some(s) = self.log_seconds {
            all.push(format!("a log device of {}", seconds(s)));
        }
        if let Some(s) = self.disk_seconds {
            all.push(format!("disks of {}", seconds(s)));
        }
        if let Some(n) = self.cpus {
            all.push(format!("{n} CPU{}", if n == 1 { "" } else { "s" }));
        }
        if let Some(times) = self.clients_factor {
            all.push(format!("{times} times as many clients"));
        }
        all.join(" and ")
    }
}
