/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * recall: how often a server asks this host, its client, to return a delegation.
 *
 * Cost: one short program at each recall. A probe of its own because the hook comes with NFSv4, and mounts over NFSv3
 * need no NFSv4.
 */
#include "lib/kernel.h"
#include "lib/tables.h"

/* Recalls by the device number of the mount's super block; 0 for a file that this host does not know (any more). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, u32);
	__type(value, u64);
} recall_dev SEC(".maps");

TP(nfs4_cb_recall)
int PROGRAM(recall_asked, struct nfs_client *from, void *handle, struct inode *inode)
{
	u32 dev = inode ? BPF_CORE_READ(inode, i_sb, s_dev) : 0;
	u64 zero = 0, *n;

	bpf_map_update_elem(&recall_dev, &dev, &zero, BPF_NOEXIST);
	n = bpf_map_lookup_elem(&recall_dev, &dev);
	if (n)
		add(n, 1);
}

char LICENSE[] SEC("license") = "GPL";
