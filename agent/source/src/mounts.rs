//! The mount table of this process: proc_pid_mountinfo(5) of its mount namespace on Linux, mnttab(5) of its zone on illumos.

use crate::{host_table, lossless};
use std::path::Path;

/// Path of Linux's table.
pub const MOUNTINFO: &str = "/proc/self/mountinfo";

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Device number as Linux has it, `major << 20 | minor`; 0 on other systems.
    pub dev: u32,
    /// Mount point.
    pub point: String,
    /// Type of the file system.
    pub fs: String,
    /// Source of the mount: a device's path, a dataset, or any word.
    pub source: String,
    /// Options of the file system, not of this mount; see [`Mount::option`].
    options: String,
    /// Options of this mount: `rw,relatime`.
    flags: String,
}

impl Mount {
    /// Value of an option; `None` without the option, or if it has no value.
    pub fn option(&self, name: &str) -> Option<String> {
        let mut values = self.options.split(',').filter_map(|o| o.split_once('='));
        Some(unescape(values.find(|(n, _)| *n == name)?.1))
    }

    /// True with this word among the options of the mount or of its file system.
    pub fn flag(&self, name: &str) -> bool {
        let words = self.flags.split(',').chain(self.options.split(','));
        words.into_iter().any(|w| w == name)
    }
}

/// Mounts in the table's order: later mounts cover earlier ones.
#[derive(Debug, Default, PartialEq)]
pub struct Mounts(Vec<Mount>);

impl Mounts {
    /// Reads this system's table; empty where it cannot be read.
    pub fn read() -> Self {
        let text = |path| host_table::read(path).unwrap_or_default();
        if cfg!(target_os = "linux") {
            Self::parse_mountinfo(&text(MOUNTINFO))
        } else {
            Self::parse_mnttab(&text("/etc/mnttab"))
        }
    }

    /// Parses Linux's table. Leaves out lines of another form.
    pub fn parse_mountinfo(mountinfo: &str) -> Self {
        let line = |l: &str| {
            let (mount, about) = l.split_once(" - ")?;
            let mut mount = mount.split(' ').skip(2);
            let (major, minor) = mount.next()?.split_once(':')?;
            let mut about = about.split(' ');
            Some(Mount {
                dev: major.parse::<u32>().ok()? << 20 | minor.parse::<u32>().ok()?,
                point: unescape(mount.nth(1)?),
                flags: mount.next().unwrap_or_default().to_owned(),
                fs: about.next()?.to_owned(),
                source: unescape(about.next()?),
                options: about.next().unwrap_or_default().to_owned(),
            })
        };
        Mounts(mountinfo.lines().filter_map(line).collect())
    }

    /// Parses illumos's table: source, mount point, type, options and time, between tabs. Leaves out lines of another form.
    pub fn parse_mnttab(mnttab: &str) -> Self {
        let line = |l: &str| {
            let mut fields = l.split('\t');
            let source = fields.next()?.to_owned();
            let point = fields.next().filter(|p| p.starts_with('/'))?.to_owned();
            Some(Mount {
                dev: 0,
                point,
                fs: fields.next()?.to_owned(),
                source,
                options: fields.next()?.to_owned(),
                flags: String::new(),
            })
        };
        Mounts(mnttab.lines().filter_map(line).collect())
    }

    /// All mounts.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.0.iter()
    }

    /// Mount on which a path lies: the deepest, and of several at one place the last.
    pub fn on(&self, path: &str) -> Option<&Mount> {
        self.iter()
            .filter(|m| Path::new(path).starts_with(&m.point))
            .max_by_key(|m| m.point.len())
    }
}

/// Decodes escapes of the kernel's lists, which have blanks, backslashes and the like as `\040` (mangle_path(), qword_add()). Word and
/// result are [`lossless`] text.
pub fn unescape(word: &str) -> String {
    let mut out = Vec::new();
    let word = lossless::bytes(word);
    let mut rest = word.as_slice();
    while let Some((&b, after)) = rest.split_first() {
        let code = octal(rest);
        out.push(code.unwrap_or(b));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    lossless::text(&out)
}

/// Byte that stands at the begin of this text as `\040`.
fn octal(text: &[u8]) -> Option<u8> {
    let [
        b'\\',
        high @ b'0'..=b'3',
        middle @ b'0'..=b'7',
        low @ b'0'..=b'7',
        ..,
    ] = text
    else {
        return None;
    };
    Some((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
        27 1 254:0 / / rw,relatime - ext4 /dev/vda rw\n\
        39 27 253:1 / /srv rw,relatime shared:1 - xfs /dev/mapper/data rw,attr2,logdev=/dev/my\\040log,noquota\n\
        40 39 0:45 /sub /srv/a\\040b rw shared:3 master:2 - btrfs /dev/vdc rw,subvol=/sub\n\
        41 27 0:46 / /tank rw - zfs tank rw\n\
        42 41 0:47 / /tank/my\\040home rw - zfs tank/my\\040home rw,xattr\n\
        43 27 8:1 / /over rw - ext4 /dev/sda1 rw\n\
        44 43 8:2 / /over rw - ext4 /dev/sda2\n\
        nonsense\n";

    #[test]
    fn a_line_tells_device_place_type_source_and_options() {
        let m = Mounts::parse_mountinfo(TABLE);
        assert_eq!(m.iter().count(), 7);
        let srv = m.iter().find(|m| m.dev == 253 << 20 | 1).unwrap();
        assert_eq!((srv.point.as_str(), srv.fs.as_str()), ("/srv", "xfs"));
        assert_eq!(srv.source, "/dev/mapper/data");
        assert_eq!(srv.option("logdev").unwrap(), "/dev/my log");
        assert_eq!(srv.option("attr2"), None);
        let flags = ["relatime", "attr2", "rel", "noatime"].map(|f| srv.flag(f));
        assert_eq!(flags, [true, true, false, false]);
        assert_eq!(m.iter().last().unwrap().option("logdev"), None);
    }

    #[test]
    fn a_path_lies_on_the_deepest_and_latest_mount() {
        let m = Mounts::parse_mountinfo(TABLE);
        let on = |path: &str| m.on(path).unwrap().source.as_str();
        assert_eq!(on("/home"), "/dev/vda");
        assert_eq!(on("/srv"), "/dev/mapper/data");
        assert_eq!(on("/srv/x/y"), "/dev/mapper/data");
        assert_eq!(on("/srvx"), "/dev/vda");
        assert_eq!(on("/srv/a b/c"), "/dev/vdc");
        assert_eq!(on("/tank/my home/u"), "tank/my home");
        assert_eq!(on("/tank/my"), "tank");
        assert_eq!(on("/over"), "/dev/sda2");
        assert_eq!(Mounts::default().on("/x"), None);
    }

    /// The kernel escapes blanks, new lines and backslashes, and nothing else: names can be in any encoding.
    #[test]
    fn a_name_in_another_encoding_hides_no_other_mount() {
        let mut table =
            b"50 1 8:3 / /srv/caf\xe9\\040a\\012b\\134x41 rw - ext4 /dev/mapper/d\xff rw\n"
                .to_vec();
        table.extend(TABLE.as_bytes());
        let m = Mounts::parse_mountinfo(&lossless::text(&table));
        assert_eq!(m.iter().count(), 8);
        let odd = m.iter().next().unwrap();
        assert_eq!(odd.point, "/srv/caf\\xe9 a\nb\\x5cx41");
        assert_eq!(
            lossless::bytes(&odd.point),
            b"/srv/caf\xe9 a\nb\\x41",
            "the path is the mount point's own"
        );
        assert_eq!(lossless::bytes(&odd.source), b"/dev/mapper/d\xff");
        assert_eq!(m.on(&odd.point).unwrap().source, odd.source);
        assert_eq!(m.on("/srv/x").unwrap().source, "/dev/mapper/data");
        let outside = unescape("\\777\\+12\\08");
        assert_eq!(outside, "\\777\\+12\\08", "no byte has such a number");
    }

    #[test]
    fn a_line_of_mnttab_has_its_fields_between_tabs() {
        let m = Mounts::parse_mnttab(
            "rpool/ROOT/be\t/\tzfs\trw,devices,setuid,dev=4310002\t1700000000\n\
             swap\t/tmp\ttmpfs\txattr,dev=8940003\t1700000001\n\
             nfs1:/srv/a b\t/mnt/a b\tnfs\trw,vers=4,xattr,dev=8b80001\t1700000002\n\
             nonsense\n",
        );
        assert_eq!(m.iter().count(), 3);
        let on = m.on("/mnt/a b/c").unwrap();
        assert_eq!(
            (on.fs.as_str(), on.source.as_str()),
            ("nfs", "nfs1:/srv/a b")
        );
        assert_eq!(on.option("vers").unwrap(), "4");
        assert_eq!(m.on("/home").unwrap().source, "rpool/ROOT/be");
    }
}
