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

fbt:rpcmod:svc_poll:entry
/self->pool == 1/
{
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
	@busy = sum(1);
}

fbt:rpcmod:svc_getreq:entry
/queued[arg1]/
{
	queued[arg1] = 0;
}

fbt:nfssrv:rfs_dispatch:entry
/self->taken/
{
	self->dispatched = timestamp;
	self->vers = ((struct svc_req *)arg0)->rq_vers;
}

fbt:rpcmod:svc_sendreply:entry
/self->dispatched/
{
	self->reply = timestamp;
}

fbt:rpcmod:svc_sendreply:return
/self->reply/
{
	self->replied += timestamp - self->reply;
	self->reply = 0;
}

/* A request whose arrival nobody saw has a place among the threads' work, and none among the requests. */
fbt:rpcmod:svc_getreq:return
/self->dispatched && self->clock/
{
	this->d = timestamp - self->taken + self->queue;
	@rpc[self->vers] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@rpc_ns[self->vers] = sum(this->d);
	@queue = lquantize(TIME_BUCKET(self->queue), 0, TIME_BUCKETS, 1);
	@queue_ns[self->vers] = sum(self->queue);
	@receive_ns[self->vers] = sum(self->dispatched - self->taken);
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
	self->taken = 0;
	self->queue = 0;
	self->clock = 0;
	self->dispatched = 0;
	self->vers = 0;
	self->replied = 0;
}

profile:::tick-1s
{
	printf("@begin\t%d\n", timestamp);
	printa("@h\trpc\t%d\t%@d\n", @rpc);
	printa("@c\trpc_ns\t%d\t%@d\n", @rpc_ns);
	printa("@h\tqueue\t%@d\n", @queue);
	printa("@c\tqueue_ns\t%d\t%@d\n", @queue_ns);
	printa("@c\treceive_ns\t%d\t%@d\n", @receive_ns);
	printa("@c\treply_ns\t%d\t%@d\n", @reply_ns);
	printa("@c\tno_clock\t%@d\n", @no_clock);
	printa("@g\tbusy\t%@d\n", @busy);
	printa("@c\tbusy_ns\t%@d\n", @busy_ns);
	printf("@g\tthreads\t%d\n", threads);
	printf("@g\tlimit\t%d\n", limit);
	printf("@end\n");
}
