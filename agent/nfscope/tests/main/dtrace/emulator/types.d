/* What illumos's kernel and its translators declare, as far as the scripts name it. The emulator has the same structures. */
typedef struct emu_request { uint64_t xid; uintptr_t remote; uintptr_t share; uintptr_t path; } emu_request_t;
typedef struct nfsv3opinfo { uint64_t noi_xid; string noi_curpath; string noi_shrpath; } nfsv3opinfo_t;
typedef struct nfsv4opinfo { uint64_t noi_xid; string noi_curpath; string noi_shrpath; } nfsv4opinfo_t;
typedef struct emu_args { uint64_t offset; } emu_args_t;
typedef struct emu_res { int status; } emu_res_t;
typedef struct READ3args { uint64_t offset; uint32_t count; } READ3args;
typedef struct READ3resok { uint32_t count; int eof; } READ3resok;
typedef struct READ3res { int status; union { READ3resok ok; int fail; } res_u; } READ3res;
typedef struct WRITE3args { uint64_t offset; uint32_t count; int stable; } WRITE3args;
typedef struct WRITE3resok { uint32_t count; int committed; } WRITE3resok;
typedef struct WRITE3res { int status; union { WRITE3resok ok; int fail; } res_u; } WRITE3res;
typedef struct READ4res { int status; int eof; uint32_t data_len; } READ4res;
typedef struct WRITE4args { uint64_t offset; int stable; uint32_t data_len; } WRITE4args;
typedef struct WRITE4res { int status; uint32_t count; int committed; } WRITE4res;
typedef struct COMPOUND4args { uint32_t minorversion; uint32_t array_len; } COMPOUND4args;
typedef struct COMPOUND4res { int status; uint32_t array_len; } COMPOUND4res;

translator conninfo_t < emu_request_t *P > {
	ci_local = "127.0.0.1";
	ci_remote = stringof(P->remote);
	ci_protocol = "ipv4";
};
translator nfsv3opinfo_t < emu_request_t *P > {
	noi_xid = P->xid;
	noi_curpath = stringof(P->path);
	noi_shrpath = stringof(P->share);
};
translator nfsv4opinfo_t < emu_request_t *P > {
	noi_xid = P->xid;
	noi_curpath = stringof(P->path);
	noi_shrpath = stringof(P->share);
};

typedef struct spa { char spa_name[256]; } spa_t;
typedef struct dsl_pool { spa_t *dp_spa; } dsl_pool_t;
typedef struct dmu_tx { dsl_pool_t *tx_pool; } dmu_tx_t;
typedef struct zilog { spa_t *zl_spa; int zl_sync; } zilog_t;
typedef struct lwb { zilog_t *lwb_zilog; int lwb_nused; int lwb_sz; int lwb_slog; } lwb_t;
typedef struct zio { uintptr_t io_private; int io_error; } zio_t;
typedef struct lr { uint64_t lrc_txtype; uint64_t lrc_reclen; uint64_t lrc_txg; uint64_t lrc_seq; } lr_t;
typedef struct lr_write { lr_t lr_common; uint64_t lr_foid; uint64_t lr_offset; uint64_t lr_length; } lr_write_t;
typedef struct itx { int itx_wr_state; lr_t itx_lr; } itx_t;
typedef struct __svcpool { int p_id; int p_threads; int p_detached_threads; int p_maxthreads; int p_asleep; int p_drowsy; int p_walkers; } SVCPOOL;
struct svc_req { uint32_t rq_prog; uint32_t rq_vers; };
