/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * State that the server grants to NFSv4 clients, and how long they take to return it after a recall.
 *
 * Cost: one short program when a delegation or a layout is granted, recalled, returned or freed, and two each time that
 * the laundromat runs. Nothing at any other request.
 *
 * A recall is identified by its state's id: the return carries no other name. A delegation that is recalled once more
 * before it is returned (for reading, then for writing) is two recalls and one wait.
 */
#ifndef NFSCOPE_LIB_NFS4_STATE_H
#define NFSCOPE_LIB_NFS4_STATE_H

#define EEXIST 17
#define MOST_ERRNO 4095 /* include/linux/err.h */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STATE_KINDS);
	__type(key, enum state_kind);
	__type(value, struct state_row);
} nfsd_state SEC(".maps");

/* Entries take memory only while they are in use, where the kernel can do that. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, STATE_RECALLS);
	__type(key, struct state_key);
	__type(value, struct state_recall);
} nfsd_recalls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, STATE_CLIENTS);
	__type(key, struct state_client_key);
	__type(value, struct state_client);
} nfsd_holder SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct state_laundry);
} nfsd_laundry SEC(".maps");

static __always_inline bool is_measured(struct net *net)
{
	return !table_shape.netns || load32(ADDRESS(net->ns.inum)) == table_shape.netns;
}

/* Client that holds a state; 0 if it belongs to the server of another network namespace. */
static __always_inline struct nfs4_client *holder_of(struct nfs4_stid *s)
{
	struct nfs4_client *c = (void *)load64(ADDRESS(s->sc_client));

	return is_measured((void *)load64(ADDRESS(c->net))) ? c : 0;
}

/* State that contains this id. */
static __always_inline struct nfs4_stid *stid_of(void *stateid, enum number slot)
{
	u64 at = as_number((u64)stateid, slot);

	return (void *)(at - bpf_core_field_offset(struct nfs4_stid, sc_stateid));
}

/* Copies the identity of a state, which stands behind its generation: 4 and 12 bytes, in the kernel as in RFC 8881. */
static __always_inline void key_at(const void *stateid, struct state_key *key)
{
	bpf_probe_read_kernel(key, sizeof(*key), stateid + sizeof(u32));
}

static __always_inline void key_of(struct nfs4_stid *s, struct state_key *key)
{
	key_at(ADDRESS(s->sc_stateid), key);
}

static __always_inline struct state_client *holder_row(const u64 client[2])
{
	struct state_client_key key = { .client = { client[0], client[1] } };
	struct state_client none = {}, *row = bpf_map_lookup_elem(&nfsd_holder, &key);

	if (row)
		return row;
	bpf_map_update_elem(&nfsd_holder, &key, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&nfsd_holder, &key);
}

static __always_inline void granted(struct nfs4_stid *s, enum state_kind kind, u32 type)
{
	struct nfs4_client *c = holder_of(s);
	struct state_row *row = row_of(&nfsd_state, kind);
	struct state_client *holder;
	u64 client[2];

	if (!c || !row || type >= 3)
		return;
	add(&row->granted[type], 1);
	if (kind != STATE_LAYOUT)
		return;
	address_at((void *)ADDRESS(c->cl_addr), client);
	holder = holder_row(client);
	if (holder)
		add(&holder->layouts, 1);
}

static __always_inline void recall(struct nfs4_stid *s, enum state_kind kind)
{
	struct nfs4_client *c = holder_of(s);
	struct state_row *row = row_of(&nfsd_state, kind);
	struct state_recall r = { .kind = kind };
	struct state_client *holder;
	struct state_key key;
	long error;

	if (!c || !row)
		return;
	add(&row->recalls, 1);
	r.since = bpf_ktime_get_ns();
	address_at((void *)ADDRESS(c->cl_addr), r.client);
	key_of(s, &key);
	error = bpf_map_update_elem(&nfsd_recalls, &key, &r, BPF_NOEXIST);
	if (error && error != -EEXIST)
		count(EV_RECALL_FULL);
	if (kind != STATE_DELEGATION)
		return;
	holder = holder_row(r.client);
	if (holder)
		add(&holder->recalls, 1);
}

/* A recall has ended, if there was one: the state was returned, or taken away. */
static __always_inline void recall_over(struct state_key *key, bool taken)
{
	struct state_recall *known = bpf_map_lookup_elem(&nfsd_recalls, key), r;
	struct state_client *holder;
	struct state_row *row;
	u64 ns;

	if (!known)
		return;
	r = *known;
	/* Another thread may have seen the recall end in another way. */
	if (bpf_map_delete_elem(&nfsd_recalls, key))
		return;
	row = row_of(&nfsd_state, r.kind);
	ns = elapsed(r.since, bpf_ktime_get_ns());
	if (row)
		time_hist_add(taken || r.failed ? &row->taken : &row->returned, ns);
	if (r.kind != STATE_DELEGATION)
		return;
	holder = holder_row(r.client);
	if (!holder)
		return;
	add(&holder->ended, 1);
	add(&holder->ended_ns, ns);
}

/* Delegations. */

TP(nfsd_deleg_read)
int PROGRAM(nfsd_deleg_r, void *stateid)
{
	granted(stid_of(stateid, IN_DELEG_R), STATE_DELEGATION, 0);
}

TP(nfsd_deleg_write)
int PROGRAM(nfsd_deleg_w, void *stateid)
{
	granted(stid_of(stateid, IN_DELEG_W), STATE_DELEGATION, 1);
}

/* From 6.19 on clients may ask for delegations of directories. The result is a delegation, which begins with its state,
 * or 0, or an error as a pointer. */
SEC("fexit/nfsd_get_dir_deleg")
int PROGRAM(nfsd_deleg_dir, void *state, void *asked, void *file, void *delegation)
{
	u64 s = as_number((u64)delegation, IN_DELEG_DIR);

	if (s && s < (u64)-MOST_ERRNO)
		granted((void *)s, STATE_DELEGATION, 2);
}

/* A client returns a delegation. The hook is not the end of the function, by which the delegation may be freed. The
 * thread's record names the server. */
TP(nfsd_deleg_return)
int PROGRAM(nfsd_deleg_back, void *stateid)
{
	struct request_record *r = request_get();
	struct state_row *row = row_of(&nfsd_state, STATE_DELEGATION);
	struct state_key key;

	if (!row || (r && r->server == SERVER_ELSEWHERE))
		return;
	add(&row->ended, 1);
	key_at((void *)as_number((u64)stateid, IN_DELEG_BACK), &key);
	recall_over(&key, false);
}

TP(nfsd_cb_recall)
int PROGRAM(nfsd_deleg_ask, void *stid)
{
	recall((void *)as_number((u64)stid, IN_DELEG_ASK), STATE_DELEGATION);
}

TP(nfsd_stid_revoke)
int PROGRAM(nfsd_deleg_take, void *stid)
{
	struct nfs4_stid *s = (void *)as_number((u64)stid, IN_DELEG_TAKE);
	struct nfs4_client *c = holder_of(s);
	struct state_row *row = row_of(&nfsd_state, STATE_DELEGATION);
	struct state_client *holder;
	struct state_key key;
	u64 client[2];

	if (!c || !row)
		return;
	add(&row->forfeited, 1);
	address_at((void *)ADDRESS(c->cl_addr), client);
	holder = holder_row(client);
	if (holder)
		add(&holder->forfeited, 1);
	key_of(s, &key);
	recall_over(&key, true);
}

/* The kernel frees a delegation, for example with its client: the client does not return it any more. */
SEC("fentry/nfs4_free_deleg")
int PROGRAM(nfsd_deleg_free, void *stid)
{
	struct state_key key;

	key_of((void *)as_number((u64)stid, IN_DELEG_FREE), &key);
	recall_over(&key, true);
}

/* Layouts: parts of a file that a client reads and writes at the storage itself. */

TP(nfsd_layoutstate_alloc)
int PROGRAM(nfsd_layout_new, void *stateid)
{
	granted(stid_of(stateid, IN_LAYOUT_NEW), STATE_LAYOUT, 0);
}

TP(nfsd_layoutstate_free)
int PROGRAM(nfsd_layout_end, void *stateid)
{
	struct state_row *row = row_of(&nfsd_state, STATE_LAYOUT);

	if (row && holder_of(stid_of(stateid, IN_LAYOUT_END)))
		add(&row->ended, 1);
}

TP(nfsd_layout_recall)
int PROGRAM(nfsd_layout_ask, void *stateid)
{
	recall(stid_of(stateid, IN_LAYOUT_ASK), STATE_LAYOUT);
}

/*
 * The client refused the recall of a layout, or did not return it in two leases (nfsd4_cb_layout_done()): the server
 * keeps the client from the storage.
 */
TP(nfsd_layout_recall_fail)
int PROGRAM(nfsd_layout_out, void *stateid)
{
	struct nfs4_stid *s = stid_of(stateid, IN_LAYOUT_OUT);
	struct state_row *row = row_of(&nfsd_state, STATE_LAYOUT);
	struct state_recall *r;
	struct state_key key;

	if (!row || !holder_of(s))
		return;
	add(&row->forfeited, 1);
	key_of(s, &key);
	r = bpf_map_lookup_elem(&nfsd_recalls, &key);
	if (r)
		r->failed = 1;
}

/*
 * The server takes the rest of a recalled layout. From a client that it expires it has taken all before
 * (__destroy_client()), and that client can return nothing then.
 */
TP(nfsd_layout_recall_release)
int PROGRAM(nfsd_layout_got, void *stateid)
{
	struct nfs4_stid *s = stid_of(stateid, IN_LAYOUT_GOT);
	struct nfs4_layout_stateid *l = (void *)s - bpf_core_field_offset(struct nfs4_layout_stateid, ls_stid);
	struct nfs4_client *c = (void *)load64(ADDRESS(s->sc_client));
	bool is_left = load64(ADDRESS(l->ls_layouts.next)) != (u64)ADDRESS(l->ls_layouts);
	struct state_key key;

	key_of(s, &key);
	recall_over(&key, is_left || !load64(ADDRESS(c->cl_time)));
}

/* The laundromat ends leases and takes back delegations, at intervals. */

static __always_inline struct state_laundry *laundry_of(void *work, enum number slot)
{
	u64 at = as_number((u64)work, slot);
	struct nfsd_net *nn = (void *)(at - bpf_core_field_offset(struct nfsd_net, laundromat_work.work));
	struct cache_detail *cache = (void *)load64(ADDRESS(nn->svc_export_cache));

	return is_measured((void *)load64(ADDRESS(cache->net))) ? row_of(&nfsd_laundry, 0) : 0;
}

SEC("fentry/laundromat_main")
int PROGRAM(nfsd_launder, void *work)
{
	struct state_laundry *l = laundry_of(work, IN_LAUNDER);

	if (l)
		l->begun = bpf_ktime_get_ns();
}

SEC("fexit/laundromat_main")
int PROGRAM(nfsd_laundered, void *work)
{
	struct state_laundry *l = laundry_of(work, IN_LAUNDERED);

	if (l)
		l->ended = bpf_ktime_get_ns();
}

#endif
