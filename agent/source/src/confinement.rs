//! Confinement of the process that answers HTTP requests of other hosts, on any system.

/// State of a part of the confinement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    /// The part confines the process.
    Holds,
    /// This kernel has no such thing, for this reason.
    Absent(String),
    /// The part could not be had, for this reason.
    Refused(String),
}

/// Parts of the confinement of the process besides the lack of capabilities, without which it does not run at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// The process has another user than root.
    pub user: Layer,
    /// The kernel fails system calls that it does not need.
    pub seccomp: Layer,
    /// The kernel refuses it files, connections and signals to others.
    pub landlock: Layer,
}

impl Confinement {
    /// Names of the parts, in the order of [`Confinement::bits`].
    pub const PARTS: [&str; 3] = ["user", "seccomp", "landlock"];

    fn layers(&self) -> [(&Layer, &'static str); 3] {
        [
            (&self.user, "a user other than root"),
            (&self.seccomp, "a filter of system calls"),
            (&self.landlock, "Landlock"),
        ]
    }

    /// Bits of the parts that confine the process, from the lowest on.
    pub fn bits(&self) -> u8 {
        let holds = |(n, (layer, _)): (usize, (&Layer, _))| u8::from(*layer == Layer::Holds) << n;
        self.layers().into_iter().enumerate().map(holds).sum()
    }

    /// Parts that this kernel has and that the process could not get, with the reasons.
    pub fn refused(&self) -> Vec<String> {
        let refused = |(layer, name): (&Layer, &str)| match layer {
            Layer::Refused(why) => Some(format!("{name} ({why})")),
            _ => None,
        };
        self.layers().into_iter().filter_map(refused).collect()
    }
}

impl std::fmt::Display for Confinement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "without capabilities")?;
        for (layer, name) in &self.layers()[1..] {
            match layer {
                Layer::Holds => write!(f, ", with {name}")?,
                Layer::Absent(why) | Layer::Refused(why) => write!(f, ", without {name} ({why})")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_that_a_kernel_lacks_is_not_one_that_was_refused() {
        let said = Confinement {
            user: Layer::Holds,
            seccomp: Layer::Refused("EPERM".into()),
            landlock: Layer::Absent("this kernel has none".into()),
        };
        assert_eq!(said.bits(), 1);
        assert_eq!(said.refused(), ["a filter of system calls (EPERM)"]);
        assert_eq!(
            said.to_string(),
            "without capabilities, without a filter of system calls (EPERM), without Landlock (this kernel has none)"
        );
        let root = Confinement {
            user: Layer::Refused("it runs as root".into()),
            seccomp: Layer::Holds,
            landlock: Layer::Holds,
        };
        assert_eq!(root.bits(), 0b110);
        assert_eq!(root.refused().len(), 1);
    }
}
