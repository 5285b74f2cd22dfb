/*
 * The intent log of ZFS: waits of threads for it, its blocks from issue until they are durable, and the changes in them. A block is
 * issued and done on different threads, and known by its address.
 */
BEGIN
{
	printf("@hello\tzil\n");
	issued[(uintptr_t)0] = timestamp; issued[(uintptr_t)0] = 0;
	written[(uintptr_t)0] = timestamp; written[(uintptr_t)0] = 0;
}

/* zl_sync: 0 standard, 1 always, 2 disabled. */
fbt:zfs:zil_commit:entry
{
	self->zilog = arg0;
	self->commit = timestamp;
	@commits[stringof(((zilog_t *)arg0)->zl_spa->spa_name), (int)((zilog_t *)arg0)->zl_sync] = count();
}

fbt:zfs:zil_commit:entry
/((zilog_t *)arg0)->zl_sync == 2/
{
	self->commit = 0;
	self->zilog = 0;
}

fbt:zfs:zil_commit:return
/self->commit/
{
	this->d = timestamp - self->commit;
	@wait[stringof(((zilog_t *)self->zilog)->zl_spa->spa_name)] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@wait_ns[stringof(((zilog_t *)self->zilog)->zl_spa->spa_name)] = sum(this->d);
	self->commit = 0;
	self->zilog = 0;
}

/* A commit that waits for a whole transaction group instead of the log. */
fbt:zfs:txg_wait_synced:entry
/self->commit/
{
	@txg_waits[stringof(((zilog_t *)self->zilog)->zl_spa->spa_name)] = count();
}

/* The used part of a block is written, in units of 4096 bytes. */
fbt:zfs:zil_lwb_write_issue:entry
{
	issued[arg1] = timestamp;
	this->n = (((lwb_t *)arg1)->lwb_nused + 4095) / 4096 * 4096;
	@lwb_bytes[stringof(((zilog_t *)arg0)->zl_spa->spa_name), (int)((lwb_t *)arg1)->lwb_slog] = sum(this->n);
	/* The newest wins: the lowest bit of the latest time. */
	@separate[stringof(((zilog_t *)arg0)->zl_spa->spa_name)] = max(timestamp * 2 + (((lwb_t *)arg1)->lwb_slog ? 1 : 0));
}

fbt:zfs:zil_lwb_write_done:entry
/issued[(uintptr_t)((zio_t *)arg0)->io_private]/
{
	this->lwb = (lwb_t *)((zio_t *)arg0)->io_private;
	this->d = timestamp - issued[(uintptr_t)this->lwb];
	written[(uintptr_t)this->lwb] = timestamp;
	@write[stringof(this->lwb->lwb_zilog->zl_spa->spa_name), (int)this->lwb->lwb_slog] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@write_ns[stringof(this->lwb->lwb_zilog->zl_spa->spa_name), (int)this->lwb->lwb_slog] = sum(this->d);
}

fbt:zfs:zil_lwb_flush_vdevs_done:entry
/written[(uintptr_t)((zio_t *)arg0)->io_private]/
{
	this->lwb = (lwb_t *)((zio_t *)arg0)->io_private;
	this->d = timestamp - written[(uintptr_t)this->lwb];
	@flush[stringof(this->lwb->lwb_zilog->zl_spa->spa_name), (int)this->lwb->lwb_slog] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@flush_ns[stringof(this->lwb->lwb_zilog->zl_spa->spa_name), (int)this->lwb->lwb_slog] = sum(this->d);
	written[(uintptr_t)this->lwb] = 0;
}

fbt:zfs:zil_lwb_flush_vdevs_done:entry
/issued[(uintptr_t)((zio_t *)arg0)->io_private]/
{
	this->lwb = (lwb_t *)((zio_t *)arg0)->io_private;
	this->d = timestamp - issued[(uintptr_t)this->lwb];
	@block[stringof(this->lwb->lwb_zilog->zl_spa->spa_name)] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@block_ns[stringof(this->lwb->lwb_zilog->zl_spa->spa_name)] = sum(this->d);
	issued[(uintptr_t)this->lwb] = 0;
}

/* Record type 9 is a write. itx_wr_state: 0 indirect, 1 copied, 2 to be copied. */
sdt:zfs::zil-process-commit-itx, sdt:zfs::zil-process-normal-itx
/((itx_t *)arg1)->itx_lr.lrc_txtype == 9/
{
	this->w = (lr_write_t *)&((itx_t *)arg1)->itx_lr;
	@itx[stringof(((zilog_t *)arg0)->zl_spa->spa_name), (int)((itx_t *)arg1)->itx_wr_state] = sum(this->w->lr_length);
}

/*include frame*/
profile:::tick-10s, syscall::kill:entry
/this->due/
{
	printf("@begin\t%d\n", timestamp);
	printa("@h\twait\t%s\t%@d\n", @wait);
	printa("@c\twait_ns\t%s\t%@d\n", @wait_ns);
	printa("@c\tcommits\t%s\t%d\t%@d\n", @commits);
	printa("@c\ttxg_waits\t%s\t%@d\n", @txg_waits);
	printa("@c\tlwb_bytes\t%s\t%d\t%@d\n", @lwb_bytes);
	printa("@g\tseparate\t%s\t%@d\n", @separate);
	printa("@h\twrite\t%s\t%d\t%@d\n", @write);
	printa("@c\twrite_ns\t%s\t%d\t%@d\n", @write_ns);
	printa("@h\tflush\t%s\t%d\t%@d\n", @flush);
	printa("@c\tflush_ns\t%s\t%d\t%@d\n", @flush_ns);
	printa("@h\tblock\t%s\t%@d\n", @block);
	printa("@c\tblock_ns\t%s\t%@d\n", @block_ns);
	printa("@c\titx\t%s\t%d\t%@d\n", @itx);
	printf("@end\n");
}
