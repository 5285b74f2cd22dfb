//! Buckets as D computes them and as C does: every edge and its neighbours, and random values.

use super::tools::{Compiler, Dir, run};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// Expression of a bucket in the scripts, with `value` in place of their variable.
fn expression(kind: &str, value: &str) -> String {
    let (name, before) = match kind {
        "time" => (
            "txg",
            "@sync[stringof(((spa_t *)self->spa)->spa_name)] = lquantize(",
        ),
        "size" => ("nfs", "@size[3, 0] = lquantize("),
        _ => ("nfs", "@compound_size[self->version] = lquantize("),
    };
    let text = nfscope_source::script(name).unwrap();
    let (_, from) = text.split_once(before).unwrap();
    let (tree, _) = from.split_once(", 0, ").unwrap();
    tree.replace("this->d", value).replace("this->n", value)
}

/// Values, each with its bucket of times, sizes and counts in C.
fn values() -> Vec<(u64, [usize; 3])> {
    let mut all = vec![0, 1, 2, 70_000_000_000, u64::MAX >> 1];
    let edges = nfscope_probes::time_edges::edges_ns();
    let sizes = (0..31).map(|i| 1 << i);
    for edge in edges.into_iter().chain(sizes) {
        all.extend([edge - 1, edge, edge + 1]);
    }
    // Fixed sequence, so that a failure repeats.
    let mut x = 88_172_645_463_325_252_u64;
    for _ in 0..5_000 {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        all.push((x >> 20) >> (x & 31));
    }
    let buckets = |v: u64| {
        [
            nfscope_probes::time_bucket(v),
            nfscope_probes::size_bucket(v, 32),
            nfscope_probes::size_bucket(v, 12),
        ]
    };
    all.into_iter().map(|v| (v, buckets(v))).collect()
}

#[test]
fn d_counts_in_the_buckets_of_c() {
    let Some(compiler) = Compiler::find() else {
        return;
    };
    let dir = Dir::new();
    let values = values();
    let mut c = String::from(
        "__attribute__((noipa)) void value(unsigned long v) { __asm__ volatile(\"\" ::\"r\"(v)); }\nint main(void) {\n",
    );
    for (v, _) in &values {
        let _ = writeln!(c, "\tvalue({v}ul);");
    }
    c += "\treturn 0;\n}\n";
    fs::write(dir.path("values.c"), c).unwrap();
    run(Command::new("gcc")
        .args(["-O1", "-o"])
        .args([dir.path("values"), dir.path("values.c")]));
    let mut d = String::from(
        "pid$target:a.out:value:entry\n{\n\tthis->v = (uint64_t)arg0;\n\t@n = count();\n",
    );
    for (kind, buckets) in [("time", 110), ("size", 32), ("count", 12)] {
        let tree = expression(kind, "this->v");
        let _ = writeln!(
            d,
            "\t@{kind} = lquantize({tree}, 0, {buckets}, 1);\n\t@{kind}_of[this->v] = max({tree});"
        );
    }
    d += "}\nEND\n{\n\tprinta(\"n %@d\\n\", @n);\n";
    for kind in ["time", "size", "count"] {
        let _ = writeln!(d, "\tprinta(\"{kind} %d %@d\\n\", @{kind}_of);");
    }
    d += "}\n";
    let out = run(Command::new(&compiler.path)
        .args(["-x", "quiet", "-x", "aggsize=16m", "-n", &d, "-c"])
        .arg(dir.path("values")));
    assert!(
        out.lines().any(|l| l == format!("n {}", values.len())),
        "{out}"
    );
    let mut wrong = Vec::new();
    for (which, kind) in ["time", "size", "count"].into_iter().enumerate() {
        let lines = out
            .lines()
            .filter_map(|l| l.strip_prefix(&format!("{kind} ")));
        let counted: BTreeMap<u64, usize> = lines
            .filter_map(|l| {
                let (v, bucket) = l.split_once(' ')?;
                Some((v.parse::<i64>().ok()? as u64, bucket.parse().ok()?))
            })
            .collect();
        for (v, buckets) in &values {
            if counted.get(v) != Some(&buckets[which]) {
                wrong.push(format!(
                    "{kind} of {v}: {:?}, not {}",
                    counted.get(v),
                    buckets[which]
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
