/*if zfs*/
fbt:zfs:zil_commit:entry /self->ts/ { self->in_log++; }
fbt:zfs:zil_commit:return /self->in_log/ { self->in_log--; }
fbt:zfs:zio_wait:entry /self->ts/ { self->in_disk++; }
fbt:zfs:zio_wait:return /self->in_disk/ { self->in_disk--; }
fbt:zfs:dmu_tx_wait:entry /self->ts/ { self->in_throttle++; }
fbt:zfs:dmu_tx_wait:return /self->in_throttle/ { self->in_throttle--; }

/*end*/
/*if upcalls*/
/* Questions of the kernel to mountd, nfsmapid and idmap. It asks gssd by RPC over the loopback: that wait counts as lock. */
fbt:doorfs:door_upcall:entry /self->ts/ { self->in_upcall++; }
fbt:doorfs:door_upcall:return /self->in_upcall/ { self->in_upcall--; }

/*end*/
/*if recalls*/
fbt:nfssrv:rfs4_check_delegated_byfp:entry, fbt:nfssrv:rfs4_dbe_twait:entry /self->ts/ { self->in_recall++; }
fbt:nfssrv:rfs4_check_delegated_byfp:return, fbt:nfssrv:rfs4_dbe_twait:return /self->in_recall/ { self->in_recall--; }

/*end*/
/*if reclaim*/
fbt::page_create_throttle:entry /self->ts/ { self->in_reclaim++; }
fbt::page_create_throttle:return /self->in_reclaim/ { self->in_reclaim--; }

/*end*/
/*
 * A thread of an operation leaves its CPU, and later comes back: another thread then leaves, and names it as the next one. The time
 * away is added up when the thread leaves again, or its operation ends. Its entries in the arrays stay until then: away is 1 while the
 * thread is away, and 2 once it is back.
 */
sched:::off-cpu
{
	this->now = timestamp;
}

sched:::wakeup
/away[args[0]->pr_addr] == 1/
{
	woke[args[0]->pr_addr] = timestamp;
}

sched:::off-cpu
/away[args[0]->pr_addr] == 1/
{
	back[args[0]->pr_addr] = this->now;
	away[args[0]->pr_addr] = 2;
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
	self->upcall += self->kind == 6 ? this->asleep : 0;
	self->recall += self->kind == 7 ? this->asleep : 0;
	self->reclaim += self->kind == 8 ? this->asleep : 0;
}

nfsv3*:::op-*-done, nfsv4*:::op-*-done
/self->left/
{
	self->left = 0;
	away[self->addr] = 0;
	woke[self->addr] = 0;
	back[self->addr] = 0;
}

/* State 1 is asleep. A thread that leaves in another state waits for a CPU. Reclaim comes first: it writes to log and disk itself. */
sched:::off-cpu
/self->ts/
{
	self->left = this->now;
	self->kind = curlwpsinfo->pr_state != 1 ? 1 : self->in_reclaim ? 8 : self->in_recall ? 7 : self->in_upcall ? 6 :
	    self->in_log ? 2 : self->in_throttle ? 5 : self->in_disk ? 3 : 4;
	away[self->addr] = 1;
}

