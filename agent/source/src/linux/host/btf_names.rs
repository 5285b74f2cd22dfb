//! Names in the kernel's description of its types (BTF), found without parsing it.

use crate::host_table;
use std::collections::BTreeSet;
use std::io::{self, Read};

const BTF: &str = "/sys/kernel/btf/MODULE";

/// Removes the names that the BTF of a module has, or the kernel's own (`vmlinux`). If a module's BTF was deduplicated against the
/// kernel's, it repeats none of the kernel's names. Without such a BTF no name is removed.
pub fn remove(of: &str, names: &mut BTreeSet<&str>) {
    if let Ok(mut btf) = host_table::open(BTF, format!("/sys/kernel/btf/{of}")) {
        // Names behind an error of reading are not found.
        if let Err(e) = remove_from(&mut btf, names) {
            host_table::failed(BTF, e);
        }
    }
}

/// Removes the names that a BTF has: its strings lie in it between zero bytes. It is read in pieces, because all of it is larger than the
/// agent.
fn remove_from(btf: &mut impl Read, names: &mut BTreeSet<&str>) -> io::Result<()> {
    let lengths = || names.iter().map(|n| n.len());
    let (shortest, longest) = (lengths().min().unwrap_or(1), lengths().max().unwrap_or(0));
    let mut piece = vec![0; 64 << 10];
    // Bytes of the piece that may begin a name which goes on in the next piece.
    let mut kept = 0;
    loop {
        let read = btf.read(&mut piece[kept..])?;
        let end = kept + read;
        let mut from = 0;
        while let Some(len) = piece[from..end].iter().position(|byte| *byte == 0) {
            // The kernel's BTF has a hundred thousand strings: each is looked up, and not compared with every name.
            if (shortest..=longest).contains(&len)
                && let Ok(name) = str::from_utf8(&piece[from..from + len])
            {
                names.remove(name);
            }
            from += len + 1;
        }
        if read == 0 || names.is_empty() {
            return Ok(());
        }
        kept = end - from;
        if kept > longest {
            // The string is too long to be a name; of its bytes only as many are kept as show that.
            (from, kept) = (end - longest - 1, longest + 1);
        }
        piece.copy_within(from..from + kept, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that gives one byte, then two, and so on: names lie across the ends of pieces.
    struct Dribble<'a>(&'a [u8], usize);

    impl Read for Dribble<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.1 = self.1 % 7 + 1;
            let most = to.len().min(self.1);
            self.0.read(&mut to[..most])
        }
    }

    #[test]
    fn names_are_found_in_pieces() {
        let mut btf = b"\0one\0three\0".to_vec();
        btf.extend(vec![b'x'; 200_000]);
        btf.extend(b"two\0\0three four\0four");
        for most in [Some(()), None] {
            let mut names = BTreeSet::from(["one", "two", "three", "four", "five"]);
            match most {
                Some(()) => remove_from(&mut Dribble(&btf, 0), &mut names).unwrap(),
                None => remove_from(&mut btf.as_slice(), &mut names).unwrap(),
            }
            assert_eq!(Vec::from_iter(names), ["five", "four", "two"]);
        }
    }
}
