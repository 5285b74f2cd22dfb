//! Compiles the BPF programs and generates their skeletons: the only place that calls clang.

use libbpf_cargo::SkeletonBuilder;
use std::{env, error::Error, fmt::Write as _, fs, path::Path, path::PathBuf};

/// Each `bpf/<word>.bpf.c` becomes two objects from one source: `<word>` for kernels with module BTF and `<word>_raw`
/// for kernels without (see `bpf/lib/kernel.h`).
const WORDS: [&str; 10] = [
    "nfsd", "sched", "jbd2", "xfs", "btrfs", "zfs", "block", "client", "recall", "lockd",
];

/// Probes without a build for kernels without module BTF: what they observe has no hooks or no known layout there.
const BTF_ONLY: [&str; 6] = ["sched", "xfs", "btrfs", "client", "recall", "lockd"];

#[path = "src/time_edges.rs"]
mod time_edges;

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    println!("cargo:rerun-if-changed=bpf");
    fs::write(out.join("time_edges.h"), time_edges_header())?;
    for word in WORDS {
        for which in [Build::Btf, Build::Raw] {
            if which == Build::Raw && BTF_ONLY.contains(&word) {
                continue;
            }
            build(word, which, &out)
                .map_err(|e| format!("bpf/{word}.bpf.c: {e} (clang 14 or later is needed)"))?;
        }
    }
    println!("cargo:rerun-if-changed=bench");
    build("nfsd", Build::Drive, &out)?;
    for (what, bits) in LEFT_OUT {
        build("nfsd", Build::Without(what, bits), &out)?;
    }
    // Code of the probes compiled for the host, for tests: the histogram, compared with the Rust side, and the ring of arrivals.
    let mut host = cc::Build::new();
    for map in prefix_maps(&out)? {
        host.flag(map);
    }
    host.file("src/host.c")
        .include(&out)
        .include("bpf/lib")
        .include("bpf/nfsd")
        .compile("nfscope_probes_host");
    println!("cargo:rerun-if-changed=src/host.c");
    Ok(())
}

/// Line information names files: without these flags, builds in two directories would make different objects.
fn prefix_maps(out: &Path) -> Result<[String; 2], Box<dyn Error>> {
    let sources = env::var("CARGO_MANIFEST_DIR")?;
    let map = |from: &str| format!("-ffile-prefix-map={from}=.");
    Ok([map(&out.display().to_string()), map(&sources)])
}

/// Counts that measurements leave out of the nfsd probe: enum counted_beside in bpf/lib/tables.h.
const LEFT_OUT: [(&str, u32); 3] = [("slots", 1), ("walks", 2), ("durable", 4)];

#[derive(Clone, Copy, PartialEq)]
enum Build {
    Btf,
    Raw,
    /// Object for examples/native.rs: the probe's programs, and a driver that plays the kernel.
    Drive,
    /// Object for kernels with module BTF, without one of [`LEFT_OUT`].
    Without(&'static str, u32),
}

fn build(word: &str, which: Build, out: &Path) -> Result<(), Box<dyn Error>> {
    let raw = which == Build::Raw;
    let (name, source) = match which {
        Build::Btf => (word.to_owned(), format!("bpf/{word}.bpf.c")),
        Build::Raw => (format!("{word}_raw"), format!("bpf/{word}.bpf.c")),
        Build::Drive => (format!("{word}_drive"), "bench/drive.bpf.c".to_owned()),
        Build::Without(what, _) => (
            format!("{word}_without_{what}"),
            format!("bpf/{word}.bpf.c"),
        ),
    };
    let arch = match env::var("CARGO_CFG_TARGET_ARCH")?.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => return Err(format!("no BPF target for {other}").into()),
    };
    let mut args = vec![
        format!("-D__TARGET_ARCH_{arch}"),
        // Name of the probe, which the names of data sections contain: libbpf names a map after each section, and `bpftool` shows it.
        format!("-DPROBE=\"{word}\""),
        format!("-I{}", out.display()),
        "-Wall".into(),
        "-Werror".into(),
        "-Wno-unused-function".into(),
        // Programs get pointer arguments as numbers.
        "-Wno-int-conversion".into(),
        // Kernel 5.10 runs the raw objects, and has no atomics that return a value.
        if raw { "-mcpu=v2" } else { "-mcpu=v3" }.into(),
    ];
    args.extend(prefix_maps(out)?);
    args.extend(asm_headers().into_iter().map(|dir| format!("-I{dir}")));
    if raw {
        args.push("-DNFSCOPE_RAW".into());
    }
    if let Build::Without(_, bits) = which {
        args.push(format!("-DLEFT_OUT={bits}"));
    }
    SkeletonBuilder::new()
        .source(source)
        .obj(out.join(format!("{name}.bpf.o")))
        .clang_args(args)
        .build_and_generate(out.join(format!("{name}.skel.rs")))
        // The alternate form contains clang's own messages.
        .map_err(|e| format!("{e:#}"))?;
    Ok(())
}

/// Directories of the asm/ headers of the target. Debian keeps these headers below the multiarch name, where clang does not search for BPF.
/// A cross compiler has them in its own system root, or in one for this target beside the host's. Zig does not say where they are: a build
/// with it names them in `NFSCOPE_ASM_HEADERS`.
fn asm_headers() -> Vec<String> {
    println!("cargo:rerun-if-env-changed=NFSCOPE_ASM_HEADERS");
    match env::var("NFSCOPE_ASM_HEADERS") {
        Ok(named) => named.split(':').map(str::to_owned).collect(),
        Err(_) => compilers_asm_headers().into_iter().collect(),
    }
}

fn compilers_asm_headers() -> Option<String> {
    let compiler = cc::Build::new().try_get_compiler().ok()?;
    let says = |question| {
        let output = compiler.to_command().arg(question).output().ok()?;
        let answer = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Some(answer)
    };
    let triplet = says("-print-multiarch").filter(|name| !name.is_empty())?;
    let root = says("-print-sysroot").unwrap_or_default();
    let root = root.trim_end_matches('/');
    [
        format!("{root}/usr/include/{triplet}"),
        format!("/usr/{triplet}/include"),
    ]
    .into_iter()
    .find(|dir| Path::new(dir).join("asm").is_dir())
}

fn time_edges_header() -> String {
    let edges = time_edges::edges_ns();
    let cells = time_edges::first_by_cell();
    let mut h = String::from("/* Generated by build.rs from src/time_edges.rs. */\n");
    let _ = writeln!(h, "#define TIME_BUCKETS {}", time_edges::BUCKETS);
    let _ = writeln!(h, "#define TIME_POWERS {}", cells.len() / 16);
    let powers = (0..256u32).map(|v| u64::from(v.max(1).ilog2()));
    table(&mut h, "u64", "time_edge_ns", edges.into_iter());
    table(&mut h, "u8", "time_cell", cells.into_iter().map(u64::from));
    table(&mut h, "u8", "power_of", powers);
    h
}

fn table(h: &mut String, kind: &str, name: &str, values: impl Iterator<Item = u64>) {
    let _ = writeln!(h, "static const {kind} {name}[] = {{");
    for v in values {
        let _ = writeln!(h, "\t{v}ULL,");
    }
    h.push_str("};\n");
}
