/*
 * Transaction groups of ZFS: how long one takes to be written out, and how long writers are held back because too much is unwritten.
 */
BEGIN
{
	printf("@hello\ttxg\n");
}

fbt:zfs:spa_sync:entry
{
	self->sync = timestamp;
	self->spa = arg0;
}

fbt:zfs:spa_sync:return
/self->sync/
{
	this->d = timestamp - self->sync;
	@sync[stringof(((spa_t *)self->spa)->spa_name)] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@sync_ns[stringof(((spa_t *)self->spa)->spa_name)] = sum(this->d);
	self->sync = 0;
	self->spa = 0;
}

fbt:zfs:dmu_tx_wait:entry
{
	self->wait = timestamp;
	self->pool = (uintptr_t)((dmu_tx_t *)arg0)->tx_pool;
}

fbt:zfs:dmu_tx_wait:return
/self->wait/
{
	this->d = timestamp - self->wait;
	@throttle[stringof(((dsl_pool_t *)self->pool)->dp_spa->spa_name)] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@throttle_ns[stringof(((dsl_pool_t *)self->pool)->dp_spa->spa_name)] = sum(this->d);
	self->wait = 0;
	self->pool = 0;
}

/*include frame*/
profile:::tick-10s, syscall::kill:entry
/this->due/
{
	printf("@begin\t%d\n", timestamp);
	printa("@h\tsync\t%s\t%@d\n", @sync);
	printa("@c\tsync_ns\t%s\t%@d\n", @sync_ns);
	printa("@h\tthrottle\t%s\t%@d\n", @throttle);
	printa("@c\tthrottle_ns\t%s\t%@d\n", @throttle_ns);
	printf("@end\n");
}
