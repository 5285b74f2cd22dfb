//! Variables that change every machine of one run: the same checks, on kernels and machines that `make test` does not have.
//! docs/develop/lab.md has the commands.

use std::env;

use anyhow::{Context, Result, ensure};

/// The flavour that changes the machine's architecture as well.
pub const ARM64: &str = "arm64";

/// Differences to the machine that a test asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    /// `LAB_FLAVOUR`: Debian's flavour of the kernel, in place of its usual one: `rt`, or `arm64`, which is another architecture as
    /// well.
    pub flavour: Option<String>,
    /// `LAB_CPUS`: CPUs of machines without a number of their own.
    pub cpus: Option<u32>,
    /// `LAB_KERNEL_ARGS`: words for the kernel's command line.
    pub kernel_args: Option<String>,
    /// `LAB_CLOCK=host`: no machine is [driven](crate::clock).
    pub host_clock: bool,
}

impl Variant {
    /// Reads the variables of this process.
    ///
    /// # Errors
    /// When a variable has a value that no machine can have.
    pub fn of_this_run() -> Result<Variant> {
        read(|name| env::var(name).ok())
    }

    /// True if machines are arm64's.
    pub fn arm64(&self) -> bool {
        self.flavour.as_deref() == Some(ARM64)
    }
}

fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Variant> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let flavour = set("LAB_FLAVOUR");
    if let Some(flavour) = &flavour {
        ensure!(
            flavour == "rt" || flavour == ARM64,
            "LAB_FLAVOUR is `{flavour}`; give rt or arm64"
        );
    }
    let number = |value: String| {
        let cpus = value.parse().ok().filter(|cpus| (1..=64).contains(cpus));
        cpus.with_context(|| format!("LAB_CPUS is `{value}`; give 1 to 64"))
    };
    let clock = set("LAB_CLOCK");
    ensure!(
        clock.as_deref().is_none_or(|clock| clock == "host"),
        "LAB_CLOCK is `{}`; give host",
        clock.as_deref().unwrap_or_default()
    );
    Ok(Variant {
        flavour,
        host_clock: clock.is_some(),
        cpus: set("LAB_CPUS").map(number).transpose()?,
        kernel_args: set("LAB_KERNEL_ARGS"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_environment_does_not_say_stays_as_it_is() {
        let said = |values: &[(&str, &str)]| {
            let values: Vec<_> = values
                .iter()
                .map(|(n, v)| (n.to_string(), v.to_string()))
                .collect();
            read(move |name| values.iter().find(|v| v.0 == name).map(|v| v.1.clone()))
        };
        assert_eq!(said(&[("LAB_CPUS", "")]).unwrap(), Variant::default());
        let all = said(&[
            ("LAB_FLAVOUR", "rt"),
            ("LAB_CPUS", "8"),
            ("LAB_KERNEL_ARGS", "nohz_full=1 rcu_nocbs=1"),
            ("LAB_CLOCK", "host"),
        ]);
        let expected = Variant {
            flavour: Some("rt".into()),
            cpus: Some(8),
            kernel_args: Some("nohz_full=1 rcu_nocbs=1".into()),
            host_clock: true,
        };
        assert_eq!(all.unwrap(), expected);
        assert!(said(&[("LAB_FLAVOUR", "arm64")]).unwrap().arm64());
        for bad in [
            ("LAB_FLAVOUR", "cloud"),
            ("LAB_CPUS", "0"),
            ("LAB_CPUS", "many"),
            ("LAB_CLOCK", "mine"),
        ] {
            assert!(said(&[bad]).is_err(), "{bad:?}");
        }
    }
}
