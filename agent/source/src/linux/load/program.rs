//! A probe and its programs: which of them belong to a build, and what they hook there.

/// One program of a probe.
#[derive(Debug)]
pub struct Program {
    /// Name in the object, at most 15 characters.
    pub name: &'static str,
    /// Its hook where the module has BTF.
    pub btf: &'static str,
    /// Its hook where it has not, or why there is none.
    pub raw: Result<&'static str, &'static str>,
    /// What it gives.
    pub gives: &'static str,
    /// NFS operations cannot be timed without it.
    pub required: bool,
    /// Where it is loaded at all.
    pub when: When,
    /// Programs that give the same by other hooks. The kernel gets one of them all.
    pub others: &'static [Alternative],
}

/// A program that gives the same as another one of its probe, by another hook. In the build with BTF alone.
#[derive(Debug)]
pub struct Alternative {
    /// Name in the object, at most 15 characters.
    pub name: &'static str,
    /// Its hook.
    pub btf: &'static str,
    /// On these kernels it is tried before the other one, elsewhere after it.
    pub first: When,
}

/// A program in the object that gives what a [`Program`] of the table gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Way {
    /// Its name in the object.
    pub name: &'static str,
    /// Its hook.
    pub hook: String,
}

/// Where a program is loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Everywhere.
    Always,
    /// In the raw build; the other gets the same elsewhere.
    Raw,
    /// Where the kernel may run tracepoints preemptibly, and then skips programs at times.
    Preemptible,
    /// Where the scheduler's books tell the waits of operations.
    Books,
    /// Where they do not.
    NoBooks,
    /// Where the server grants delegations for writing.
    WriteDelegations,
    /// Where the server grants delegations of directories.
    DirectoryDelegations,
    /// Where a read behind a pointer without a type is an instruction, and not a call (`bpf_rdonly_cast`).
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

/// What the kernel is like, as far as it decides which programs are loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variant {
    /// It may run tracepoints preemptibly.
    pub preemptible: bool,
    /// The waits of operations are read from the scheduler's books.
    pub books: bool,
    /// The server grants delegations for writing.
    pub write_delegations: bool,
    /// The server grants delegations of directories.
    pub directory_delegations: bool,
    /// The kernel has `bpf_rdonly_cast`.
    pub casts: bool,
}

/// One probe: an object, the modules that it looks into, and its programs in the order in which they attach: ends before
/// beginnings, so that no half of a request is counted.
#[derive(Debug)]
pub struct Probe {
    /// Its word.
    pub word: &'static str,
    /// What is loaded.
    pub object: &'static nfscope_probes::Object,
    /// Modules that must be loaded.
    pub modules: &'static [&'static str],
    /// Programs.
    pub programs: &'static [Program],
}

/// Which of an object's two builds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Build {
    /// Typed tracepoints, fentry and fexit.
    Btf,
    /// Raw tracepoints and kprobes.
    Raw,
}

/// The same hook where the module has no BTF, without types.
pub const SAME: &str = "";

/// The hook of a program that is attached to nothing and runs when the agent asks.
pub const ON_DEMAND: &str = "raw_tp";

/// One that is loaded always.
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
    /// The modules that cannot be unloaded while it is attached.
    pub fn pinned_modules(&self) -> &'static [&'static str] {
        match self.word {
            // Its hook is in the kernel itself; it only waits for nfsd.
            "sched" => &[],
            _ => self.modules,
        }
    }

    /// The programs that belong to a build on such a kernel.
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
    /// Its kind.
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
    /// Its hook in the chosen build.
    pub fn hook(&self, build: Build) -> String {
        match (build, self.raw) {
            (Build::Raw, Ok(SAME)) => self.btf.replace("tp_btf/", "raw_tp/"),
            (Build::Raw, Ok(hook)) => hook.to_owned(),
            _ => self.btf.to_owned(),
        }
    }

    /// The program and its alternatives, in the order in which such a kernel is asked to take one.
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
