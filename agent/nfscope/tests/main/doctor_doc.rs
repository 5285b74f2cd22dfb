//! Rules of `nfscope doctor` in docs/doctor.md, each with its reason and its source. `UPDATE_GOLDEN=1` rewrites the page.

use crate::fixture::golden;
use nfscope::doctor::rules;
use std::fmt::Write;

const HEAD: &str = "\
# Doctor: is this server configured well

<!-- written by UPDATE_GOLDEN=1 cargo test -p nfscope --test main doctor -->

`nfscope doctor` reads what the kernel says of an NFS server's configuration, and prints one list. No load and no agent are needed, and
nothing is changed. [`nfscope diagnose`](findings.md) says where time goes under a load.

```console
# nfscope doctor
```

| word | meaning | exit code |
| --- | --- | --- |
| `CHANGE` | wrong for any load | 3 |
| `CONSIDER` | helps some loads or depends on the hardware; [compare](baselines.md) before and after | |
| `?` | not known, with what would tell it | 1 for the threads, as without a server |
| `ok` | as it should be | |

Each line says what there is, why it matters, how it is changed, and the source of the rule. `--json` prints the same as
`findings`, each with `rule`, `state` (`change`, `consider`, `unknown`, `good`), `says`, `why`, `how` and `source`.

Without root most files of `/proc/fs/nfsd` cannot be read, and their lines begin with `?`. Round trips come from `ss` of iproute2, and
properties of datasets from `zfs`. Without these programs they are `?`, too.

A release of a kernel proves no bug: distributions bring fixes to older releases. `kernel bugs` therefore says \"may\", and names
the number to look for. It knows stable releases of kernel.org, and kernels that follow them: Debian, Ubuntu, Fedora, Arch, Alpine. All
other numbers are their builder's own and are `?`: `5.14.0-503.el9` of RHEL, `5.14.21-150500.55-default` of SUSE.

## Rules

| rule | why | source |
| --- | --- | --- |
";

#[test]
fn the_page_has_every_rule_of_doctor() {
    let mut page = HEAD.to_owned();
    for rule in rules::ALL {
        let _ = writeln!(page, "| {} | {} | {} |", rule.name, rule.why, rule.source);
    }
    golden("../../../../docs/doctor.md", &page);
}
