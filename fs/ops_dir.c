/* SPDX-License-Identifier: MIT
 * Requests that list directories. */
#include "ops.h"
#include "transport.h"

void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fs *fs = fuse_req_userdata(req);
	(void)ino;
	if (fs->no_opendir) {
		fuse_reply_err(req, ENOSYS);
		return;
	}
	fi->keep_cache = 1;
	fi->cache_readdir = 1;
	fuse_reply_open(req, fi);
}

struct listing {
	fuse_req_t req;
	struct pf_pool *pool;
	char *buf;
	size_t used, cap;
	bool plus;
};

static bool is_dot(const struct pf_dirent *d)
{
	return d->name[0] == '.' && (d->len == 1 || (d->len == 2 && d->name[1] == '.'));
}

static bool add_plain(struct listing *l, const char *name, const struct pf_dirent *d)
{
	struct stat st = { .st_ino = d->ino, .st_mode = d->dtype << 12 };
	size_t room = l->cap - l->used;
	size_t need = fuse_add_direntry(l->req, l->buf + l->used, room, name, &st, (off_t)d->cookie);
	if (need > room)
		return false;
	l->used += need;
	return true;
}

static bool add_plus(struct listing *l, const char *name, const struct pf_dirent *d)
{
	struct fuse_entry_param e = { .attr = { .st_ino = d->ino, .st_mode = d->dtype << 12 } };
	struct pf_attr attr;
	size_t room = l->cap - l->used;
	/* the size first: an entry that fits takes a reference */
	size_t need = fuse_add_direntry_plus(l->req, NULL, 0, name, &e, (off_t)d->cookie);
	if (need > room)
		return false;
	/* without a node id the kernel takes the name and the type only: right for "." and "..", and for what has just been
	 * removed */
	if (!is_dot(d) && pf_ref(l->pool, d->ino, &attr) == 0)
		attr_to_entry(&attr, &e);
	fuse_add_direntry_plus(l->req, l->buf + l->used, room, name, &e, (off_t)d->cookie);
	l->used += need;
	return true;
}

static bool add(void *arg, const struct pf_dirent *d)
{
	struct listing *l = arg;
	char name[PF_MAX_NAME_BYTES + 1];
	memcpy(name, d->name, d->len);
	name[d->len] = 0;
	return l->plus ? add_plus(l, name, d) : add_plain(l, name, d);
}

/* The kernel did not take the listing: it does not know of the references either. */
static void give_back(const struct listing *l)
{
	for (size_t at = 0; l->plus && at < l->used;) {
		const struct fuse_direntplus *e = (const void *)(l->buf + at);
		if (e->entry_out.nodeid)
			pf_forget(l->pool, e->entry_out.nodeid, 1);
		at += FUSE_DIRENTPLUS_SIZE(e);
	}
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, bool plus)
{
	struct listing l = { .req = req, .pool = pool_of(req), .plus = plus };
	l.buf = transport_scratch(&l.cap);
	if (size < l.cap)
		l.cap = size;
	int err = pf_readdir(l.pool, ino, (uint64_t)off, add, &l);
	if (err && l.used == 0) {
		reply_code(req, err);
		return;
	}
	/* an error behind entries that were read comes again with the next request */
	if (fuse_reply_buf(req, l.buf, l.used) < 0)
		give_back(&l);
}

void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	list(req, ino, size, off, false);
}

void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	list(req, ino, size, off, true);
}
