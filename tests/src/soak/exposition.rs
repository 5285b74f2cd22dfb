//! Operations and clients of `/metrics`, as any program reads the text.

use std::collections::BTreeMap;

use anyhow::{Context, Result};

use crate::kernel_counters::KernelCounters;

/// Reading of `/metrics`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exposition {
    /// NFSv3 procedures, by name.
    pub v3: BTreeMap<String, u64>,
    /// NFSv4 component operations, by name.
    pub v4: BTreeMap<String, u64>,
    /// NFSv4 COMPOUNDs.
    pub compounds: u64,
    /// Operations of each client that has a series.
    pub clients: BTreeMap<String, u64>,
    /// Clients that lost their series.
    pub evictions: u64,
    /// Rows of clients and exports in use.
    pub rows: u64,
    /// Kernel memory of all probes, in bytes.
    pub kernel_memory: u64,
    /// Lines that are samples.
    pub series: u64,
}

impl Exposition {
    /// Reads the text.
    pub fn parse(text: &str) -> Result<Exposition> {
        let mut read = Exposition::default();
        for line in text
            .lines()
            .filter(|l| !l.starts_with('#') && !l.is_empty())
        {
            read.series += 1;
            let (series, value) = line.rsplit_once(' ').context("a sample without a value")?;
            let (name, labels) = series.split_once('{').unwrap_or((series, ""));
            let number = || -> Result<u64> {
                let number: f64 = value.parse().with_context(|| line.to_owned())?;
                Ok(number as u64)
            };
            let label = |name: &str| label(labels, name).unwrap_or_default().to_owned();
            match name {
                "nfscope_op_duration_seconds_count" if number()? > 0 => {
                    let op = label("op");
                    // The kernel's counters have neither NFSACL, which is another program, nor operations that do not exist.
                    let into = match label("version").as_str() {
                        "3" if op.contains("acl") => continue,
                        "3" => &mut read.v3,
                        _ if op == "null" || op == "illegal" => continue,
                        _ => &mut read.v4,
                    };
                    *into.entry(op).or_default() += number()?;
                }
                "nfscope_compound_duration_seconds_count" => read.compounds += number()?,
                "nfscope_client_ops_total" => {
                    read.clients.insert(label("client"), number()?);
                }
                "nfscope_client_evictions_total" => read.evictions = number()?,
                "nfscope_map_entries" if label("map") == "nfsd_client" => read.rows = number()?,
                "nfscope_kernel_memory_bytes" => read.kernel_memory += number()?,
                _ => {}
            }
        }
        Ok(read)
    }

    /// Every operation.
    pub fn operations(&self) -> u64 {
        self.v3.values().chain(self.v4.values()).sum()
    }

    /// Operations counted since `before`.
    pub fn since(&self, before: &Exposition) -> Exposition {
        let less = |now: &BTreeMap<String, u64>, before: &BTreeMap<String, u64>| {
            let grown = now.iter().map(|(op, n)| {
                (
                    op.clone(),
                    n.saturating_sub(before.get(op).copied().unwrap_or(0)),
                )
            });
            grown.filter(|(_, n)| *n > 0).collect()
        };
        Exposition {
            v3: less(&self.v3, &before.v3),
            v4: less(&self.v4, &before.v4),
            compounds: self.compounds.saturating_sub(before.compounds),
            ..self.clone()
        }
    }

    /// Differences to the kernel's counts.
    pub fn differs(&self, kernel: &KernelCounters) -> Vec<String> {
        let mut wrong = Vec::new();
        for (version, agent, kernel) in [
            ("3", &self.v3, &kernel.procs3()),
            ("4", &self.v4, &kernel.ops4_by_name()),
        ] {
            let names = agent
                .keys()
                .chain(kernel.keys().filter(|k| !agent.contains_key(*k)));
            for op in names {
                let count = |of: &BTreeMap<String, u64>| of.get(op).copied().unwrap_or(0);
                if count(agent) != count(kernel) {
                    wrong.push(format!(
                        "{op} over NFSv{version}: {} by /metrics, {} by the kernel",
                        count(agent),
                        count(kernel)
                    ));
                }
            }
        }
        if self.compounds != kernel.compounds {
            wrong.push(format!(
                "COMPOUND: {} by /metrics, {} by the kernel",
                self.compounds, kernel.compounds
            ));
        }
        wrong
    }
}

/// Value of a label without escapes.
fn label<'a>(labels: &'a str, name: &str) -> Option<&'a str> {
    let mut rest = labels;
    loop {
        let (key, after) = rest.split_once("=\"")?;
        let (value, after) = after.split_once('"')?;
        if key.trim_start_matches(',') == name {
            return Some(value);
        }
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"# TYPE nfscope_op_duration_seconds histogram
nfscope_op_duration_seconds_bucket{version="3",op="getattr",le="+Inf"} 7
nfscope_op_duration_seconds_count{version="3",op="getattr"} 7
nfscope_op_duration_seconds_count{version="3",op="getacl"} 2
nfscope_op_duration_seconds_count{version="4.0",op="write"} 1
nfscope_op_duration_seconds_count{version="4.2",op="write"} 3
nfscope_compound_duration_seconds_count{version="4.2"} 2
nfscope_client_ops_total{client="10.9.0.2"} 11
nfscope_map_entries{map="nfsd_client"} 5
"#;

    #[test]
    fn every_count_is_compared_with_the_kernels() {
        let read = Exposition::parse(TEXT).expect("samples");
        assert_eq!(read.clients["10.9.0.2"], 11);
        assert_eq!((read.rows, read.series), (5, 8));
        let kernel = "proc3 22 0 7\nproc4 2 0 2\nproc4ops 39 ".to_owned() + &"0 ".repeat(38) + "4";
        let kernel = KernelCounters::parse(&kernel).expect("counters");
        assert_eq!(read.differs(&kernel), Vec::<String>::new());
        let mut earlier = read.clone();
        earlier.v4.clear();
        assert_eq!(read.since(&earlier).operations(), 4);
        let more = KernelCounters::parse("proc3 22 0 8\nproc4 2 0 3").expect("counters");
        assert_eq!(
            read.differs(&more),
            [
                "getattr over NFSv3: 7 by /metrics, 8 by the kernel",
                "write over NFSv4: 4 by /metrics, 0 by the kernel",
                "COMPOUND: 2 by /metrics, 3 by the kernel",
            ]
        );
    }
}
