/*
 * Operations: the time of each, its arguments and status, its client, and the waits of its thread.
 * Start and done of an operation fire on the same thread, and operations do not nest.
 */
BEGIN
{
	printf("@hello\tnfs\n");
}

nfsv4*:::compound-start
{
	self->compound = timestamp;
	self->version = 40 + args[2]->minorversion;
}

nfsv4*:::null-start
{
	self->null = timestamp;
}

nfsv3*:::op-write-start
{
	self->stable = (int)args[2]->stable;
	@stable[3, self->stable] = count();
}

nfsv4*:::op-write-start
/self->compound/
{
	self->stable = (int)args[2]->stable;
	@stable[self->version, self->stable] = count();
}

/*if phases*/
/*include phases_start*/
/*end*/
/* Numbers of operations are those of RFC 1813 and RFC 7530, and 0 is NULL, or one that NFSv4.1 added. */
/*each v3*/
nfsv3*:::op-$OP-start { self->op = $NUMBER; }
/*end*/
/*each v4*/
nfsv4*:::op-$OP-start { self->op = $NUMBER; }
/*end*/

/*
 * Latest operation of each thread: the time of its start in units of 64 ns, with its version and number, or with 2047 once it has
 * ended. Of two values of a thread the later one is larger.
 */
nfsv3*:::op-*-start
{
	self->hand = timestamp / 64 * 2048;
	@hand[pid, tid] = max(self->hand + self->op);
}

nfsv4*:::op-*-start
/self->compound/
{
	self->hand = timestamp / 64 * 2048;
	@hand[pid, tid] = max(self->hand + (self->version - 39) * 128 + self->op);
}

/* The time of an operation is without the work of these clauses: it begins behind those of its start, and ends before those of its end. */
nfsv3*:::op-*-start
{
	self->ts = timestamp;
}

nfsv4*:::op-*-start
/self->compound/
{
	self->ts = timestamp;
}

nfsv3*:::op-*-done, nfsv4*:::op-*-done
/self->ts/
{
	this->d = timestamp - self->ts;
}

/* The thread has no operation in hand now. */
nfsv3*:::op-*-done, nfsv4*:::op-*-done
/self->ts/
{
	@hand[pid, tid] = max(self->hand + 2047);
	self->hand = 0;
	self->op = 0;
}

/*if phases*/
/*include phases*/
/* Time at which each thread of an operation left its CPU last, and the cause. */
sched:::off-cpu
/self->ts/
{
	@left[pid, tid] = max(this->now / 64 * 16 + self->kind);
}

/*end*/
/* The arguments of an operation, which a clause may only ask of one probe. */
/*each v3*/
nfsv3*:::op-$OP-done
/self->ts/
{
	@client_ops[args[0]->ci_remote] = count();
	@client_ns[args[0]->ci_remote] = sum(this->d);
/*if exports*/
	@export_ops[args[1]->noi_shrpath] = count();
	@export_ns[args[1]->noi_shrpath] = sum(this->d);
/*end*/
}

nfsv3*:::op-$OP-done
/self->ts && args[2]->status != 0/
{
	@error[3, probename, (int)args[2]->status] = count();
}

/*end*/
/*each v4*/
nfsv4*:::op-$OP-done
/self->ts/
{
	@client_ops[args[0]->ci_remote] = count();
	@client_ns[args[0]->ci_remote] = sum(this->d);
/*if exports*/
	@export_ops[args[1]->noi_shrpath] = count();
	@export_ns[args[1]->noi_shrpath] = sum(this->d);
/*end*/
}

nfsv4*:::op-$OP-done
/self->ts && args[2]->status != 0/
{
	@error[self->version, probename, (int)args[2]->status] = count();
}

/*end*/
nfsv3*:::op-read-done
/self->ts && args[2]->status == 0/
{
	this->n = args[2]->res_u.ok.count;
	@size[3, 0] = lquantize(SIZE_BUCKET(this->n), 0, SIZE_BUCKETS, 1);
	@bytes[3, 0] = sum(this->n);
}

nfsv3*:::op-write-done
/self->ts && args[2]->status == 0/
{
	this->n = args[2]->res_u.ok.count;
	@size[3, 1] = lquantize(SIZE_BUCKET(this->n), 0, SIZE_BUCKETS, 1);
	@bytes[3, 1] = sum(this->n);
	@stable_bytes[3, self->stable] = sum(this->n);
}

nfsv4*:::op-read-done
/self->ts && args[2]->status == 0/
{
	this->n = args[2]->data_len;
	@size[self->version, 0] = lquantize(SIZE_BUCKET(this->n), 0, SIZE_BUCKETS, 1);
	@bytes[self->version, 0] = sum(this->n);
}

nfsv4*:::op-write-done
/self->ts && args[2]->status == 0/
{
	this->n = args[2]->count;
	@size[self->version, 1] = lquantize(SIZE_BUCKET(this->n), 0, SIZE_BUCKETS, 1);
	@bytes[self->version, 1] = sum(this->n);
	@stable_bytes[self->version, self->stable] = sum(this->n);
}

nfsv4*:::compound-done
/self->compound/
{
	this->d = timestamp - self->compound;
	this->n = args[2]->array_len;
	@compound[self->version] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@compound_ns[self->version] = sum(this->d);
	@compound_size[self->version] = lquantize(COUNT_BUCKET(this->n), 0, COUNT_BUCKETS, 1);
	@compound_ops[self->version] = sum(this->n);
	self->compound = 0;
	self->version = 0;
}

nfsv4*:::null-done
/self->null/
{
	this->d = timestamp - self->null;
	@op[4, probename] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@op_ns[4, probename] = sum(this->d);
	self->null = 0;
}

/* These clauses come last, because they end the operation. */
nfsv3*:::op-*-done
/self->ts/
{
	self->version = 3;
}

nfsv3*:::op-*-done, nfsv4*:::op-*-done
/self->ts/
{
	@op[self->version, probename] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@op_ns[self->version, probename] = sum(this->d);
/*if phases*/
	@runqueue_ns[self->version, probename] = sum(self->runqueue);
	@log_ns[self->version, probename] = sum(self->log);
	@disk_ns[self->version, probename] = sum(self->disk);
	@throttle_ns[self->version, probename] = sum(self->throttle);
	@upcall_ns[self->version, probename] = sum(self->upcall);
	@recall_ns[self->version, probename] = sum(self->recall);
	@reclaim_ns[self->version, probename] = sum(self->reclaim);
	@lock_ns[self->version, probename] = sum(self->lock);
/*include phases_end*/
/*end*/
	self->ts = 0;
	self->stable = 0;
}

/*include frame*/
profile:::tick-10s, syscall::kill:entry
/this->due/
{
	printf("@begin\t%d\n", timestamp);
	printa("@g\thand\t%d\t%d\t%@d\n", @hand);
	printa("@h\top\t%d\t%s\t%@d\n", @op);
	printa("@c\top_ns\t%d\t%s\t%@d\n", @op_ns);
/*if phases*/
	printa("@c\trunqueue_ns\t%d\t%s\t%@d\n", @runqueue_ns);
	printa("@c\tlog_ns\t%d\t%s\t%@d\n", @log_ns);
	printa("@c\tdisk_ns\t%d\t%s\t%@d\n", @disk_ns);
	printa("@c\tthrottle_ns\t%d\t%s\t%@d\n", @throttle_ns);
	printa("@c\tupcall_ns\t%d\t%s\t%@d\n", @upcall_ns);
	printa("@c\trecall_ns\t%d\t%s\t%@d\n", @recall_ns);
	printa("@c\treclaim_ns\t%d\t%s\t%@d\n", @reclaim_ns);
	printa("@g\tleft\t%d\t%d\t%@d\n", @left);
	printa("@c\tlock_ns\t%d\t%s\t%@d\n", @lock_ns);
/*end*/
	printa("@c\terror\t%d\t%s\t%d\t%@d\n", @error);
	printa("@c\tstable\t%d\t%d\t%@d\n", @stable);
	printa("@c\tstable_bytes\t%d\t%d\t%@d\n", @stable_bytes);
	printa("@h\tsize\t%d\t%d\t%@d\n", @size);
	printa("@c\tbytes\t%d\t%d\t%@d\n", @bytes);
	printa("@h\tcompound\t%d\t%@d\n", @compound);
	printa("@c\tcompound_ns\t%d\t%@d\n", @compound_ns);
	printa("@h\tcompound_size\t%d\t%@d\n", @compound_size);
	printa("@c\tcompound_ops\t%d\t%@d\n", @compound_ops);
	printa("@c\tclient_ops\t%s\t%@d\n", @client_ops);
	printa("@c\tclient_ns\t%s\t%@d\n", @client_ns);
/*if exports*/
	printa("@c\texport_ops\t%s\t%@d\n", @export_ops);
	printa("@c\texport_ns\t%s\t%@d\n", @export_ns);
/*end*/
	printf("@end\n");
}
