/*
 * Operations: how long each takes, what it was asked and answered, who asked, and what its thread waited for meanwhile.
 * Start and done of an operation fire on the same thread, and operations do not nest.
 */
BEGIN
{
	printf("@hello\tnfs\n");
/*if phases*/
	/* The first use makes the types of key and value, and a plain 0 would make one of 32 bits. */
	away[(uintptr_t)0] = timestamp; away[(uintptr_t)0] = 0;
	woke[(uintptr_t)0] = timestamp; woke[(uintptr_t)0] = 0;
	back[(uintptr_t)0] = timestamp; back[(uintptr_t)0] = 0;
/*end*/
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
nfsv3*:::op-*-start, nfsv4*:::op-*-start
{
	self->addr = curlwpsinfo->pr_addr;
	self->left = (uint64_t)0;
	self->kind = 0;
	self->runqueue = (uint64_t)0;
	self->log = (uint64_t)0;
	self->disk = (uint64_t)0;
	self->throttle = (uint64_t)0;
	self->lock = (uint64_t)0;
	self->in_log = 0;
	self->in_disk = 0;
	self->in_throttle = 0;
}

/*end*/
/* Its time begins behind all that is done at its start, and ends before all that is done at its end. */
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

/*if phases*/
/*if zfs*/
fbt:zfs:zil_commit:entry /self->ts/ { self->in_log++; }
fbt:zfs:zil_commit:return /self->in_log/ { self->in_log--; }
fbt:zfs:zio_wait:entry /self->ts/ { self->in_disk++; }
fbt:zfs:zio_wait:return /self->in_disk/ { self->in_disk--; }
fbt:zfs:dmu_tx_wait:entry /self->ts/ { self->in_throttle++; }
fbt:zfs:dmu_tx_wait:return /self->in_throttle/ { self->in_throttle--; }

/*end*/
/*
 * A thread of an operation leaves its CPU, and later comes back: it is then the next one of another thread that leaves. What it was
 * away for is added up when it leaves again, or its operation ends.
 */
sched:::off-cpu
{
	this->now = timestamp;
}

sched:::wakeup
/away[args[0]->pr_addr]/
{
	woke[args[0]->pr_addr] = timestamp;
}

sched:::off-cpu
/away[args[0]->pr_addr]/
{
	back[args[0]->pr_addr] = this->now;
}

sched:::off-cpu, nfsv3*:::op-*-done, nfsv4*:::op-*-done
/self->left/
{
	this->back = back[self->addr] > self->left ? back[self->addr] : self->left;
	this->woke = woke[self->addr] > self->left ? woke[self->addr] : this->back;
	this->ready = self->kind == 1 ? self->left : this->woke < this->back ? this->woke : this->back;
	this->asleep = this->ready - self->left;
	self->runqueue += this->back - this->ready;
	self->log += self->kind == 2 ? this->asleep : 0;
	self->disk += self->kind == 3 ? this->asleep : 0;
	self->lock += self->kind == 4 ? this->asleep : 0;
	self->throttle += self->kind == 5 ? this->asleep : 0;
	self->left = 0;
	away[self->addr] = 0;
	woke[self->addr] = 0;
	back[self->addr] = 0;
}

/* State 1 is asleep. Whoever leaves in another one waits for a CPU. */
sched:::off-cpu
/self->ts/
{
	self->left = this->now;
	self->kind = curlwpsinfo->pr_state != 1 ? 1 : self->in_log ? 2 : self->in_throttle ? 5 : self->in_disk ? 3 : 4;
	away[self->addr] = 1;
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

/* Last, because these end the operation. */
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
	@lock_ns[self->version, probename] = sum(self->lock);
	self->addr = 0;
	self->runqueue = 0;
	self->log = 0;
	self->disk = 0;
	self->throttle = 0;
	self->lock = 0;
	self->kind = 0;
	self->in_log = 0;
	self->in_disk = 0;
	self->in_throttle = 0;
/*end*/
	self->ts = 0;
	self->stable = 0;
}

profile:::tick-1s
{
	printf("@begin\t%d\n", timestamp);
	printa("@h\top\t%d\t%s\t%@d\n", @op);
	printa("@c\top_ns\t%d\t%s\t%@d\n", @op_ns);
/*if phases*/
	printa("@c\trunqueue_ns\t%d\t%s\t%@d\n", @runqueue_ns);
	printa("@c\tlog_ns\t%d\t%s\t%@d\n", @log_ns);
	printa("@c\tdisk_ns\t%d\t%s\t%@d\n", @disk_ns);
	printa("@c\tthrottle_ns\t%d\t%s\t%@d\n", @throttle_ns);
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
