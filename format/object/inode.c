/* SPDX-License-Identifier: MIT */
#include "object/inode.h"

#include "object/drain.h"
#include "object/evicted.h"
#include "object/orphan.h"
#include "object/refs.h"
#include "object/stage.h"

#include <assert.h>
#include <stdlib.h>

#define BUCKETS 8192
#define IDLE_MAX 4096 /* unpinned inodes kept for speed */

struct pf_icache {
	pthread_mutex_t lock;
	struct pf_inode *buckets[BUCKETS];
	struct pf_inode *lru_first, *lru_last; /* oldest first */
	unsigned nr_idle;
	struct pf_evicted evicted;
	unsigned nr_marked[PF_MARKS];
	uint64_t nr_removed; /* structs that left: what was loaded before may be older than what one of them stored */
	struct pf_refs refs;
};

int pf_icache_create(struct pf_icache **out)
{
	struct pf_icache *c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	pthread_mutex_init(&c->lock, NULL);
	*out = c;
	return 0;
}

static void inode_free(struct pf_inode *inode)
{
	pthread_rwlock_destroy(&inode->lock);
	sem_destroy(&inode->idle);
	pf_dirty_free(&inode->dirty);
	pf_failed_free(&inode->failed);
	free(inode);
}

void pf_icache_destroy(struct pf_icache *cache)
{
	if (!cache)
		return;
	for (unsigned i = 0; i < BUCKETS; i++) {
		while (cache->buckets[i]) {
			struct pf_inode *inode = cache->buckets[i];
			cache->buckets[i] = inode->hash_next;
			assert(!inode->stage && !inode->sealed);
			inode_free(inode);
		}
	}
	pf_refs_free(&cache->refs);
	pf_evicted_free(&cache->evicted);
	pthread_mutex_destroy(&cache->lock);
	free(cache);
}

static struct pf_inode **bucket(struct pf_icache *c, uint64_t ino)
{
	return &c->buckets[ino % BUCKETS];
}

static struct pf_inode *hash_find(struct pf_icache *c, uint64_t ino)
{
	struct pf_inode *inode = *bucket(c, ino);
	while (inode && inode->ino != ino)
		inode = inode->hash_next;
	return inode;
}

static void hash_remove(struct pf_icache *c, struct pf_inode *inode)
{
	struct pf_inode **p = bucket(c, inode->ino);
	while (*p != inode)
		p = &(*p)->hash_next;
	*p = inode->hash_next;
	c->nr_removed++;
}

static void lru_remove(struct pf_icache *c, struct pf_inode *inode)
{
	if (!inode->in_lru)
		return;
	*(inode->lru_prev ? &inode->lru_prev->lru_next : &c->lru_first) = inode->lru_next;
	*(inode->lru_next ? &inode->lru_next->lru_prev : &c->lru_last) = inode->lru_prev;
	inode->in_lru = false;
	c->nr_idle--;
}

static void lru_append(struct pf_icache *c, struct pf_inode *inode)
{
	inode->lru_next = NULL;
	inode->lru_prev = c->lru_last;
	*(c->lru_last ? &c->lru_last->lru_next : &c->lru_first) = inode;
	c->lru_last = inode;
	inode->in_lru = true;
	c->nr_idle++;
}

static struct pf_inode *inode_alloc(uint64_t ino, const struct pf_inode_item *item)
{
	struct pf_inode *inode = calloc(1, sizeof(*inode));
	if (!inode)
		return NULL;
	pthread_rwlock_init(&inode->lock, NULL);
	sem_init(&inode->idle, 0, 1);
	inode->ino = ino;
	inode->type = item->mode & 0170000;
	inode->item = *item;
	inode->tree_size = item->size;
	inode->place.member = -1;
	pf_failed_init(&inode->failed);
	inode->capability = item->flags & PF_INODE_HAS_XATTR ? PF_UNKNOWN : PF_ABSENT;
	inode->orphan = item->nlink == 0;
	inode->pins = 1;
	return inode;
}

static int load_item(struct pf_pool *pool, uint64_t ino, struct pf_inode_item *item)
{
	struct pf_disk_inode disk;
	if (!ino || ino > PF_KEY_FIELD_MAX)
		return -ESTALE;
	int len = pf_tree_get(pool->tree, pf_key_inode(ino), &disk, sizeof(disk));
	if (len == -ENOENT)
		return -ESTALE;
	return len < 0 ? len : pf_inode_item_unpack(&disk, (unsigned)len, item);
}

/* Pins what is cached. *out NULL: not cached. */
static int get_cached(struct pf_icache *c, uint64_t ino, struct pf_inode **out)
{
	*out = hash_find(c, ino);
	if (!*out)
		return 0;
	if ((*out)->dead || atomic_load(&(*out)->unborn))
		return -ESTALE;
	lru_remove(c, *out);
	(*out)->pins++;
	return 0;
}

void pf_icache_durable(struct pf_pool *pool, uint64_t generation)
{
	struct pf_icache *c = pool->icache;
	pthread_mutex_lock(&c->lock);
	pf_evicted_durable(pool, &c->evicted, generation);
	pthread_mutex_unlock(&c->lock);
}

/* Loads and inserts. *out NULL with 0: look again. */
static int load(struct pf_pool *pool, uint64_t ino, uint64_t nr_removed, struct pf_inode **out)
{
	struct pf_icache *c = pool->icache;
	struct pf_inode_item item;
	int err = load_item(pool, ino, &item);
	if (err)
		return err;
	struct pf_inode *fresh = inode_alloc(ino, &item);
	if (!fresh)
		return -ENOMEM;
	pthread_mutex_lock(&c->lock);
	err = get_cached(c, ino, out);
	if (!err && !*out && c->nr_removed == nr_removed) {
		fresh->hash_next = *bucket(c, ino);
		*bucket(c, ino) = fresh;
		pf_evicted_recall(pool, &c->evicted, fresh);
		*out = fresh;
		fresh = NULL;
	}
	pthread_mutex_unlock(&c->lock);
	if (fresh)
		inode_free(fresh);
	return err;
}

int pf_inode_get(struct pf_pool *pool, uint64_t ino, struct pf_inode **out)
{
	struct pf_icache *c = pool->icache;
	int err;
	do {
		pthread_mutex_lock(&c->lock);
		uint64_t nr_removed = c->nr_removed;
		err = get_cached(c, ino, out);
		pthread_mutex_unlock(&c->lock);
		if (!err && !*out)
			err = load(pool, ino, nr_removed, out);
	} while (!err && !*out);
	return err;
}

int pf_inode_new(struct pf_pool *pool, uint64_t ino, const struct pf_inode_item *item, struct pf_inode **out)
{
	struct pf_icache *c = pool->icache;
	struct pf_inode *inode = inode_alloc(ino, item);
	if (!inode)
		return -ENOMEM;
	atomic_store(&inode->unborn, true);
	pthread_mutex_lock(&c->lock);
	inode->hash_next = *bucket(c, ino);
	*bucket(c, ino) = inode;
	pthread_mutex_unlock(&c->lock);
	*out = inode;
	return 0;
}

void pf_inode_born(struct pf_inode *inode)
{
	atomic_store(&inode->unborn, false);
}

void pf_inode_abort(struct pf_pool *pool, struct pf_inode *inode)
{
	if (!inode)
		return;
	pthread_mutex_lock(&pool->icache->lock);
	assert(atomic_load(&inode->unborn) && inode->pins == 1);
	hash_remove(pool->icache, inode);
	pf_refs_drop(&pool->icache->refs, inode->ino, UINT64_MAX);
	pthread_mutex_unlock(&pool->icache->lock);
	inode_free(inode);
}

void pf_inode_pin(struct pf_pool *pool, struct pf_inode *inode)
{
	pthread_mutex_lock(&pool->icache->lock);
	inode->pins++;
	pthread_mutex_unlock(&pool->icache->lock);
}

/* Nobody uses the inode any more (cache lock held). Returns it when it is an orphan to be deleted. */
static struct pf_inode *settle(struct pf_pool *pool, struct pf_inode *inode, struct pf_inode **evicted)
{
	struct pf_icache *c = pool->icache;
	*evicted = NULL;
	if (inode->orphan && !pool->replaying && !pf_refs_get(&c->refs, inode->ino)) {
		inode->dead = true;
		inode->pins = 1;
		return inode;
	}
	if (inode->orphan && !pool->replaying)
		return NULL;
	lru_append(c, inode);
	if (c->nr_idle > IDLE_MAX) {
		*evicted = c->lru_first;
		lru_remove(c, *evicted);
		hash_remove(c, *evicted);
		pf_evicted_add(pool, &c->evicted, *evicted);
	}
	return NULL;
}

static void delete_orphan(struct pf_pool *pool, struct pf_inode *inode)
{
	struct pf_icache *c = pool->icache;
	/* an error leaves the orphan item: the next mount deletes it */
	int err = pf_pool_writable(pool) ? 0 : pf_orphan_delete(pool, inode);
	if (err)
		pf_log(pool->env, PF_LOG_WARNING, "inode %llu: deleting it failed (%s); the next mount will do it",
		       (unsigned long long)inode->ino, pf_strerror(err));
	pthread_mutex_lock(&c->lock);
	hash_remove(c, inode);
	pthread_mutex_unlock(&c->lock);
	inode_free(inode);
}

void pf_inode_put(struct pf_pool *pool, struct pf_inode *inode)
{
	if (!inode)
		return;
	struct pf_icache *c = pool->icache;
	struct pf_inode *orphan = NULL, *evicted = NULL;
	pthread_mutex_lock(&c->lock);
	assert(inode->pins);
	if (--inode->pins == 0)
		orphan = settle(pool, inode, &evicted);
	pthread_mutex_unlock(&c->lock);
	if (evicted)
		inode_free(evicted);
	if (orphan)
		delete_orphan(pool, orphan);
}

void pf_inode_unpin(struct pf_pool *pool, struct pf_inode *inode)
{
	pthread_mutex_lock(&pool->icache->lock);
	assert(inode->pins);
	inode->pins--;
	pthread_mutex_unlock(&pool->icache->lock);
}

int pf_inode_ref(struct pf_pool *pool, struct pf_inode *inode)
{
	pthread_mutex_lock(&pool->icache->lock);
	int err = pf_refs_add(&pool->icache->refs, inode->ino, 1);
	pthread_mutex_unlock(&pool->icache->lock);
	return err;
}

void pf_inode_unref(struct pf_pool *pool, struct pf_inode *inode)
{
	pthread_mutex_lock(&pool->icache->lock);
	pf_refs_drop(&pool->icache->refs, inode->ino, 1);
	pthread_mutex_unlock(&pool->icache->lock);
}

void pf_inode_mark(struct pf_pool *pool, struct pf_inode *inode, enum pf_mark mark, bool on)
{
	struct pf_icache *c = pool->icache;
	if (pf_inode_is_marked(inode, mark) == on)
		return;
	pthread_mutex_lock(&c->lock);
	assert(inode->pins);
	inode->marks ^= 1u << mark;
	inode->pins += on ? 1u : -1u;
	c->nr_marked[mark] += on ? 1u : -1u;
	pthread_mutex_unlock(&c->lock);
}

unsigned pf_icache_nr_marked(struct pf_pool *pool, enum pf_mark mark)
{
	pthread_mutex_lock(&pool->icache->lock);
	unsigned nr = pool->icache->nr_marked[mark];
	pthread_mutex_unlock(&pool->icache->lock);
	return nr;
}

unsigned pf_icache_marked(struct pf_pool *pool, enum pf_mark mark, struct pf_inode **inodes, unsigned max)
{
	struct pf_icache *c = pool->icache;
	unsigned nr = 0;
	pthread_mutex_lock(&c->lock);
	for (unsigned i = 0; i < BUCKETS && nr < max && nr < c->nr_marked[mark]; i++) {
		for (struct pf_inode *inode = c->buckets[i]; inode && nr < max; inode = inode->hash_next) {
			if (!pf_inode_is_marked(inode, mark))
				continue;
			inode->pins++;
			inodes[nr++] = inode;
		}
	}
	pthread_mutex_unlock(&c->lock);
	return nr;
}

bool pf_inode_is_abandoned(struct pf_pool *pool, const struct pf_inode *inode)
{
	pthread_mutex_lock(&pool->icache->lock);
	bool abandoned = inode->orphan && !pf_refs_get(&pool->icache->refs, inode->ino);
	pthread_mutex_unlock(&pool->icache->lock);
	return abandoned;
}

void pf_forget(struct pf_pool *pool, uint64_t ino, uint64_t nr)
{
	struct pf_icache *c = pool->icache;
	struct pf_inode *orphan = NULL;
	pthread_mutex_lock(&c->lock);
	if (!pf_refs_drop(&c->refs, ino, nr)) {
		orphan = hash_find(c, ino);
		if (orphan && orphan->orphan && !orphan->dead && !atomic_load(&orphan->unborn)) {
			lru_remove(c, orphan); /* where orphans are during a replay */
			orphan->pins++;
		} else {
			orphan = NULL;
		}
	}
	pthread_mutex_unlock(&c->lock);
	if (!orphan)
		return;
	pf_inode_lock(pool, orphan);
	if (pf_inode_is_abandoned(pool, orphan)) {
		pf_stage_drop(pool, orphan);
		pf_failed_clear(pool, orphan, 0, UINT64_MAX);
		pf_orphan_settle_abandoned(pool, orphan);
	}
	pthread_rwlock_unlock(&orphan->lock);
	pf_inode_put(pool, orphan);
}

int pf_ref(struct pf_pool *pool, uint64_t ino, struct pf_attr *attr)
{
	struct pf_inode *inode;
	int err = pf_inode_get(pool, ino, &inode);
	if (err)
		return err;
	pthread_rwlock_rdlock(&inode->lock);
	err = pf_inode_is_abandoned(pool, inode) ? -ESTALE : pf_inode_ref(pool, inode);
	if (!err)
		pf_inode_attr(inode, attr);
	pthread_rwlock_unlock(&inode->lock);
	pf_inode_put(pool, inode);
	return err;
}

void pf_inode_set_orphan(struct pf_pool *pool, struct pf_inode *inode, bool orphan)
{
	pthread_mutex_lock(&pool->icache->lock);
	inode->orphan = orphan;
	pthread_mutex_unlock(&pool->icache->lock);
}

static void wait_idle(struct pf_pool *pool, struct pf_inode *inode)
{
	pf_env_waits(pool->env, true);
	while (sem_wait(&inode->idle))
		; /* a signal */
	sem_post(&inode->idle);
	pf_env_waits(pool->env, false);
}

static bool must_wait(const struct pf_inode *inode, enum pf_busy but)
{
	return inode->busy != PF_IDLE && (but == PF_IDLE || inode->busy == but);
}

void pf_inode_lock_unless(struct pf_pool *pool, struct pf_inode *inode, enum pf_busy but)
{
	pthread_rwlock_wrlock(&inode->lock);
	while (must_wait(inode, but)) {
		pthread_rwlock_unlock(&inode->lock);
		if (!pf_drain_help(pool, inode))
			wait_idle(pool, inode);
		pthread_rwlock_wrlock(&inode->lock);
	}
}

void pf_inode_lock(struct pf_pool *pool, struct pf_inode *inode)
{
	pf_inode_lock_unless(pool, inode, PF_IDLE);
}

void pf_inode_begin(struct pf_inode *inode, enum pf_busy busy)
{
	assert(inode->busy == PF_IDLE);
	/* waits at most for one who is about to give it back: nobody else ends what this begins */
	while (sem_wait(&inode->idle))
		;
	inode->busy = busy;
}

void pf_inode_lock_busy(struct pf_inode *inode)
{
	pthread_rwlock_wrlock(&inode->lock);
	assert(inode->busy != PF_IDLE);
}

void pf_inode_end(struct pf_inode *inode)
{
	inode->busy = PF_IDLE;
	sem_post(&inode->idle);
}

static void sort_by_number(struct pf_inode **inodes, unsigned nr)
{
	for (unsigned i = 1; i < nr; i++) {
		for (unsigned j = i; j && (!inodes[j - 1] || (inodes[j] && inodes[j]->ino < inodes[j - 1]->ino)); j--) {
			struct pf_inode *t = inodes[j];
			inodes[j] = inodes[j - 1];
			inodes[j - 1] = t;
		}
	}
}

void pf_inode_lock_all(struct pf_pool *pool, struct pf_inode **inodes, unsigned nr)
{
	sort_by_number(inodes, nr);
	for (unsigned i = 0; i < nr && inodes[i]; i++) {
		if (!i || inodes[i] != inodes[i - 1])
			pf_inode_lock(pool, inodes[i]);
	}
}

void pf_inode_unlock_all(struct pf_inode **inodes, unsigned nr)
{
	for (unsigned i = 0; i < nr && inodes[i]; i++) {
		if (!i || inodes[i] != inodes[i - 1])
			pthread_rwlock_unlock(&inodes[i]->lock);
	}
}

void pf_inode_want(struct pf_txn *txn, uint64_t ino)
{
	pf_txn_want(txn, pf_key_inode(ino), pf_key_inode(ino), PF_TXN_ITEM(sizeof(struct pf_disk_inode)));
}

void pf_inode_store_with(struct pf_txn *txn, const struct pf_inode *inode, const struct pf_times *times)
{
	struct pf_inode_item item = inode->item;
	struct pf_disk_inode disk;
	if (pf_inode_is_file(inode))
		item.size = inode->tree_size;
	if (times) {
		item.mtime = times->mtime;
		item.ctime = times->ctime;
	}
	pf_inode_item_pack(&item, &disk);
	pf_txn_put(txn, pf_key_inode(inode->ino), &disk, sizeof(disk));
}

void pf_inode_store(struct pf_txn *txn, const struct pf_inode *inode)
{
	pf_inode_store_with(txn, inode, NULL);
}

void pf_inode_attr(const struct pf_inode *inode, struct pf_attr *attr)
{
	const struct pf_inode_item *i = &inode->item;
	uint64_t staged = pf_stage_blocks(inode), most = (i->size + PF_BLOCK_SIZE - 1) / PF_BLOCK_SIZE;
	uint64_t blocks = i->blocks + staged;
	/* staged blocks may overwrite mapped ones: a file has no more than its size, unless it did before */
	if (staged && blocks > most)
		blocks = most > i->blocks ? most : i->blocks;
	*attr = (struct pf_attr){
		.ino = inode->ino,
		.mode = i->mode,
		.nlink = i->nlink,
		.uid = i->uid,
		.gid = i->gid,
		.rdev_major = i->rdev_major,
		.rdev_minor = i->rdev_minor,
		.size_bytes = pf_failed_size(inode),
		.blocks = blocks,
		.atime = i->atime,
		.mtime = i->mtime,
		.ctime = i->ctime,
		.btime = i->btime,
		.has_xattr = i->flags & PF_INODE_HAS_XATTR,
	};
}

struct pf_inode_item pf_inode_look(struct pf_inode *inode)
{
	pthread_rwlock_rdlock(&inode->lock);
	struct pf_inode_item item = inode->item;
	pthread_rwlock_unlock(&inode->lock);
	return item;
}

struct timespec pf_inode_now(struct pf_pool *pool)
{
	if (pool->replaying)
		return pool->replay_now;
	int64_t ns = pf_now_ns(pool->env);
	return (struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
}
