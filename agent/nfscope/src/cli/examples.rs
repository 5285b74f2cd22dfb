//! Text after the flags in each command's help: examples, exit codes, fields.

use nfscope_serve::endpoints;

// Example lines stay below 80 columns: clap would wrap longer ones, and break their alignment.
pub(super) const EXAMPLES: &str = "\
Examples:
  sudo nfscope check       what can be measured on this host, and what is missing
  sudo nfscope doctor      how this server is configured, without a load
  nfscope demo             a recorded day with three incidents: the page, no root
  sudo nfscope agent       serve Prometheus metrics at 127.0.0.1:9943/metrics
  nfscope top              live table: rates, latency, phases
  nfscope slow             operations slower than 10 ms, as they happen
  nfscope stuck            requests that are stuck in nfsd threads now
  nfscope diagnose         the causes of request latency, with evidence
  nfscope report r.html    the last hour in one file, for a ticket or a chat
  nfscope path nfs1        on a client: its RPCs to nfs1 and back
  nfscope baseline list    recorded baselines; also record, show, compare
  nfscope capacity friday  the first limit of the server, from a baseline
  nfscope what-if          the gain of a change: threads, log, disks
  nfscope workload list    reproducible loads for an NFS client
  nfscope versions S:/EXP  NFSv3 compared with 4.0, 4.1 and 4.2, on a client
  nfscope metrics          every metric with its labels and meaning";

const SETTINGS_OF_THE_AGENT: &str = "\
Examples:
  sudo nfscope agent
  sudo nfscope agent --web.listen-address 0.0.0.0:9943
  sudo nfscope agent --config nfscope.toml --no-late-attach

Every setting can be given in three places. A flag overrides the environment,
and the environment overrides the file:
  --max-clients 500
  NFSCOPE_LIMITS_CLIENTS=500
  [limits]
  clients = 500           in /etc/nfscope/nfscope.toml
deploy/nfscope.toml of the sources lists all keys and variables. NFSCOPE_CONFIG
names another file. An empty variable counts as not set. To switch off a
setting such as --probe-stats, remove it from the file or the environment.

The agent serves these paths, compressed with gzip for clients that accept it:
";

const OF_THE_AGENT: &str = "
/slow has the parameters min_latency=10ms, op=write,commit, client=192.0.2.7
and limit=1000 (per second):
  curl -N 'http://127.0.0.1:9943/slow?min_latency=50ms&op=write,commit'
A line {\"left_out\":N} says that N more operations happened since the last such
line. A line with N = 0 only keeps the connection alive.

On SIGHUP the agent reads its settings, the web configuration and the
certificates again. These changes take effect at once: the web configuration,
[web] except listen_address, systemd_socket and sandbox, [log], and clients and
exports of [limits]. The agent prints the changes that need a restart.
The agent stops on SIGTERM and SIGINT. No probe stays attached when it ends.";

/// Text after the flags of `nfscope agent`, with the endpoints that it serves.
pub(super) fn agent() -> String {
    let mut out = SETTINGS_OF_THE_AGENT.to_owned();
    let listed: Vec<_> = endpoints::ALL
        .iter()
        .filter(|e| !e.help.is_empty())
        .collect();
    for same in listed.chunk_by(|a, b| a.help == b.help) {
        let paths: Vec<_> = same.iter().map(|e| e.path).collect();
        let paths = paths.join(", ");
        let gap = if same.len() > 1 { "   " } else { " " };
        let help = same[0].help.replace('\n', "\n               ");
        out += &format!("  {paths:<12}{gap}{help}\n");
    }
    out + OF_THE_AGENT
}

pub(super) const CHECK_EXAMPLES: &str = "\
Exit code:
  0   NFS operations can be timed, and all probes attach as designed
  3   NFS operations can be timed, but some probes are absent or use a fallback
  1   NFS operations cannot be timed

Examples:
  sudo nfscope check
  sudo nfscope check --all               each fact and each program
  sudo nfscope check --json
  nfscope check --url http://nfs1:9943   what the probes of that agent do
  nfscope check --show-script nfs        the D script for operations, for illumos
  nfscope check --report nfscope.json    on illumos: a file to send to the developers";

pub(super) const DOCTOR_EXAMPLES: &str = "\
Exit code:
  0   no setting has to be changed
  3   at least one setting has to be changed
  1   no NFS server runs here, or its files cannot be read

Examples:
  sudo nfscope doctor
  sudo nfscope doctor --json | jq '.findings[] | select(.state == \"change\")'

The command reads the configuration from the kernel, and changes nothing. No
agent and no load are needed. CHANGE marks a setting that is wrong for any
load. CONSIDER marks a setting whose change helps some loads. `?` marks a
setting that cannot be read, for example without root.";

pub(super) const MCP_EXAMPLES: &str = "\
Examples:
  nfscope mcp --url nfs1       as an entry of an assistant's configuration:
    {\"command\": \"nfscope\", \"args\": [\"mcp\", \"--url\", \"nfs1\"]}

The tools are findings, diagnose, operations, who, stuck, what_if, recordings,
compare, measured and doctor. The resources are pages of the documentation. No
tool changes a setting or attaches a probe. Tools that need an agent say so if
none answers at the URL. `doctor` checks the host on which this command runs.

The assistant reads names of clients, exports, users and files. The operator of
its model can see these names, too.";

pub(super) const DEMO_EXAMPLES: &str = "\
Examples:
  nfscope demo             the page with a day of a server, in a browser
  nfscope demo diagnose    the causes of its three incidents
  nfscope demo compare     a slow log device compared with a fast one

Only this host can open the page. `nfscope top --url` and other commands can
read from the demo's agent while the demo runs. The recording has no single
slow operations, and no counts by user or file.";

pub(super) const REPORT_EXAMPLES: &str = "\
Examples:
  nfscope report                          a summary of the last hour, as text
  nfscope report report.html              the page with its data, in one file
  nfscope report --last 1d --anonymise r.html

A browser opens the file without a server, and the file loads nothing from the
network. Times before the last quarter of an hour need an agent with a history
on the disk.
With --anonymise, hosts, clients, exports and volumes have pseudonyms.
Sentences are left out, because they can contain names. The file keeps times,
numbers, versions, names of findings and probes, and the kernel's names of
devices.";

pub(super) const TOP_EXAMPLES: &str = "\
Examples:
  nfscope top                            the agent on this host; without an
                                         agent, own probes (needs root)
  nfscope top --url http://nfs1:9943     an agent on another host
  nfscope top --once --interval 10s      one plain table over ten seconds
  nfscope top --json | jq '.ops[0]'      the operation with the most time
  nfscope top --at 03:10 --interval 5m   last night, from the history on the disk

The key ? explains keys, columns and phases. The keys + and - change the length
of a window. On a wide screen each row has a chart of its history. In the panel
of clients, enter shows one client or export with all of its operations. The
kernel counts these operations only while they are on the screen, as with --by.
The phases of a client's operations come from a sample of 300 ms after each
window. Panel 7 has the agent's findings with evidence and advice. Panel 8 has
single slow operations, which are read only while the panel is on the screen. A
screen of 160 columns and 50 lines shows several panels, and z shows one of
them alone. The mouse selects panels, columns and rows. The key M lets the
mouse select text instead.
In a pipe or a file, and where TERM is dumb, nfscope top prints plain tables
one after another. Tables in a pipe are 100 columns wide. The least important
columns are left out there, and … marks a shortened name. --wide leaves nothing
out.
SHARE is the part of all operations' time that this operation took. MAX is the
upper edge of the highest bucket with a value: at most 19 % too high.
NO_COLOR turns colours off. Letters then show the phases.

A JSON object is one line. Times are in seconds, rates per second, and unknown
values are null. Each list is sorted by time, largest first.
  window_seconds, host, coverage {version: ratio}, timed
  ops      version op rate p50 p99 max errors_per_s share seconds
           phases {cpu runqueue log disk throttle upcall recall
           reclaim lock}, in seconds, or null
  pools    pool threads busy limit busy_ratio saturated_ratio rate
           queue_p50 queue_p99 queue_max
  rpc      version rate p50 p99 max seconds received_per_s sent_per_s
           phases {queue receive upcall execute reply} or null
  logs     fs volume waits_per_s wait_p50 wait_p99 wait_max seconds
           writes_per_s write_p99 bytes_per_s separate
  disks    device op rate queue_p99 device_p50 device_p99 device_max seconds
           bytes_per_s in_flight
  clients  client name rate share seconds mean read_per_s written_per_s
           ops_per_request rtt min_rtt; name is left out if unknown
  exports  export rate share seconds mean read_per_s written_per_s
  held     requests that a thread has been serving for long, the oldest first:
           thread seconds version op wait client export inode xid stack
  lost     probe reason rate
  findings kind share: active findings of the agent
  changes  change gain: changes that may cure the findings, the best one first
  server_state: a sentence on a state of the server that clients wait for, such
           as its grace period; left out without one
  not_measured [list]; not_attached: probe programs as in /probes";

pub(super) const SLOW_EXAMPLES: &str = "\
Examples:
  nfscope slow                           operations slower than 10 ms, from the
                                         agent on this host; without an agent,
                                         from own probes (needs root)
  nfscope slow --op write,commit --min-latency 100ms
  nfscope slow --client 192.0.2.7        only operations of this client
  nfscope slow --url http://nfs1:9943 --count 20
  nfscope slow --json | jq 'select(.phases_seconds.log > 0.01)'

A line:
  TIME CLIENT VER OP BYTES SYNC STATUS TOTAL CPU RUNQ LOG DISK LOCK RARE INODE
  XID EXPORT
  SYNC   stability of a WRITE: none (unstable), data, file (file_sync)
  TOTAL  execution time of the operation on the server, the sum of the next six
  CPU    time on a CPU
  RUNQ   runnable, waiting for a CPU
  LOG    asleep until the journal or intent log was durable
  DISK   asleep for block I/O outside the log
  LOCK   other waits: locks, other threads, anything that is not named
  RARE   asleep until written data is stored, a daemon answers, a client returns
         a delegation, or memory is free; --json has each of them
  XID    transaction id of the RPC, as in packet captures and traces of the kernel
The largest of the six is in colour. `-` means unknown. A narrow terminal shows
fewer columns. A pipe gets all columns. … marks a name that is cut after 40
letters. --wide and --json have whole names.

A JSON object is one line; unknown values are null:
  time client version op export dataset (ZFS only) inode path (illumos only) xid
  bytes stability status duration_seconds
  phases_seconds {cpu runqueue log disk throttle upcall recall reclaim lock}
A line {\"left_out\":N} says that N more operations happened since the last such
line.

nfscope slow stops on Ctrl-C and SIGTERM. NO_COLOR turns colours off.";

pub(super) const STUCK_EXAMPLES: &str = "\
Exit code:
  0   no such request, and no client waits outside the server
  2   at least one such request or client
  1   unknown: no agent answers, or NFS operations are not timed

Examples:
  sudo nfscope stuck                     with kernel stacks, on the server itself
  nfscope stuck --over 0                 every request that a thread is serving
  nfscope stuck --url http://nfs1:9943   without kernel stacks
  sudo nfscope stuck --json | jq -r '.requests[] | .stack[0]'

Each request has a line, the oldest first. Below it, root sees the functions in
which its thread sleeps, the innermost first. A running thread has no such
line.
  IN HAND    time since a thread took the request
  WAITS FOR  cpu (it runs, or waits for a CPU), log, disk, throttle, upcall,
             recall, reclaim, lock (other waits: locks, other threads, anything
             that is not named), reply (the client or the network); unknown where
             phases are not measured
Requests in queues have no thread and no line. nfscope_pending_connections
counts connections with a request that no thread takes. Requests that began
before the agent attached are not shown. A file handle of an export's own
directory has no inode number. On illumos, requests of less than half a second
are not shown.

The last line says when the kernel's laundromat ended its last run. The
laundromat ends the leases of silent clients and revokes delegations. The
kernel runs it at least once in each lease.

A JSON object:
  host, over_seconds, unknown (the reason, or null), left_out
  requests   thread seconds version op wait client export inode xid stack; the
             last five are left out if unknown
  laundromat   idle_seconds running_seconds
  unacknowledged   client bytes seconds retransmissions zero_window_bytes; left
               out where this host does not measure it
  outside    sentences on the grace period, on locks that clients wait for, and
             on clients that have to retry (NFS4ERR_DELAY); left out if none
  not_known  sentences on state that could not be read; left out if none";

pub(super) const DIAGNOSE_EXAMPLES: &str = "\
Exit code:
  0   healthy
  2   at least one finding
  1   unknown: no finding, but this host cannot measure everything, or clients
      wait outside the server

Examples:
  nfscope diagnose                       the agent on this host; without an
                                         agent, own probes (needs root)
  nfscope diagnose --duration 10m --url http://nfs1:9943
  nfscope diagnose --json | jq '.findings[0]'
  nfscope diagnose --at 03:10            last night: the minute from 03:10 on,
                                         with its busiest clients and exports

Findings are sorted by the share of request time in the server (residence) that
each explains. A cause comes before its consequences, and causes outside the
server come last. Most causes are a finding from a share of 25 % on, if clients
lose enough time. Some have other thresholds: docs/thresholds.md.
  stuck_requests     a thread has been serving a request for a second or longer
                     (half a second for usually quick operations), or no thread
                     takes a request
  retry_later        the server tells clients to try again later (NFS4ERR_DELAY,
                     NFS3ERR_JUKEBOX, a lock that is denied), and clients wait
                     outside the server
  unacknowledged_replies  the server has answered, and clients acknowledge no
                     replies
  unsafe_writes      writes that clients take for durable are acknowledged
                     before they are durable
  slot_starvation    a client sends its requests with every slot of its NFSv4.1
                     session in use, and the rest waits in the client
  state_recovery_storm  clients make or recover NFSv4 state instead of
                     working with files
  pnfs_fallback      clients with pNFS layouts read and write through the server
  connection_limit   the kernel closes connections of clients, because too many
                     are open
  bad_rpcs           clients send RPCs that are refused before anything is
                     executed
  thread_starvation  requests wait for a free thread (thread pool saturation)
  slow_intent_log    operations wait for the journal or intent log, most of the
                     time in waits of 1 ms or more; writes of an ext4 journal
                     take long, too
  slow_disk          operations wait for block I/O outside the log, and the
                     waits or the devices are slow
  write_throttle     the kernel delays writers until written data is stored
  slow_upcall        nfsd threads wait for rpc.mountd or another daemon
  delegation_recalls nfsd threads wait for clients to return delegations
  memory_reclaim     nfsd threads wait for free memory
  cpu_saturation     nfsd threads wait for a CPU
  lock_contention    changes of the same directory or file wait for its lock;
                     only this command finds it, because it counts by file
  unknown_waits      other waits (locks, other threads, anything that is not
                     named) that no directory or file explains
  slow_reply         replies wait for the client or the network
  chatty_client      most requests are metadata queries or tiny READs
  small_sync_writes  synchronous writes make few bytes durable at a time
  slow_mount         RPCs of a mount of this host take 10 ms or more on average
                     (agent --client)
If there are findings, a simulation of the server predicts the gain of changes,
as nfscope what-if does. The agent evaluates its own windows every ten seconds:
/findings and nfscope_bottleneck_active have the result.

A JSON object: window_seconds, verdict (healthy, findings, unknown), reason,
requests, residence_seconds,
  findings   kind severity share summary evidence advice; evidence is a list of
             text metric value limit (base units; limit null where there is none)
  worth      list of changes, if there are findings: gain gain_low gain_high
             is_rate prediction; without a list, worth_unknown has the reason
  ruled_out  kind share why; share null where this host cannot measure it
  headroom   resource utilization (0 to 1)
  warnings   sentences: exports that acknowledge writes before they are durable
  outside    sentences: causes for which clients wait outside the server
  unseen     sentences: causes that this host cannot measure
  not_known  sentences: details of findings that are unknown; left out if none
  from, to, who
             with --at: the time, and the busiest clients and exports";

pub(super) const PATH_EXAMPLES: &str = "\
Examples:
  nfscope path nfs1                        to nfs1 and back, for ten seconds
  nfscope path https://nfs1:9943 --user me --duration 1m
  nfscope path http://localhost:9943 --mounted-as nfs1    through a tunnel

The command needs an agent with --client on this host, and an agent on the
server that lets this host read /snapshot (--web.allow-details, a password or a
certificate).

TOTAL is the time of an RPC as the client measures it: the sum of BACKLOG
(before the request is sent), NETWORK, QUEUE, RECEIVE, EXECUTE and REPLY (in
the server), and DONE (in the client, after the reply). NETWORK is the round
trip without the time in the server. Where other clients use the same version,
the server's times are means over all clients, and a line says so.

A JSON object: client, server, window_seconds,
  versions  version total ops server_rpcs alone
  total     rpcs seconds backlog_seconds network_seconds queue_seconds
            receive_seconds execute_seconds reply_seconds completion_seconds,
            all RPCs of the version together
  ops       op, the keys of total, and phases: parts of the operation's time in
            the server";

pub(super) const DETACH_EXAMPLES: &str = "\
Examples:
  sudo nfscope detach zfs        detach from module zfs; list its other users
  sudo nfscope attach zfs        attach again
  sudo nfscope detach all --url http://127.0.0.1:9944

Attached probes keep their kernel modules loaded. To replace a module while the
agent runs, detach its probe, unload the module and load the new one. The probe
then attaches automatically, and its counters restart. While the nfsd probe is
detached, no operation is timed, and /healthz reports it.";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  nfscope completions bash > ~/.local/share/bash-completion/completions/nfscope
  nfscope completions zsh > ~/.zfunc/_nfscope          with ~/.zfunc in fpath
  nfscope completions fish > ~/.config/fish/completions/nfscope.fish

The packages of nfscope install the three files.";

pub(super) const FLEET_EXAMPLES: &str = "\
Examples:
  nfscope fleet http://prometheus:9090
  nfscope fleet http://prometheus:9090 --json |
      jq '.[] | select(.findings != [])'
  nfscope fleet https://prometheus --ca-file ca.crt --user admin \\
      --password-file ~/.nfscope-password

Servers that do not answer come first, then servers with findings, then servers
by utilization. Findings come from the agents. The other columns come from the
recording rules (dashboards/rules), and are unknown where Prometheus does not
evaluate them:
  OPS/S      operations a second, in the last 5 minutes
  FULLEST    highest utilization: threads, CPUs or the busiest disk of an export
  MOST TIME  the operation that takes most of the server's time, and its p99
  WEEK       mean time of a request in the server in the last hour, divided by
             that of the same hour a week ago
  FINDINGS   kinds, and the share of request time that each explains

A JSON list of objects: cluster job instance answers, findings (kind share),
saturation (resource ratio), operations_per_second, worst_operation (version op
busy p99_seconds), against_last_week; null where unknown";
