//! Kernel settings for memory and CPUs.

use crate::doctor::answer::Answer;
use crate::doctor::host::Missing;
use crate::doctor::rule::Rule;

/// Zone reclaim: a NUMA node frees its page cache although other nodes have free memory.
pub const ZONE_RECLAIM: Rule = Rule {
    name: "zone reclaim",
    why: "The kernel throws cached files away on one NUMA node while others have free memory. Its documentation says that file servers \
          should leave this off.",
    source: "Documentation/admin-guide/sysctl/vm.rst, zone_reclaim_mode",
    look: |host| match host.number("/proc/sys/vm/zone_reclaim_mode") {
        Ok(0) => vec![Answer::good("vm.zone_reclaim_mode=0")],
        Ok(n) => vec![Answer::change(
            format!("vm.zone_reclaim_mode={n}"),
            "set vm.zone_reclaim_mode=0 in /etc/sysctl.d",
        )],
        // Kernels without NUMA have no such file.
        Err(Missing::Absent(_)) => Vec::new(),
        Err(e) => vec![e.answer()],
    },
};

/// Cache pressure: how readily cached dentries and inodes are freed.
pub const CACHE_PRESSURE: Rule = Rule {
    name: "inode cache",
    why: "At 0 cached directories and inodes are never given back, which can end with no memory. Far above 100 finding some of them \
          costs locks.",
    source: "Documentation/admin-guide/sysctl/vm.rst, vfs_cache_pressure",
    look: |host| match host.number("/proc/sys/vm/vfs_cache_pressure") {
        Ok(n @ (0 | 1000..)) => vec![Answer::change(
            format!("vm.vfs_cache_pressure={n}"),
            "set vm.vfs_cache_pressure=100 in /etc/sysctl.d, its default",
        )],
        Ok(n) => vec![Answer::good(format!("vm.vfs_cache_pressure={n}"))],
        Err(e) => vec![e.answer()],
    },
};

/// CPU frequency governors that keep the lowest frequency.
pub const CPU_FREQUENCY: Rule = Rule {
    name: "cpu frequency",
    why: "The governor powersave asks for the lowest frequency at any load, so that each request takes longer.",
    source: "Documentation/admin-guide/pm/cpufreq.rst, powersave; intel_pstate.rst and amd-pstate.rst: there it means another thing",
    look: |host| {
        const CPUFREQ: &str = "/sys/devices/system/cpu/cpufreq";
        let policies = match host.names(CPUFREQ) {
            Ok(policies) => policies,
            // Virtual machines have no cpufreq driver.
            Err(_) => return Vec::new(),
        };
        let (mut slow, mut all) = (0, 0);
        for policy in policies.iter().filter(|p| p.starts_with("policy")) {
            let of = |file: &str| host.text(&format!("{CPUFREQ}/{policy}/{file}"));
            let (Ok(driver), Ok(governor)) = (of("scaling_driver"), of("scaling_governor")) else {
                continue;
            };
            all += 1;
            let own_meaning = ["intel_pstate", "amd-pstate-epp", "amd_pstate_epp"];
            if governor.trim() == "powersave" && !own_meaning.contains(&driver.trim()) {
                slow += 1;
            }
        }
        match (slow, all) {
            (_, 0) => Vec::new(),
            (0, _) => vec![Answer::good(
                "no governor that asks for the lowest frequency",
            )],
            _ => vec![Answer::change(
                format!("governor powersave for {slow} of {all} groups of CPUs"),
                "cpupower frequency-set -g schedutil, and the same at boot",
            )],
        }
    },
};
