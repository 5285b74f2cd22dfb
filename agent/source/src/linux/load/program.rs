//! A probe and its programs: the programs of each build, and their hooks.

/// A program of a probe.
#[derive(Debug)]
pub struct Program {
    /// Name in the object, at most 15 characters.
    pub name: &'static str,
    /// Hook if the module has BTF.
    pub btf: &'static str,
    /// Hook if the module has no BTF, or the reason why there is none.
    pub raw: Result<&'static str, &'static str>,
    /// Data that the program gives.
    pub gives: &'static str,
    /// True if NFS operations cannot be timed without the program.
    pub required: bool,
    /// Hosts on which the program is loaded.
    pub when: When,
    /// Programs that give the same data by other hooks. Only one of all is attached.
    pub others: &'static [Alternative],
}

/// A program that gives the same data as another one of its probe, by another hook. Only in the build with BTF.
#[derive(Debug)]
pub struct Alternative {
    /// Name in the object, at most 15 characters.
    pub name: &'static str,
    /// Hook of the alternative.
    pub btf: &'static str,
    /// Kernels on which the alternative is tried first; on others it is tried after the program.
    pub first: When,
}

/// A program in the object that gives the data of a [`Program`] of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Name in the object.
    pub name: &'static str,
    /// Hook of the program.
    pub hook: String,
}

/// Hosts on which a program is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// All hosts.
    Always,
    /// Only the raw build; the other build gets the same data in another way.
    Raw,
    /// Kernels that may run tracepoints preemptibly, and then skip programs at times.
    Preemptible,
    /// Kernels where the waits of operations come from the scheduler's books.
    Books,
    /// Kernels where these waits are measured at context switches.
    NoBooks,
    /// Servers that grant delegations for writing.
    WriteDelegations,
    /// Servers that grant delegations of directories.
    DirectoryDelegations,
    /// Kernels where a read behind a pointer without a type is an instruction, and not a call (`bpf_rdonly_cast`).
    Casts,
}

impl When {
    fn applies(self, build: Build, on: Variant) -> bool {
        match self {
            When::Always => true,
            When::Raw => build == Build::Raw,
            When::Preemptible => build == Build::Btf && on.preemptible,
            When::Books => build == Build::Btf && on.books,
            When::NoBooks => build == Build::Raw || !on.books,
            When::WriteDelegations => build == Build::Btf && on.write_delegations,
            When::DirectoryDelegations => build == Build::Btf && on.directory_delegations,
            When::Casts => build == Build::Btf && on.casts,
        }
    }
}

/// Properties of the kernel that decide which programs are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// True if it may run tracepoints preemptibly.
    pub preemptible: bool,
    /// True if the waits of operations are read from the scheduler's books.
    pub books: bool,
    /// True if the server grants delegations for writing.
    pub write_delegations: bool,
    /// True if the server grants delegations of directories.
    pub directory_delegations: bool,
    /// True if the kernel has `bpf_rdonly_cast`.
    pub casts: bool,
}

/// A probe: an object, the modules that it observes, and its programs in the order in which they attach. Ends attach before beginnings, so
/// that no half of a request is counted.
#[derive(Debug)]
pub struct Probe {
    /// Name of the probe, for example `nfsd`: that of its file, its metric label and its status.
    pub word: &'static str,
    /// Object that is loaded.
    pub object: &'static nfscope_probes::Object,
    /// Modules that must be loaded.
    pub modules: &'static [&'static str],
    /// Programs.
    pub programs: &'static [Program],
}

/// Build of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// Typed tracepoints, fentry and fexit.
    Btf,
    /// Raw tracepoints and kprobes.
    Raw,
}

/// Marks a raw hook that is the same without types.
pub const SAME: &str = "";

/// Hook of a program that is attached to nothing and runs when the agent asks.
pub const ON_DEMAND: &str = "raw_tp";

/// Makes a program that is always loaded.
pub const fn program(
    name: &'static str,
    btf: &'static str,
    raw: Result<&'static str, &'static str>,
    gives: &'static str,
    required: bool,
) -> Program {
    Program {
        name,
        btf,
        raw,
        gives,
        required,
        when: When::Always,
        others: &[],
    }
}

impl Probe {
    /// Modules that cannot be unloaded while the probe is attached.
    pub fn pinned_modules(&self) -> &'static [&'static str] {
        match self.word {
            // The hook is in the kernel itself; the probe only waits for nfsd.
            "sched" => &[],
            _ => self.modules,
        }
    }

    /// Programs that belong to a build on such a kernel.
    pub fn programs_of(&self, build: Build, on: Variant) -> impl Iterator<Item = &'static Program> {
        let all = self.programs.iter();
        all.filter(move |p| p.when.applies(build, on))
    }
}

/// Kinds of programs that the kernel allows or refuses together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// fentry and fexit.
    Function,
    /// kprobe and kretprobe.
    Kprobe,
    /// Tracepoints.
    Tracepoint,
    /// Iterators.
    Iterator,
}

impl Way {
    /// Kind of the program.
    pub fn kind(&self) -> Kind {
        match self.hook.split('/').next() {
            Some("fentry" | "fexit") => Kind::Function,
            Some("kprobe" | "kretprobe") => Kind::Kprobe,
            Some("iter") => Kind::Iterator,
            _ => Kind::Tracepoint,
        }
    }
}

impl Program {
    /// Hook in the chosen build.
    pub fn hook(&self, build: Build) -> String {
        match (build, self.raw) {
            (Build::Raw, Ok(SAME)) => self.btf.replace("tp_btf/", "raw_tp/"),
            (Build::Raw, Ok(hook)) => hook.to_owned(),
            _ => self.btf.to_owned(),
        }
    }

    /// The program and its alternatives, in the order in which they are tried on such a kernel.
    pub fn ways(&self, build: Build, on: Variant) -> Vec<Way> {
        let others = match build {
            Build::Btf => self.others,
            Build::Raw => &[],
        };
        let (first, last): (Vec<_>, Vec<_>) =
            others.iter().partition(|o| o.first.applies(build, on));
        let way = |o: &Alternative| Way {
            name: o.name,
            hook: o.btf.to_owned(),
        };
        let own = Way {
            name: self.name,
            hook: self.hook(build),
        };
        let first = first.into_iter().map(way);
        first
            .chain([own])
            .chain(last.into_iter().map(way))
            .collect()
    }
}
