/*
 * Plays an NFS server of illumos: its probes nfsv3 and nfsv4 as USDT probes, and the functions of rpcmod, nfssrv and zfs that the
 * scripts trace as probes called FUNCTION-entry and FUNCTION-return of a provider of its own. It knows what it did, and prints that at the end.
 *
 * It obeys lines on standard input, answers each with what it did and a line `end`, and ends with the input:
 *   work N              does N requests of all kinds
 *   commits N           does N COMMITs that take long
 *   serve LOG THINK Q   WRITEs from now on, whose log takes LOG us; a thread is idle for THINK us between two; Q 1: the next request
 *                       of a thread arrives while it has the last one in hand
 *   stop                no more of these; prints the time without an idle thread, and all time
 *   hang                one more WRITE, whose log does not answer
 *   release             the log answers
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct { uint64_t xid; const char *remote; const char *share; const char *path; } emu_request_t;
typedef struct { uint64_t offset; } emu_args_t;
typedef struct { int status; } emu_res_t;
typedef struct { uint64_t offset; uint32_t count; } READ3args;
typedef struct { int status; union { struct { uint32_t count; int eof; } ok; int fail; } res_u; } READ3res;
typedef struct { uint64_t offset; uint32_t count; int stable; } WRITE3args;
typedef struct { int status; union { struct { uint32_t count; int committed; } ok; int fail; } res_u; } WRITE3res;
typedef struct { int status; int eof; uint32_t data_len; } READ4res;
typedef struct { uint64_t offset; int stable; uint32_t data_len; } WRITE4args;
typedef struct { int status; uint32_t count; int committed; } WRITE4res;
typedef struct { uint32_t minorversion; uint32_t array_len; } COMPOUND4args;
typedef struct { int status; uint32_t array_len; } COMPOUND4res;
/* Written by the test: probes of every operation, and OPERATIONS3 and OPERATIONS4, lists of X(name, PROBE). */
#include "operations.h"
#include "probes.h"

typedef struct { char spa_name[256]; } spa_t;
typedef struct { spa_t *dp_spa; } dsl_pool_t;
typedef struct { dsl_pool_t *tx_pool; } dmu_tx_t;
typedef struct { spa_t *zl_spa; int zl_sync; } zilog_t;
typedef struct { zilog_t *lwb_zilog; int lwb_nused, lwb_sz, lwb_slog; } lwb_t;
typedef struct { void *io_private; int io_error; } zio_t;
typedef struct { uint64_t lrc_txtype, lrc_reclen, lrc_txg, lrc_seq; } lr_t;
typedef struct { int itx_wr_state; lr_t itx_lr; uint64_t lr_foid, lr_offset, lr_length; } itx_t;
typedef struct { int p_id, p_threads, p_detached_threads, p_maxthreads, p_asleep, p_drowsy, p_walkers; } SVCPOOL;
typedef struct { uint32_t rq_prog, rq_vers; } svc_req_t;

/* Phases of operations, by the names that nfscope has for them. */
enum { CPU, RUNQUEUE, LOG, DISK, THROTTLE, UPCALL, RECALL, RECLAIM, LOCK, PHASES };
static const char *phases[PHASES] = { "cpu", "runqueue", "log", "disk", "throttle", "upcall", "recall", "reclaim", "lock" };
/* Of so many requests one is a COMMIT: a multiple of 22, the operations of NFSv3. */
enum { THREADS = 4, OPS = 64, EVERY = 352 };

/* What one thread did. */
typedef struct {
	uint64_t ops[5][OPS], inner[5][OPS], outer[5][OPS], errors[5][OPS];
	uint64_t stable[5][3], stable_bytes[5][3], bytes[5][2];
	uint64_t client[3], export[2];
	uint64_t compounds[5], compound_ops[5];
	uint64_t requests[5], commits[3], lwbs[2], lwb_bytes[2], itx_bytes[3], syncs, throttles, txg_waits, upcalls;
	/* Inside of the probes of a COMMIT, and around them: a thread can lose its CPU between the two. */
	uint64_t phase[PHASES], around[PHASES];
	int in_op, schedstat;
} truth_t;

static truth_t truths[THREADS];
static __thread truth_t *truth;

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

#define WALL clock_ns(CLOCK_MONOTONIC)
#define ON_CPU clock_ns(CLOCK_THREAD_CPUTIME_ID)

/* Time that this thread was runnable and had no CPU, as the kernel counts it. */
static uint64_t run_delay(void)
{
	char text[128];
	unsigned long long on, delay;
	ssize_t n = pread(truth->schedstat, text, sizeof text - 1, 0);
	if (n <= 0)
		abort();
	text[n] = 0;
	return sscanf(text, "%llu %llu", &on, &delay) == 2 ? delay : 0;
}

/*
 * Sleeps, and counts how long it was neither on a CPU nor waiting for one: between two values, as it may lose its CPU between the
 * readings of its clocks.
 */
static void asleep(int phase, int us)
{
	uint64_t wide = run_delay() + ON_CPU, wall = WALL, narrow = ON_CPU + run_delay();
	usleep(us);
	narrow = run_delay() + ON_CPU - narrow;
	wall = WALL - wall;
	wide = ON_CPU + run_delay() - wide;
	if (truth->in_op) {
		truth->phase[phase] += wall > wide ? wall - wide : 0;
		truth->around[phase] += wall > narrow ? wall - narrow : 0;
	}
}

/* The kernel's functions, as far as the scripts see them. */
static void spa_sync(spa_t *spa)
{
	KERNELX_SPA_SYNC_ENTRY(spa, 1);
	asleep(LOCK, 3000);
	KERNELX_SPA_SYNC_RETURN();
	truth->syncs++;
}

static void dmu_tx_wait(dmu_tx_t *tx)
{
	KERNELX_DMU_TX_WAIT_ENTRY(tx);
	asleep(THROTTLE, 10000);
	KERNELX_DMU_TX_WAIT_RETURN();
	truth->throttles++;
}

static void zio_wait(zio_t *zio)
{
	KERNELX_ZIO_WAIT_ENTRY(zio);
	asleep(DISK, 10000);
	KERNELX_ZIO_WAIT_RETURN();
}

/* A question to a daemon. */
static void door_upcall(int us)
{
	KERNELX_DOOR_UPCALL_ENTRY(0, 0);
	asleep(UPCALL, us);
	KERNELX_DOOR_UPCALL_RETURN();
	truth->upcalls++;
}

static void rfs4_dbe_twait(void)
{
	KERNELX_RFS4_DBE_TWAIT_ENTRY(0, 0);
	asleep(RECALL, 5000);
	KERNELX_RFS4_DBE_TWAIT_RETURN();
}

static void rfs4_check_delegated_byfp(void)
{
	KERNELX_RFS4_CHECK_DELEGATED_BYFP_ENTRY(0, 0);
	asleep(RECALL, 5000);
	KERNELX_RFS4_CHECK_DELEGATED_BYFP_RETURN();
}

static void page_create_throttle(void)
{
	KERNELX_PAGE_CREATE_THROTTLE_ENTRY(0, 0);
	asleep(RECLAIM, 10000);
	KERNELX_PAGE_CREATE_THROTTLE_RETURN();
}

static spa_t spa = { "tank" };
static dsl_pool_t dsl_pool = { &spa };

/* One block of the log, and the changes in it. */
static void write_log(zilog_t *zilog, uint64_t object)
{
	static const int bytes[3] = { 8192, 512, 4096 };
	int kind = object % 3, slog = object % 2;
	lwb_t lwb = { zilog, 3000 + (object % 4) * 2000, 128 << 10, slog };
	zio_t zio = { &lwb, 0 };
	itx_t itx = { kind, { 9, 192, 1, 1 }, 0, 0, bytes[kind] };
	KERNELX_ZIL_PROCESS_NORMAL_ITX(zilog, &itx);
	truth->itx_bytes[kind] += bytes[kind];
	/* Not a write: no data. */
	itx.itx_lr.lrc_txtype = 1;
	KERNELX_ZIL_PROCESS_COMMIT_ITX(zilog, &itx);
	if (object % 20 == 0) {
		KERNELX_TXG_WAIT_SYNCED_ENTRY(&dsl_pool, object);
		truth->txg_waits++;
		return;
	}
	KERNELX_ZIL_LWB_WRITE_ISSUE_ENTRY(zilog, &lwb);
	asleep(LOG, 5000);
	KERNELX_ZIL_LWB_WRITE_DONE_ENTRY(&zio);
	asleep(LOG, 15000);
	KERNELX_ZIL_LWB_FLUSH_VDEVS_DONE_ENTRY(&zio);
	truth->lwbs[slog]++;
	truth->lwb_bytes[slog] += (lwb.lwb_nused + 4095) / 4096 * 4096;
}

static void zil_commit(zilog_t *zilog, uint64_t object)
{
	KERNELX_ZIL_COMMIT_ENTRY(zilog, object);
	truth->commits[zilog->zl_sync]++;
	if (zilog->zl_sync != 2)
		write_log(zilog, object);
	KERNELX_ZIL_COMMIT_RETURN();
}

/* What a COMMIT of NFSv3 does beside answering. Its sleeps are long beside the probes' own time. */
static void work(uint64_t i)
{
	uint64_t object = i / EVERY;
	zilog_t zilog = { &spa, object % 7 == 3 ? 2 : object % 7 == 4 ? 1 : 0 };
	zio_t zio = { 0, 0 };
	dmu_tx_t tx = { &dsl_pool };
	uint64_t on = ON_CPU, delay = run_delay();
	truth->in_op = 1;
	/* First: a thread that has used its CPU for long is about to lose it, which shall not happen behind the last reading. */
	while (ON_CPU - on < 40000000)
		;
	zil_commit(&zilog, object);
	zio_wait(&zio);
	dmu_tx_wait(&tx);
	door_upcall(10000);
	rfs4_dbe_twait();
	rfs4_check_delegated_byfp();
	page_create_throttle();
	asleep(LOCK, 10000);
	truth->in_op = 0;
	truth->phase[RUNQUEUE] += run_delay() - delay;
	truth->phase[CPU] += ON_CPU - on;
}

/* Keeps a CPU busy, so that threads wait for one. */
static int done;
static void *hog(void *unused)
{
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED))
		;
	return unused;
}

static const char *clients[3] = { "10.0.0.1", "10.0.0.2", "fe80::3" };
static const char *exports[2] = { "/export/a", "/export/with space" };
/* The first has a line in it that looks like the script's. */
static const char *paths[2] = { "/export/a/file\n@slow\t5\t3\top-commit-done\t99000000\t0\t0\t0\t10.0.0.1\t\t9\t/export/a\t/export/a/forged", "/export/with space/a\tfile" };

/* Once around an operation: outer before its start and behind its end, inner inside of both. */
#define TIMED(version, op, start, done) do { \
	uint64_t outer = WALL, on = ON_CPU, delay = run_delay(); \
	start; \
	uint64_t inner = WALL; \
	if (version == 3 && op == OP3_COMMIT) \
		work(i); \
	inner = WALL - inner; \
	done; \
	if (version == 3 && op == OP3_COMMIT) { \
		truth->around[RUNQUEUE] += run_delay() - delay; \
		truth->around[CPU] += ON_CPU - on; \
	} \
	truth->outer[version][op] += WALL - outer; \
	truth->inner[version][op] += inner; \
	truth->ops[version][op]++; \
	truth->errors[version][op] += status != 0; \
	} while (0)

enum { READ = 0, WRITE = 1 };
#define X(name, PROBE) OP3_##PROBE,
enum { OPERATIONS3 OP3_NULL };
#undef X
#define X(name, PROBE) OP4_##PROBE,
enum { OPERATIONS4 OP4_SEQUENCE, OP4_NULL };
#undef X

static void transferred(int version, int kind, uint32_t n, int status)
{
	if (status == 0)
		truth->bytes[version][kind] += n;
}

static void stored(int version, int stable, uint32_t n, int status)
{
	truth->stable[version][stable]++;
	if (status == 0)
		truth->stable_bytes[version][stable] += n;
}

/* A probe whose arguments a script asks for may be in one function only. */
static __attribute__((noipa)) void write3_start(emu_request_t *r, WRITE3args *a)
{
	NFSV3X_OP_WRITE_START(r, r, a);
}

static __attribute__((noipa)) void write3_done(emu_request_t *r, WRITE3res *d)
{
	NFSV3X_OP_WRITE_DONE(r, r, d);
}

static void operation3(uint64_t i, emu_request_t *r)
{
	int op = i % (OP3_NULL + 1), status = i % 10 == 9 ? 70 : 0;
	uint32_t n = 1u << i % 18;
	emu_args_t args = { i };
	emu_res_t res = { status };
	/* The other COMMITs would have no time but that of the probes. */
	if (op == OP3_COMMIT && i % EVERY != OP3_COMMIT)
		op = OP3_GETATTR;
	switch (op) {
	case OP3_READ: {
		READ3args a = { i, n };
		READ3res d = { status, { { n - i % 2, 0 } } };
		TIMED(3, op, NFSV3X_OP_READ_START(r, r, &a), NFSV3X_OP_READ_DONE(r, r, &d));
		transferred(3, READ, n - i % 2, status);
		break;
	}
	case OP3_WRITE: {
		WRITE3args a = { i, n, i / 22 % 3 };
		WRITE3res d = { status, { { n, 2 } } };
		TIMED(3, op, write3_start(r, &a), write3_done(r, &d));
		transferred(3, WRITE, n, status);
		stored(3, a.stable, n, status);
		break;
	}
	case OP3_NULL:
		status = 0;
		TIMED(3, op, NFSV3X_OP_NULL_START(r, r), NFSV3X_OP_NULL_DONE(r, r));
		return;
#define X(name, PROBE) \
	case OP3_##PROBE: \
		TIMED(3, op, NFSV3X_OP_##PROBE##_START(r, r, &args), NFSV3X_OP_##PROBE##_DONE(r, r, &res)); \
		break;
	GENERIC3
#undef X
	}
	truth->client[i % 3]++;
	truth->export[i % 2]++;
}

static void operation4(uint64_t i, int minor, int op, emu_request_t *r)
{
	int status = i % 10 == 9 ? 10008 : 0;
	uint32_t n = 1u << i % 18;
	emu_args_t args = { i };
	emu_res_t res = { status };
	switch (op) {
	case OP4_READ: {
		READ4res d = { status, 0, n };
		TIMED(minor, op, NFSV4X_OP_READ_START(r, &args), NFSV4X_OP_READ_DONE(r, &d));
		transferred(minor, READ, n, status);
		break;
	}
	case OP4_WRITE: {
		WRITE4args a = { i, i / 111 % 3, n };
		WRITE4res d = { status, n, 2 };
		TIMED(minor, op, NFSV4X_OP_WRITE_START(r, &a), NFSV4X_OP_WRITE_DONE(r, &d));
		transferred(minor, WRITE, n, status);
		stored(minor, a.stable, n, status);
		break;
	}
	case OP4_SEQUENCE:
		status = 0;
		TIMED(minor, op, NFSV4X_OP_SEQUENCE_START(r, &args), NFSV4X_OP_SEQUENCE_DONE(r, &res));
		return;
#define X(name, PROBE) \
	case OP4_##PROBE: \
		TIMED(minor, op, NFSV4X_OP_##PROBE##_START(r, &args), NFSV4X_OP_##PROBE##_DONE(r, &res)); \
		break;
	GENERIC4
#undef X
	}
	truth->client[i % 3]++;
	truth->export[i % 2]++;
}

static void rfs_dispatch(svc_req_t *request, emu_request_t *r)
{
	uint64_t i = r->xid;
	/* Who a client is, and whether it may: before the call is known, and before the operation. */
	if (i % 2000 == 0)
		door_upcall(3000);
	KERNELX_RFS_DISPATCH_ENTRY(request, r);
	if (i % 2000 == 0)
		door_upcall(5000);
	if (request->rq_vers == 3) {
		operation3(i, r);
	} else if (i % 64 == 2) {
		uint64_t outer = WALL;
		NFSV4X_NULL_START(r);
		NFSV4X_NULL_DONE(r);
		truth->ops[4][OP4_NULL]++;
		truth->outer[4][OP4_NULL] += WALL - outer;
	} else {
		int minor = i % 3, ops = minor ? 3 : 2;
		COMPOUND4args a = { minor, ops };
		COMPOUND4res d = { 0, ops };
		NFSV4X_COMPOUND_START(r, &a);
		if (minor)
			operation4(i, minor, OP4_SEQUENCE, r);
		operation4(i, minor, OP4_PUTFH, r);
		operation4(i, minor, i / 3 % OP4_SEQUENCE, r);
		NFSV4X_COMPOUND_DONE(r, &d);
		truth->compounds[minor]++;
		truth->compound_ops[minor] += ops;
	}
	KERNELX_SVC_SENDREPLY_ENTRY(r);
	KERNELX_SVC_SENDREPLY_RETURN();
}

static void svc_getreq(emu_request_t *r)
{
	svc_req_t request = { 100003, r->xid / 2 % 2 ? 4 : 3 };
	KERNELX_SVC_GETREQ_ENTRY(&request, r);
	truth->requests[request.rq_vers]++;
	rfs_dispatch(&request, r);
	KERNELX_SVC_GETREQ_RETURN();
}

static uint64_t requests;
static SVCPOOL pool = { 1, THREADS, 0, 16, 0, 0, 0 };

/* A thread looks for work, and takes it. */
static void svc_poll(void)
{
	__atomic_add_fetch(&pool.p_walkers, 1, __ATOMIC_SEQ_CST);
	KERNELX_SVC_POLL_ENTRY(&pool);
}

static void svc_taken(void)
{
	__atomic_sub_fetch(&pool.p_walkers, 1, __ATOMIC_SEQ_CST);
}

static pthread_barrier_t fast_ones_done;
static int only_long;

/* A COMMIT that takes long. */
static int is_long(uint64_t i)
{
	return i / 2 % 2 == 0 && i % EVERY == OP3_COMMIT;
}

/*
 * The long ones come last: where other operations keep probes busy, an interrupt may find one at work on its CPU, and wake a thread
 * up unseen. Not so on illumos, where a probe is not interrupted.
 */
static void *run(void *argument)
{
	uint64_t thread = (uintptr_t)argument;
	truth = &truths[thread];
	truth->schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
	for (int last = only_long; last < 2; last++) {
		for (uint64_t i = thread; i < requests; i += THREADS) {
			/* Not the number itself: threads would have operations of their own. */
			uint64_t n = i / THREADS * THREADS + (i + i / THREADS) % THREADS;
			emu_request_t r = { n, clients[n % 3], exports[n % 2], paths[n % 2] };
			if (is_long(n) != last)
				continue;
			svc_poll();
			KERNELX_SVC_QUEUEREQ_ENTRY(&pool, &r);
			svc_taken();
			svc_getreq(&r);
			if (n % 1000 == 0) {
				dmu_tx_t tx = { &dsl_pool };
				spa_sync(&spa);
				dmu_tx_wait(&tx);
			}
		}
		pthread_barrier_wait(&fast_ones_done);
	}
	close(truth->schedstat);
	return 0;
}

/* What `serve` does until `stop`, and how long every thread had a request in hand meanwhile. */
static int serving, log_us, think_us, queued, in_hand;
static uint64_t full, full_since;
static pthread_mutex_t hands = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t answer = PTHREAD_COND_INITIALIZER;
static int hung, answers;

static void take(int n)
{
	pthread_mutex_lock(&hands);
	if (in_hand == THREADS)
		full += WALL - full_since;
	in_hand += n;
	full_since = WALL;
	pthread_mutex_unlock(&hands);
}

/* A WRITE that the log makes durable. */
static void write_durably(emu_request_t *r, int hangs)
{
	zilog_t zilog = { &spa, 0 };
	lwb_t lwb = { &zilog, 8192, 128 << 10, log_us < 1000 };
	zio_t zio = { &lwb, 0 };
	WRITE3args a = { 0, 8192, 2 };
	WRITE3res d = { 0, { { 8192, 2 } } };
	svc_req_t request = { 100003, 3 };
	KERNELX_SVC_GETREQ_ENTRY(&request, r);
	KERNELX_RFS_DISPATCH_ENTRY(&request, r);
	write3_start(r, &a);
	KERNELX_ZIL_COMMIT_ENTRY(&zilog, 1);
	KERNELX_ZIL_LWB_WRITE_ISSUE_ENTRY(&zilog, &lwb);
	if (hangs) {
		pthread_mutex_lock(&hands);
		hung = 1;
		while (!answers)
			pthread_cond_wait(&answer, &hands);
		pthread_mutex_unlock(&hands);
	} else {
		usleep(log_us);
	}
	KERNELX_ZIL_LWB_WRITE_DONE_ENTRY(&zio);
	KERNELX_ZIL_LWB_FLUSH_VDEVS_DONE_ENTRY(&zio);
	KERNELX_ZIL_COMMIT_RETURN();
	write3_done(r, &d);
	KERNELX_SVC_SENDREPLY_ENTRY(r);
	KERNELX_SVC_SENDREPLY_RETURN();
	KERNELX_SVC_GETREQ_RETURN();
}

static void *serve(void *argument)
{
	emu_request_t r = { (uintptr_t)argument, clients[0], exports[0], paths[0] }, both[2] = { r, r };
	int i = 0;
	svc_poll();
	KERNELX_SVC_QUEUEREQ_ENTRY(&pool, &both[i]);
	while (__atomic_load_n(&serving, __ATOMIC_SEQ_CST)) {
		svc_taken();
		take(1);
		if (queued)
			KERNELX_SVC_QUEUEREQ_ENTRY(&pool, &both[1 - i]);
		write_durably(&both[i], 0);
		i = 1 - i;
		take(-1);
		svc_poll();
		if (think_us) {
			__atomic_add_fetch(&pool.p_asleep, 1, __ATOMIC_SEQ_CST);
			svc_taken();
			usleep(think_us / 2);
			/* It is woken, and has no CPU yet: others may take what it was woken for. The kernel has one of these at a time. */
			__atomic_add_fetch(&pool.p_drowsy, 1, __ATOMIC_SEQ_CST);
			__atomic_sub_fetch(&pool.p_asleep, 1, __ATOMIC_SEQ_CST);
			usleep(think_us / 2);
			__atomic_add_fetch(&pool.p_walkers, 1, __ATOMIC_SEQ_CST);
			__atomic_sub_fetch(&pool.p_drowsy, 1, __ATOMIC_SEQ_CST);
		}
		if (!queued)
			KERNELX_SVC_QUEUEREQ_ENTRY(&pool, &both[i]);
	}
	svc_taken();
	return 0;
}

static void *hang(void *unused)
{
	emu_request_t r = { 77, clients[1], exports[1], paths[1] };
	svc_poll();
	KERNELX_SVC_QUEUEREQ_ENTRY(&pool, &r);
	svc_taken();
	write_durably(&r, 1);
	return unused;
}

static const char *versions[5] = { "4.0", "4.1", "4.2", "3", "4" };
#define X(name, PROBE) #name,
static const char *names3[] = { OPERATIONS3 "null" };
static const char *names4[] = { OPERATIONS4 "sequence", "null" };
#undef X

static void work_all(void)
{
	static truth_t all;
	pthread_t threads[THREADS], hogs[2];
	uint64_t *sum = (uint64_t *)&all;
	pthread_barrier_init(&fast_ones_done, 0, THREADS);
	memset(&all, 0, sizeof all);
	memset(truths, 0, sizeof truths);
	done = 0;
	for (int i = 0; i < 2; i++)
		pthread_create(&hogs[i], 0, hog, 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], 0, run, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], 0);
	__atomic_store_n(&done, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < 2; i++)
		pthread_join(hogs[i], 0);
	for (int t = 0; t < THREADS; t++)
		for (size_t i = 0; i < offsetof(truth_t, in_op) / 8; i++)
			sum[i] += ((uint64_t *)&truths[t])[i];
	for (int v = 0; v < 5; v++) {
		for (int op = 0; op < OPS; op++) {
			const char *name = all.ops[v][op] ? (v == 3 ? names3 : names4)[op] : 0;
			if (!name)
				continue;
			printf("op\t%s\t%s\t%lu\t%lu\t%lu\n", versions[v], name, all.ops[v][op], all.inner[v][op], all.outer[v][op]);
			if (all.errors[v][op])
				printf("error\t%s\t%s\t%lu\n", versions[v], name, all.errors[v][op]);
		}
		for (int i = 0; i < 3; i++)
			if (all.stable[v][i])
				printf("stable\t%s\t%d\t%lu\t%lu\n", versions[v], i, all.stable[v][i], all.stable_bytes[v][i]);
		for (int i = 0; i < 2; i++)
			if (all.bytes[v][i])
				printf("bytes\t%s\t%s\t%lu\n", versions[v], i ? "write" : "read", all.bytes[v][i]);
		if (all.compounds[v])
			printf("compound\t%s\t%lu\t%lu\n", versions[v], all.compounds[v], all.compound_ops[v]);
	}
	for (int i = 0; i < 3; i++)
		printf("client\t%s\t%lu\n", clients[i], all.client[i]);
	for (int i = 0; i < 2; i++)
		printf("export\t%s\t%lu\n", exports[i], all.export[i]);
	printf("requests\t3\t%lu\nrequests\t4\t%lu\n", all.requests[3], all.requests[4]);
	for (int i = 0; i < 3; i++)
		printf("commits\t%d\t%lu\nitx\t%d\t%lu\n", i, all.commits[i], i, all.itx_bytes[i]);
	for (int i = 0; i < 2; i++)
		printf("lwb\t%d\t%lu\t%lu\n", i, all.lwbs[i], all.lwb_bytes[i]);
	printf("syncs\t%lu\nthrottles\t%lu\ntxg_waits\t%lu\nupcalls\t%lu\n", all.syncs, all.throttles, all.txg_waits, all.upcalls);
	for (int i = 0; i < PHASES; i++)
		printf("phase\t%s\t%lu\t%lu\n", phases[i], all.phase[i], all.around[i]);
}

int main(void)
{
	pthread_t threads[THREADS], one;
	uint64_t since = 0;
	char line[256];
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "work %lu", &requests) == 1) {
			only_long = 0;
			work_all();
		} else if (sscanf(line, "commits %lu", &requests) == 1) {
			only_long = 1;
			requests *= EVERY;
			work_all();
		} else if (sscanf(line, "serve %d %d %d", &log_us, &think_us, &queued) == 3) {
			serving = 1;
			full = in_hand = 0;
			since = full_since = WALL;
			for (uintptr_t i = 0; i < THREADS; i++)
				pthread_create(&threads[i], 0, serve, (void *)i);
		} else if (!strcmp(line, "stop\n")) {
			__atomic_store_n(&serving, 0, __ATOMIC_SEQ_CST);
			for (int i = 0; i < THREADS; i++)
				pthread_join(threads[i], 0);
			printf("full\t%lu\t%lu\n", full, WALL - since);
		} else if (!strcmp(line, "hang\n")) {
			answers = hung = 0;
			pthread_create(&one, 0, hang, 0);
			pthread_mutex_lock(&hands);
			while (!hung) {
				pthread_mutex_unlock(&hands);
				usleep(1000);
				pthread_mutex_lock(&hands);
			}
			pthread_mutex_unlock(&hands);
		} else if (!strcmp(line, "release\n")) {
			pthread_mutex_lock(&hands);
			answers = 1;
			pthread_cond_broadcast(&answer);
			pthread_mutex_unlock(&hands);
			pthread_join(one, 0);
		} else {
			return 1;
		}
		printf("end\n");
		fflush(stdout);
	}
	return 0;
}
