/* SPDX-License-Identifier: MIT
 * SEEK_DATA and SEEK_HOLE.
 *
 * The kernel asks without writing back its dirty pages first, and what it holds may lie where the pool has a hole: an answer
 * from the pool alone would make cp(1) leave out what was just written. So where the pool has a hole (and only there) the
 * kernel is told to give up its pages, which makes it write the dirty ones, and the pool is asked again.
 *
 * Telling waits for those writes, which are requests that a worker must serve: no worker may do the telling. One thread of its
 * own does, for all. */
#include "ops.h"
#include "transport.h"

#include <stdlib.h>
#include <unistd.h>

struct seek {
	struct seek *next;
	fuse_req_t req;
	int reply_fd;
	uint64_t ino, off;
	int whence;
};

struct seeker {
	struct fs *fs;
	struct pf_thread thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct seek *first, **last;
	bool stop;
};

/* The hole that stands between @off and an answer: [*from, *to). False when there is none. Errors mean the end of the file. */
static bool hole_in_question(struct fs *fs, uint64_t ino, uint64_t off, int whence, uint64_t *from, uint64_t *to)
{
	int64_t hole = whence == SEEK_DATA ? (int64_t)off : pf_lseek(fs->pool, ino, off, SEEK_HOLE);
	*from = hole < 0 ? off : (uint64_t)hole;
	int64_t data = pf_lseek(fs->pool, ino, *from, SEEK_DATA);
	*to = data < 0 ? INT64_MAX : (uint64_t)data;
	return *to > *from;
}

static void reply(fuse_req_t req, struct fs *fs, uint64_t ino, uint64_t off, int whence)
{
	int64_t pos = pf_lseek(fs->pool, ino, off, whence);
	if (pos < 0)
		reply_code(req, (int)pos);
	else
		fuse_reply_lseek(req, pos);
}

static void answer(struct fs *fs, const struct seek *s)
{
	uint64_t from, to, before = UINT64_MAX;
	/* a hole that turned out to be data: the next one is in question. Each round starts further on. */
	while (hole_in_question(fs, s->ino, s->off, s->whence, &from, &to) && from != before) {
		off_t len = to == INT64_MAX ? 0 : (off_t)(to - from);
		fuse_lowlevel_notify_inval_inode(fs->se, s->ino, (off_t)from, len);
		before = from;
		if (s->whence == SEEK_DATA)
			break;
	}
	reply(s->req, fs, s->ino, s->off, s->whence);
}

static void *work(void *arg)
{
	struct seeker *k = arg;
	pthread_mutex_lock(&k->lock);
	for (;;) {
		while (!k->first && !k->stop)
			pthread_cond_wait(&k->more, &k->lock);
		struct seek *s = k->first;
		if (!s)
			break;
		k->first = s->next;
		if (!k->first)
			k->last = &k->first;
		pthread_mutex_unlock(&k->lock);
		transport_set_reply_fd(s->reply_fd);
		answer(k->fs, s);
		free(s);
		pthread_mutex_lock(&k->lock);
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	struct fs *fs = fuse_req_userdata(req);
	struct seeker *k = fs->seeker;
	uint64_t from, to;
	(void)fi;
	if (off < 0) {
		reply_code(req, -ENXIO);
		return;
	}
	if (!hole_in_question(fs, ino, (uint64_t)off, whence, &from, &to)) {
		reply(req, fs, ino, (uint64_t)off, whence);
		return;
	}
	struct seek *s = malloc(sizeof(*s));
	if (!s) {
		reply_code(req, -ENOMEM);
		return;
	}
	*s = (struct seek){ .req = req, .reply_fd = transport_reply_fd(), .ino = ino, .off = (uint64_t)off, .whence = whence };
	pthread_mutex_lock(&k->lock);
	bool refused = k->stop;
	if (!refused) {
		*k->last = s;
		k->last = &s->next;
		pthread_cond_signal(&k->more);
	}
	pthread_mutex_unlock(&k->lock);
	if (refused) {
		free(s);
		reply_code(req, -ENOTCONN);
	}
}

int seeker_start(struct fs *fs)
{
	struct seeker *k = calloc(1, sizeof(*k));
	if (!k)
		return -ENOMEM;
	k->fs = fs;
	k->last = &k->first;
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->more, NULL);
	int err = pf_thread_start(&k->thread, work, k);
	if (err) {
		free(k);
		return err;
	}
	pthread_setname_np(k->thread.id, "poolfs-seek");
	fs->seeker = k;
	return 0;
}

void seeker_stop(struct fs *fs)
{
	struct seeker *k = fs->seeker;
	if (!k)
		return;
	pthread_mutex_lock(&k->lock);
	k->stop = true;
	pthread_cond_signal(&k->more);
	pthread_mutex_unlock(&k->lock);
	pf_thread_join(&k->thread);
}

void seeker_free(struct fs *fs)
{
	struct seeker *k = fs->seeker;
	if (!k)
		return;
	pthread_mutex_destroy(&k->lock);
	pthread_cond_destroy(&k->more);
	free(k);
	fs->seeker = NULL;
}
