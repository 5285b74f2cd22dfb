/*
 * Block devices: requests from their issue to their completion. Both have the same buffer, on different threads.
 */
BEGIN
{
	printf("@hello\tio\n");
	issued[(uintptr_t)0] = timestamp; issued[(uintptr_t)0] = 0;
}

/* Requests of NFS clients come by here, too. */
io:::start
/args[1]->dev_name != "nfs"/
{
	issued[arg0] = timestamp;
}

io:::done
/issued[arg0]/
{
	this->d = timestamp - issued[arg0];
	this->read = args[0]->b_flags & B_READ ? 1 : 0;
	@device[args[1]->dev_statname, this->read] = lquantize(TIME_BUCKET(this->d), 0, TIME_BUCKETS, 1);
	@device_ns[args[1]->dev_statname, this->read] = sum(this->d);
	@bytes[args[1]->dev_statname, this->read] = sum(args[0]->b_bcount);
	issued[arg0] = 0;
}

/*include frame*/
profile:::tick-10s, syscall::kill:entry
/this->due/
{
	printf("@begin\t%d\n", timestamp);
	printa("@h\tdevice\t%s\t%d\t%@d\n", @device);
	printa("@c\tdevice_ns\t%s\t%d\t%@d\n", @device_ns);
	printa("@c\tbytes\t%s\t%d\t%@d\n", @bytes);
	printf("@end\n");
}
