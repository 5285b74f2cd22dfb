//! Every threshold of the diagnosis, in one table with its reason. `docs/thresholds.md` is generated from it.

/// A threshold.
#[derive(Debug)]
pub struct Threshold {
    /// Name in the code.
    pub name: &'static str,
    /// Value as text.
    pub value: &'static str,
    /// Decision that depends on it.
    pub decides: &'static str,
    /// Reason for the value.
    pub reason: &'static str,
}

macro_rules! thresholds {
    ($($name:ident = $number:expr, $value:literal: $decides:literal, $reason:literal;)*) => {
        $(
            #[doc = $decides]
            #[doc = ""]
            #[doc = $reason]
            pub const $name: f64 = $number;
        )*
        /// Table of all thresholds.
        pub const ALL: &[Threshold] = &[$(Threshold {
            name: stringify!($name),
            value: $value,
            decides: $decides,
            reason: $reason,
        }),*];
    };
}

thresholds! {
    BEGIN_SHARE = 0.25, "25 %":
        "A cause becomes a finding from this share of residence on, or from this share of the threads' time on.",
        "Without the cause, requests would take three quarters of the time or less: clients notice that.";
    END_SHARE = 0.15, "15 %":
        "An active finding ends below this share.",
        "Well below the begin, so that a cause around it does not begin and end by turns.";
    CRITICAL_SHARE = 0.5, "50 %":
        "A finding is critical from this share of residence on.",
        "It is more than all other causes together.";
    MIN_BESIDE_SHARE = 0.05, "5 %":
        "A cause that fills the threads' time needs this share of residence, too.",
        "Behind very few threads even the queue of a healthy server hides what the threads do. Where a thread is free most of the time, nothing is hidden, and the share of residence decides.";
    CLEARLY_LONG = 0.5, "50 %":
        "Waits for a log or a disk that fill the threads' time are a finding beside too few threads if they count so much as long ones.",
        "They are then as long as the limit. Where shorter ones fill it, more threads are the cure.";
    MIN_LOST = 0.05, "0.05":
        "A cause needs this number of requests that wait for it on average: the seconds that clients lose in a second. Waits for logs and disks count by their weight.",
        "Less is a twentieth of one client that waits for each reply.";
    END_LOST = 0.03, "0.03":
        "An active finding ends below this number.",
        "Well below the begin, as for shares.";
    CRITICAL_LOST = 0.25, "0.25":
        "A cause is critical from this number of requests that wait for it on average, or if a request is felt.",
        "One client that waits for each reply then loses a quarter of its time.";
    MANY_LOST = 0.15, "0.15":
        "Small synchronous writes are a finding from this number of them at a time on average.",
        "Each is quick. Only clients that do little else lose much.";
    END_MANY_LOST = 0.1, "0.1":
        "An active finding about them ends below this number.",
        "Well below the begin, as for shares.";
    LEARNED_SECONDS = 3_600.0, "1 h":
        "The usual times of a server's requests are known from this length of its windows without a critical finding on. Then the part of the waits that is more than usual decides whether a finding is critical, and not the length of the waits.",
        "An hour has more than one run of most jobs. Before, the fixed limits decide.";
    MIN_LEARNED = 1_000.0, "1000":
        "The same needs this number of operations of a kind.",
        "A few stalls among fewer change their mean by as much as a slower device.";
    FELT_SECONDS = 0.5, "0.5 s":
        "One wait or one request of this length counts whatever their number.",
        "A person or a program that waits for one request feels half a second.";
    DISTANT_RATIO = 10.0, "10":
        "An open of a client is said to be distance if its round trips take so many times as long as the server.",
        "Then a server that answers at once would save the client a tenth of its wait.";
    DISTANT_SECONDS = 1e-3, "1 ms":
        "A client is distant from this round-trip time on.",
        "Within a data centre a round trip takes a few hundred microseconds at most.";
    BEGIN_WAITING = 0.25, "0.25":
        "Other waits (locks, other threads, anything that is not named) are a finding from this number of operations in such a wait on average.",
        "A client that waits for each reply then loses a quarter of its time.";
    END_WAITING = 0.15, "0.15":
        "An active finding about other waits ends below this number.",
        "Well below the begin, as for shares.";
    OVERLAP = 1.5, "1.5":
        "Changes of a directory or file overlap from this number of them at the same time on average.",
        "One client that waits for each reply has less than one; two that always change it have nearly two.";
    MIN_STACKS = 10.0, "10":
        "Kernel stacks decide for or against a lock from this number of sleeping operations on.",
        "If half of all sleeps are for a lock, ten show two or fewer of them once in twenty times.";
    MIN_CRITICAL_USE = 0.1, "10 %":
        "Lock contention is critical only if threads are in use for this part of the time.",
        "Below, nine of ten threads are free for other clients.";
    MIN_COUNT = 20.0, "20":
        "Shorter waits, operations or requests need this number in a window.",
        "The mean of fewer is a matter of chance.";
    MIN_CONCURRENCY = 0.05, "0.05":
        "Requests in the server on average (Little's law), below which only those count that are felt.",
        "A thread that is used for a twentieth of the time keeps nobody waiting.";
    SLOW_LOG_SECONDS = 1e-3, "1 ms":
        "A wait for a log, or one write of it, counts half as a long one. A wait of half this length counts nothing, of twice this length in full.",
        "A device with power-loss protection takes a tenth of that, so that a better device would make it ten times as fast.";
    SLOW_DISK_SECONDS = 2e-3, "2 ms":
        "A wait for a disk counts half as a long one. A wait of half this length counts nothing, of twice this length in full.",
        "Flash memory and network block storage take less; half a turn of a disk takes more (7200 rpm: 4.2 ms).";
    SLOW_DISK_REQUEST_SECONDS = 4e-3, "4 ms":
        "A device counts half as a slow one if one request takes this on average.",
        "The page cache answers most READs, so that the mean wait of a READ can hide a slow device.";
    FOREIGN_READ = 0.5, "50 %":
        "From this part on, other programs than nfsd read most of what is read from the exports' devices.",
        "Then clients wait more for those programs than for each other.";
    FOREIGN_WRITE = 10.0, "10":
        "From so many bytes written to the exports' devices for each byte that nfsd has changed, the page shows both.",
        "A small synchronous WRITE costs a file system with a journal three to five times its bytes.";
    LONG_PART = 0.5, "50 %":
        "Waits for daemons are slow if this part of their time lies in long waits. An operation mostly waits for disks if they have this part of its time. A wait is one for a lock if this part of the stacks is.",
        "A daemon that stalls has few long waits among many short ones; callers that wait for each reply make them few.";
    ALIKE = 0.5, "50 %":
        "A client belongs to a group of guilty ones with this part of what the first of them has, if they have half of all together, and the next one has less than this part of the last of them.",
        "One with less than that stands behind the others.";
    LONG_WAIT_SECONDS = 1e-3, "1 ms":
        "A mean wait for a lock, a thread, a CPU or a reader is long from here on.",
        "A shorter one is the normal work of locking, waking up and sending.";
    UNEXPLAINED = 4.0, "4":
        "Waits for I/O are the queue of a slow log on a device of its own, if they are so many times what the devices of exports explain: as a sum. The operations, too, are so many times as long as the longest request.",
        "Several threads can wait for one request, but seldom more.";
    HOLDERS_PART = 0.5, "50 %":
        "Waits of changes for the lock of a directory or file are the queue of a cause, such as the write throttle or disks, if that cause has this part of the rest of their time.",
        "The thread that holds the lock then mostly waits for that cause.";
    LOG_IN_USE = 0.8, "80 %":
        "Locks are the queue of a slow log that is in use for this part of the time.",
        "The holder of a lock then nearly always waits for the log.";
    BUSY_CPU_IDLE = 0.1, "10 %":
        "CPUs with a smaller idle part are busy.",
        "A thread that is woken up then mostly finds no idle CPU.";
    NEGLIGIBLE_SATURATION = 0.02, "2 %":
        "A pool without a free thread for a smaller part of the window always had one.",
        "Threads that change hands look like that.";
    SATURATED = 0.2, "20 %":
        "Threads are too few if none was free for this part of the window.",
        "Shorter bursts fill every pool now and then.";
    MOSTLY_SATURATED = 0.5, "50 %":
        "From this part on all requests that waited have waited for a thread, and not for a thread to wake up.",
        "Most of them have come while none was free.";
    QUEUE_KNOWN_SHARE = 0.5, "50 %":
        "The wait for a thread is measured if the arrival of this part of the requests was seen, or of more.",
        "What is known of most requests holds for the others, which came to the same threads.";
    UNSEEN_ARRIVALS = 0.05, "5 %":
        "Requests whose arrival was not seen are mentioned from this part of the requests on.",
        "Another thread can read the first request of a connection before anything tells when it arrived.";
    THREAD_RESERVE = 1.25, "1.25":
        "The advice adds so much to the threads that the window needed.",
        "Load varies around its mean.";
    MIN_PUT_OFF = 3.0, "3":
        "An operation that is answered with nothing but the request to try again later, this often, is taken for a client that waits all the time.",
        "A delegation that is returned at once costs one or two such answers.";
    MIN_DENIED = 2.0, "2":
        "A client asks again and again for a lock if it was denied one this often and was granted none.",
        "A program that does not wait for its lock asks once.";
    LOCK_WAIT_SECONDS = 10.0, "10 s":
        "A client waits long for a lock on a file from this time on.",
        "Programs that take turns hold their locks for less; somebody who waits for this long asks why.";
    STANDING_RATIO = 0.5, "50 %":
        "A client waits all the time if this part of its requests is answered with the request to try again later.",
        "It does little else.";
    MIN_RECOVERIES = 5.0, "5":
        "A client recovers again and again if this many of its requests find their lease, session or state gone.",
        "A server that was restarted, or a lease that ended, costs one or two.";
    RECOVERING_RATIO = 0.05, "5 %":
        "The same needs this part of the client's requests.",
        "Each such answer costs the client several requests for a new lease, session and state.";
    UNACKNOWLEDGED_SECONDS = 3.0, "3 s":
        "A client takes no replies if none was acknowledged for so long.",
        "Delayed acknowledgements take half a second at most (RFC 1122, 4.2.3.2), and round trips by satellite less than a second.";
    MIN_RETRANSMISSIONS = 2.0, "2":
        "The same needs this number of retransmissions of the oldest data, or a TCP window of zero.",
        "A client that was suspended for a moment, or one lost packet, costs one.";
    BAD_RPCS_A_SECOND = 10.0, "10/s":
        "So many calls a second that are refused before anything is executed are a finding, whatever part of all calls they are.",
        "A client that tries versions or renews its credentials sends a few an hour; a scanner or a broken program sends them without end.";
    UNUSUAL_RATIO = 100.0, "100":
        "A request is stuck when it takes so many times as long as its operation does on average.",
        "No queue of a healthy server makes such a difference.";
    MIN_UNUSUAL_SECONDS = 0.5, "0.5 s":
        "The same needs this age.",
        "A busy disk makes single requests wait for some tenths of a second.";
    PENDING_RATIO = 10.0, "10":
        "Requests that no thread takes are stuck when one has waited so many times as long as 99 % of those that a thread took, in any pool.",
        "The threads of a pool take connections in turn, so that behind busy threads no wait is much longer than the others.";
    FULL_SLOTS = 0.25, "25 %":
        "A client has too few slots if it sends this part of its requests, or more, with every slot in use.",
        "Bursts fill a session now and then; a client that needs more slots fills it again and again.";
    UNSAFE_RATIO = 0.5, "50 %":
        "WRITEs whose threads waited for nothing are unsafe from this part of the durable WRITEs on.",
        "Another thread's wait can make a WRITE durable before its own thread has to wait, but not most of them.";
    RECOVERY_RATIO = 0.25, "25 %":
        "Clients recover state instead of working from this part of the requests on.",
        "A client needs a dozen such requests when it mounts, and then none.";
    FALLBACK_RATIO = 0.25, "25 %":
        "Clients with pNFS layouts use the server instead of the storage if their READs and WRITEs are this part of the requests or more.",
        "Where pNFS works they are next to none: parts of blocks of files that are open with O_DIRECT.";
    CHATTY_RATIO = 0.8, "80 %":
        "Clients are chatty from this part of the requests on.",
        "Other work is then a small part of what clients do.";
    SYNC_RATIO = 0.5, "50 %":
        "Synchronous WRITEs and COMMITs are frequent from this part of the requests on.",
        "They are then what clients mostly do.";
    SMALL_BYTES = 65_536.0, "64 KiB":
        "Fewer bytes for each stable WRITE or COMMIT are small.",
        "A client's default WRITE is 16 times as large.";
    SLOW_MOUNT_SECONDS = 0.01, "10 ms":
        "RPCs of a mount of this host are slow if they take this on average.",
        "A server near by answers from memory or flash in less than a tenth of that.";
    MIN_SLICES = 10.0, "10":
        "The course of a wait is told from this number of slices on.",
        "A trend of fewer is hard to tell from chance.";
    BURST = 2.0, "2":
        "A slice of a window belongs to a burst with more than so many times the mean waiting.",
        "Slices of a steady wait differ less.";
    MIN_IN_BURSTS = 0.6, "60 %":
        "Waiting comes in bursts if this part of it ended in them.",
        "It is more than what lies between them.";
    MAX_BURST_SLICES = 0.35, "35 %":
        "Bursts have this part of the slices or fewer.",
        "A wait in every second slice is no burst.";
    TREND = 1.5, "1.5":
        "A wait grows if the last third of the window has so many times the waiting of the first; it falls at the inverse.",
        "Less of a change is nothing to act on.";
    TREND_SCORE = 3.1, "3.1":
        "A trend is no chance from this standard score of Mann and Kendall's test on.",
        "One steady server in a thousand has it by chance, in either direction.";
    STEADY = 0.5, "0.5":
        "A wait is steady up to this standard deviation, as a part of its mean.",
        "Most slices then lie between half the mean and one and a half.";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_threshold_has_a_reason_and_a_name_of_its_own() {
        for t in ALL {
            assert!(
                t.decides.ends_with('.') && t.reason.ends_with('.'),
                "{}",
                t.name
            );
            assert_eq!(
                ALL.iter().filter(|o| o.name == t.name).count(),
                1,
                "{}",
                t.name
            );
        }
    }
}
