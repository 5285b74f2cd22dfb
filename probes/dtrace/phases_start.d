/* The first use makes the types of key and value, and a plain 0 would make one of 32 bits. */
BEGIN
{
	away[(uintptr_t)0] = timestamp; away[(uintptr_t)0] = 0;
	woke[(uintptr_t)0] = timestamp; woke[(uintptr_t)0] = 0;
	back[(uintptr_t)0] = timestamp; back[(uintptr_t)0] = 0;
}

nfsv3*:::op-*-start, nfsv4*:::op-*-start
{
	self->addr = curlwpsinfo->pr_addr;
	self->left = (uint64_t)0;
	self->kind = 0;
	self->runqueue = (uint64_t)0;
	self->log = (uint64_t)0;
	self->disk = (uint64_t)0;
	self->throttle = (uint64_t)0;
	self->upcall = (uint64_t)0;
	self->recall = (uint64_t)0;
	self->reclaim = (uint64_t)0;
	self->lock = (uint64_t)0;
	self->in_log = 0;
	self->in_disk = 0;
	self->in_throttle = 0;
	self->in_upcall = 0;
	self->in_recall = 0;
	self->in_reclaim = 0;
}

