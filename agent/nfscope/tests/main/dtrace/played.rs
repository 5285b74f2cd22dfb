//! Programs in place of illumos's `dtrace` and `kstat`: each script prints the contents of a file.

use super::tools::Dir;
use std::fs;
use std::path::PathBuf;

/// Script in place of dtrace: prints `NAME.frame` five times a second. A number behind `%` is multiplied by 10 n + n % 7 in frame n.
/// `NAME.refuse` goes to standard error at once, and the script fails; with `NAME.only`, scripts without that text run. `NAME.say` goes
/// there once.
const DTRACE: &str = r#"#!/bin/bash
cd DIR
[ "$1" != -l ] || { cat list; exit; }
script=$(cat)
name=$(grep -o '@hello\\t[a-z]*' <<<"$script" | head -n 1 | sed 's/^@hello.t//')
if [ "$1" = -e ]; then
  [ ! -e "$name.compile" ] || { cat "$name.compile" >&2; exit 1; }
  exit
fi
echo "$*" >arguments
printf '%s\n' "$script" >"$name.script"
echo $$ >"$name.pid"
if [ -e "$name.refuse" ]; then
  if ! grep -q . "$name.only" 2>/dev/null || grep -qF "$(cat "$name.only")" <<<"$script"; then cat "$name.refuse" >&2; exit 1; fi
fi
# At its end dtrace prints what it has, without a frame.
trap 'printf "\n  left over   99\n@c\tlate\t9\n"; exit 0' TERM
printf '@hello\t%s\n' "$name"
n=0
while :; do
  n=$((n + 1))
  read -r up _ </proc/uptime
  printf '@begin\t%s0000000\n' "${up/./}"
  # The end of a process in the middle of a frame.
  [ ! -e "$name.half" ] || { cat "$name.half"; rm "$name.half"; exit 1; }
  [ ! -e "$name.frame" ] || awk -v n=$n '{
    out = ""
    while (match($0, /%[0-9]+/)) {
      out = out substr($0, 1, RSTART - 1) sprintf("%.0f", substr($0, RSTART + 1, RLENGTH - 1) * (10 * n + n % 7))
      $0 = substr($0, RSTART + RLENGTH)
    }
    print out $0
  }' "$name.frame"
  printf '@end\n'
  [ ! -e "$name.say" ] || { cat "$name.say" >&2; rm "$name.say"; }
  sleep 0.2
done
"#;

const KSTAT: &str =
    "#!/bin/bash\ncd DIR\nwhile :; do date +%s; cat kstat.counts; echo; sleep 0.3; done\n";

/// Both programs, and the directory of their files.
pub struct Played {
    pub dir: Dir,
    pub dtrace: PathBuf,
    pub kstat: PathBuf,
}

impl Played {
    pub fn new() -> Played {
        let dir = Dir::new();
        let own = dir.0.to_str().unwrap().to_owned();
        let dtrace = dir.program("dtrace", &DTRACE.replace("DIR", &own));
        let kstat = dir.program("kstat", &KSTAT.replace("DIR", &own));
        let played = Played { dir, dtrace, kstat };
        played.says(
            "kstat.counts",
            "cpu:0:sys:cpu_nsec_idle\t1000000000\ncpu:1:sys:cpu_nsec_idle\t500000000\n",
        );
        played
    }

    /// Writes a file that the programs read.
    pub fn says(&self, name: &str, text: &str) {
        // Atomic replacement: the programs read at any time.
        let new = self.dir.path(&format!(".{name}"));
        fs::write(&new, text).unwrap();
        fs::rename(new, self.dir.path(name)).unwrap();
    }

    /// Writes the frame of a script. Lines have `|` in place of tabs; a table is a line `@h`, ` = ` and its buckets.
    pub fn frame(&self, script: &str, lines: &[&str]) {
        let mut text = String::new();
        for line in lines {
            match line.split_once(" = ") {
                Some((key, rows)) => {
                    text += &format!(
                        "{}\t\n           value  ------------- Distribution ------------- count\n",
                        key.replace('|', "\t")
                    );
                    for row in rows.split(' ') {
                        let (bucket, n) = row.split_once(':').unwrap();
                        text += &format!("{bucket:>16} |@@@@ {n}\n");
                    }
                    text.push('\n');
                }
                None => text += &format!("{}\n", line.replace('|', "\t")),
            }
        }
        self.says(&format!("{script}.frame"), &text);
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.path(name)).unwrap()
    }
}
