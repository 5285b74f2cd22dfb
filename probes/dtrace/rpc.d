/*
 * Requests and threads: from a request's arrival in rpcmod until its reply is sent, and the state of the pool of NFS threads.
 * The queue knows a request by its message; everything behind it happens on one thread.
 */
BEGIN
{
	printf("@hello\trpc\n");
	queued[(uintptr_t)0] = timestamp; queued[(uintptr_t)0] = 0;
	threads = 0;
	limit = 0;
/*if idle*/
	full = timestamp; full = 0;
/*end*/
}

/* A transport that is full refuses a message, and gets it again: the last time counts. */
fbt:rpcmod:svc_queuereq:entry
{
	queued[arg1] = timestamp;
}

/* Fields of the pool are read where it is in use. Pool 1 serves NFS. */
fbt:rpcmod:svc_poll:entry
{
	self->pool = ((SVCPOOL *)arg0)->p_id;
}

/*if idle*/
/* A thread that looks for work is free. Another one may end the time without a free thread at the same moment. */
fbt:rpcmod:svc_poll:entry
/self->pool == 1/
{
	this->since = full;
	full = 0;
}

fbt:rpcmod:svc_poll:entry
/self->pool == 1 && this->since && this->since < timestamp/
{
	@full_ns = sum(timestamp - this->since);
}

/*end*/

fbt:rpcmod:svc_poll:entry
/self->pool == 1/
{
	self->pool_at = arg0;
	threads = ((SVCPOOL *)arg0)->p_threads + ((SVCPOOL *)arg0)->p_detached_threads;
	limit = ((SVCPOOL *)arg0)->p_maxthreads;
}

fbt:rpcmod:svc_getreq:entry
/self->pool == 1/
{
	self->taken = timestamp;
	self->queue = queued[arg1] ? timestamp - queued[arg1] : (uint64_t)0;
	self->clock = queued[arg1] ? 1 : 0;
	self->dispatched = (uint64_t)0;
	self->reply = (uint64_t)0;
	self->replied = (uint64_t)0;
	self->early = (uint64_t)0;
	self->late = (uint64_t)0;
	@busy = sum(1);
}

fbt:rpcmod:svc_getreq:entry
/queued[arg1]/
{
	queued[arg1] = 0;
}

/*
 * Latest request of each thread: the time when the thread took it, in units of 64 ns, and the stage: 1 taken, 2 dispatched, 3 being
 * replied to, 4 done. Of two values of a thread the later one is larger.
 */
fbt:rpcmod:svc_getreq:entry
/self->taken/
{
	self->hand = self->taken / 64 * 16;
	@hand[pid, tid] = max(self->hand + 1);
}

/*if idle*/
/* No thread is free from the moment on when one has taken a request, and none sleeps, was woken or looks for work. */
fbt:rpcmod:svc_getreq:entry
/self->taken/
{
	this->free = ((SVCPOOL *)self->pool_at)->p_asleep + (((SVCPOOL *)self->pool_at)->p_drowsy ? 1 : 0) +
	    ((SVCPOOL *)self->pool_at)->p_walkers;
	full = this->free > 0 ? (uint64_t)0 : full ? full : self->taken;
}

/*end*/
/*if upcalls*/
/* Questions to daemons; those outside of an operation are also counted apart. */
nfsv3*:::op-*-start, nfsv4*:::op-*-start
/self->taken/
{
	self->in_op = 1;
}

nfsv3*:::op-*-done, nfsv4*:::op-*-done
/self->in_op/
{
	self->in_op = 0;
}

fbt:doorfs:door_upcall:entry
/self->taken/
{
	self->asked = timestamp;
	@asks[pid, tid] = max(timestamp / 64 * 2 + 1);
}

fbt:doorfs:door_upcall:return
/self->asked/
{
	this->d = timestamp - self->asked;
	@upcall = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@upcall_ns = sum(this->d);
	@asks[pid, tid] = max(self->asked / 64 * 2 + 2);
	self->early += self->dispatched ? 0 : this->d;
	self->late += self->dispatched && !self->in_op ? this->d : 0;
	self->asked = 0;
}

/*end*/

fbt:nfssrv:rfs_dispatch:entry
/self->taken/
{
	self->dispatched = timestamp;
	@hand[pid, tid] = max(self->hand + 2);
	self->vers = ((struct svc_req *)arg0)->rq_vers;
}

fbt:rpcmod:svc_sendreply:entry
/self->dispatched/
{
	self->reply = timestamp;
	@hand[pid, tid] = max(self->hand + 3);
}

fbt:rpcmod:svc_sendreply:return
/self->reply/
{
	self->replied += timestamp - self->reply;
	self->reply = 0;
}

/* A request whose arrival was not seen counts for the work of the threads, and not among the requests. */
fbt:rpcmod:svc_getreq:return
/self->dispatched && self->clock/
{
	this->d = timestamp - self->taken + self->queue;
	@rpc[self->vers] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@rpc_ns[self->vers] = sum(this->d);
	@queue = lquantize(TIME_BUCKET(self->queue), 0, TIME_BUCKETS, 1);
	@queue_ns[self->vers] = sum(self->queue);
	@receive_ns[self->vers] = sum(self->dispatched - self->taken - self->early);
	@asking_ns[self->vers] = sum(self->early + self->late);
	@reply_ns[self->vers] = sum(self->replied);
}

fbt:rpcmod:svc_getreq:return
/self->dispatched && !self->clock/
{
	@no_clock = count();
}

fbt:rpcmod:svc_getreq:return
/self->taken/
{
	@busy = sum(-1);
	@busy_ns = sum(timestamp - self->taken);
	@hand[pid, tid] = max(self->hand + 4);
	self->hand = 0;
	self->early = 0;
	self->late = 0;
	self->taken = 0;
	self->queue = 0;
	self->clock = 0;
	self->dispatched = 0;
	self->vers = 0;
	self->replied = 0;
}

/*include frame*/
profile:::tick-10s, syscall::kill:entry
/this->due/
{
	printf("@begin\t%d\n", timestamp);
	printa("@h\trpc\t%d\t%@d\n", @rpc);
	printa("@c\trpc_ns\t%d\t%@d\n", @rpc_ns);
	printa("@h\tqueue\t%@d\n", @queue);
	printa("@c\tqueue_ns\t%d\t%@d\n", @queue_ns);
	printa("@c\treceive_ns\t%d\t%@d\n", @receive_ns);
	printa("@c\tasking_ns\t%d\t%@d\n", @asking_ns);
	printa("@c\treply_ns\t%d\t%@d\n", @reply_ns);
/*if upcalls*/
	printa("@h\tupcall\t%@d\n", @upcall);
	printa("@c\tupcall_ns\t%@d\n", @upcall_ns);
	printa("@g\tasks\t%d\t%d\t%@d\n", @asks);
/*end*/
	printa("@g\thand\t%d\t%d\t%@d\n", @hand);
	printa("@c\tno_clock\t%@d\n", @no_clock);
	printa("@g\tbusy\t%@d\n", @busy);
	printa("@c\tbusy_ns\t%@d\n", @busy_ns);
	printf("@g\tthreads\t%d\n", threads);
	printf("@g\tlimit\t%d\n", limit);
/*if idle*/
	printf("@g\tfull\t%d\n", full);
	printa("@c\tfull_ns\t%@d\n", @full_ns);
/*end*/
	printf("@end\n");
}
