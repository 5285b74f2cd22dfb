/*
 * Slow operations, each in a line as it ends. The script runs only while there is a subscriber. OVER_NS is the latency of its filter.
 * SECRET is a word that no client knows: a path may have a line in it that looks like one of these.
 */
BEGIN
{
	printf("@hello\tslow\n");
}

/* A sign of life while nothing is slow. Once the agent is gone, dtrace ends at this write, because its pipe has no reader. */
profile:::tick-10s
{
	printf("@hello\tslow\n");
}

nfsv4*:::compound-start
{
	self->compound = timestamp;
	self->version = 40 + args[2]->minorversion;
}

nfsv3*:::op-write-start
{
	self->stable = (int)args[2]->stable;
}

nfsv4*:::op-write-start
/self->compound/
{
	self->stable = (int)args[2]->stable;
}

/*if phases*/
/*include phases_start*/
/*end*/
nfsv3*:::op-*-start
{
	self->bytes = (uint64_t)0;
	self->ts = timestamp;
}

nfsv4*:::op-*-start
/self->compound/
{
	self->bytes = (uint64_t)0;
	self->ts = timestamp;
}

nfsv3*:::op-*-done, nfsv4*:::op-*-done
/self->ts/
{
	this->d = timestamp - self->ts;
}

/*if phases*/
/*include phases*/
/*end*/
nfsv3*:::op-read-done
/self->ts && args[2]->status == 0/
{
	self->bytes = args[2]->res_u.ok.count;
}

nfsv3*:::op-write-done
/self->ts && args[2]->status == 0/
{
	self->bytes = args[2]->res_u.ok.count;
}

nfsv4*:::op-read-done
/self->ts && args[2]->status == 0/
{
	self->bytes = args[2]->data_len;
}

nfsv4*:::op-write-done
/self->ts && args[2]->status == 0/
{
	self->bytes = args[2]->count;
}

/*each v3*/
nfsv3*:::op-$OP-done
/self->ts && this->d > OVER_NS/
{
	printf("@slow\tSECRET\t%d\t3\t%s\t%d\t%d\t%d\t%d\t%s\t", walltimestamp, probename, this->d, (int)args[2]->status, self->bytes, self->stable, args[0]->ci_remote);
/*if phases*/
	printf("%d,%d,%d,%d,%d,%d,%d,%d", self->runqueue, self->log, self->disk, self->throttle, self->upcall, self->recall, self->reclaim, self->lock);
/*end*/
/*if exports*/
	printf("\t%d\t%s\t%s\n", strlen(args[1]->noi_shrpath), args[1]->noi_shrpath, args[1]->noi_curpath);
/*end*/
/*if no-exports*/
	printf("\t0\t\t%s\n", args[1]->noi_curpath);
/*end*/
}

/*end*/
/*each v4*/
nfsv4*:::op-$OP-done
/self->ts && this->d > OVER_NS/
{
	printf("@slow\tSECRET\t%d\t%d\t%s\t%d\t%d\t%d\t%d\t%s\t", walltimestamp, self->version, probename, this->d, (int)args[2]->status, self->bytes, self->stable, args[0]->ci_remote);
/*if phases*/
	printf("%d,%d,%d,%d,%d,%d,%d,%d", self->runqueue, self->log, self->disk, self->throttle, self->upcall, self->recall, self->reclaim, self->lock);
/*end*/
/*if exports*/
	printf("\t%d\t%s\t%s\n", strlen(args[1]->noi_shrpath), args[1]->noi_shrpath, args[1]->noi_curpath);
/*end*/
/*if no-exports*/
	printf("\t0\t\t%s\n", args[1]->noi_curpath);
/*end*/
}

/*end*/
nfsv3*:::op-*-done, nfsv4*:::op-*-done
/self->ts/
{
/*if phases*/
/*include phases_end*/
/*end*/
	self->ts = 0;
	self->bytes = 0;
	self->stable = 0;
}

nfsv4*:::compound-done
/self->compound/
{
	self->compound = 0;
	self->version = 0;
}
