/* SPDX-License-Identifier: MIT */
#include "transport.h"

#include "clock.h"
#include "log.h"
#include "poolfs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE ((size_t)4096)
#define WRITE_HEADER (sizeof(struct fuse_in_header) + sizeof(struct fuse_write_in))
/* in front of the page where payloads begin: the header of a WRITE */
#define REQUEST_CAP (WRITE_HEADER + TRANSPORT_MAX_PAYLOAD + PAGE)
#define REQUEST_MAP (PAGE + TRANSPORT_MAX_PAYLOAD + 2 * PAGE)
#define SCRATCH_CAP (TRANSPORT_MAX_PAYLOAD + 4 * PAGE)

/* Workers that may wait for a disk at the same time. As many fsyncs become one commit. */
#define NR_SPARE 30
#define NR_OPCODES 64
#define SLOW_NS 50000
#define STUCK_NS 1000000

/* 3.15 learned SETXATTR_EXT, 3.17 the others; older ones answer INIT without them, and we add them to the answer. */
#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 15)
#define CONVERT_SETXATTR 1
#else
#define CONVERT_SETXATTR 0
#endif
#if FUSE_VERSION < FUSE_MAKE_VERSION(3, 17)
#define ADDED_FLAGS                                                                                                    \
	((uint64_t)FUSE_PARALLEL_DIROPS | FUSE_HANDLE_KILLPRIV_V2 | FUSE_DIRECT_IO_ALLOW_MMAP |                        \
	 (CONVERT_SETXATTR ? FUSE_SETXATTR_EXT : 0))
#else
#define ADDED_FLAGS ((uint64_t)0)
#endif

struct worker {
	struct transport *t;
	struct pf_thread thread;
	bool started;
	int fd; /* a clone of the session's, so that workers do not share a queue lock; or that itself */
	char *map, *request;
	char *scratch;
	bool holds_token;
	unsigned waiting; /* transport_waits() that has begun */
	bool answering_init;
	uint64_t offered; /* by the kernel, in INIT */
	uint32_t setxattr_flags;
	const struct fuse_in_header *current;
	int64_t answered_ns; /* 0: when its handler returns */
};

struct transport {
	struct fuse_session *se;
	transport_raw_fn *raw;
	transport_holds_fn *holds;
	void *arg;
	int event_fd;
	unsigned nr_workers;
	sem_t tokens;
	atomic_int nr_reading;      /* workers that wait for a request */
	atomic_int nr_able;         /* workers with a token that do not wait for a disk: they will read soon */
	atomic_int nr_surplus;      /* tokens given by transport_tick(), to be taken back */
	atomic_uint nr_running;
	atomic_uint_fast64_t nr_done;
	uint64_t nr_done_at_tick;
	atomic_bool stop, ready;
	atomic_bool setxattr_ext; /* requests come in the longer form */
	atomic_uint mean_ns[NR_OPCODES];
	struct worker workers[];
};

static __thread struct worker *self;
/* Where this thread's replies go: requests are answered on the descriptor that they came from. */
static __thread int reply_fd = -1;

const struct fuse_in_header *transport_request(void)
{
	return self->current;
}

void *transport_scratch(size_t *cap)
{
	*cap = SCRATCH_CAP;
	return self->scratch;
}

int transport_reply_fd(void)
{
	return reply_fd;
}

void transport_set_reply_fd(int fd)
{
	reply_fd = fd;
}

uint32_t transport_setxattr_flags(void)
{
	return self->setxattr_flags;
}

static void notify(struct transport *t)
{
	uint64_t one = 1;
	while (write(t->event_fd, &one, sizeof(one)) < 0 && errno == EINTR)
		;
}

/* -- replies --------------------------------------------------------------------------------------------------------- */

/* Adds what libfuse does not know to its answer to INIT. */
static void patch_init(struct fuse_out_header *header, struct iovec *body, struct fuse_init_out *copy)
{
	if (header->error || body->iov_len > sizeof(*copy) || body->iov_len < offsetof(struct fuse_init_out, unused))
		return;
	memset(copy, 0, sizeof(*copy));
	memcpy(copy, body->iov_base, body->iov_len);
	uint64_t add = ADDED_FLAGS & self->offered;
	copy->flags |= (uint32_t)add;
	if (add >> 32 && self->offered & FUSE_INIT_EXT) {
		copy->flags |= FUSE_INIT_EXT;
		copy->flags2 |= (uint32_t)(add >> 32);
	}
	self->t->setxattr_ext = copy->flags & FUSE_SETXATTR_EXT;
	body->iov_base = copy;
}

static ssize_t io_writev(int fd, struct iovec *iov, int count, void *userdata)
{
	(void)userdata;
	struct fuse_init_out init;
	bool is_init = self && self->answering_init && count == 2;
	if (is_init)
		patch_init(iov[0].iov_base, &iov[1], &init);
	ssize_t n = writev(reply_fd >= 0 ? reply_fd : fd, iov, count);
	if (is_init && n > 0) {
		int saved = errno;
		atomic_store(&self->t->ready, true);
		notify(self->t);
		errno = saved;
	}
	return n;
}

/* Never called: the workers read by themselves. libfuse demands it. */
static ssize_t io_read(int fd, void *buf, size_t len, void *userdata)
{
	(void)userdata;
	return read(fd, buf, len);
}

int transport_reply(uint64_t unique, int err, const void *data, size_t len)
{
	struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + len), .error = -err, .unique = unique };
	struct iovec iov[] = { { &header, sizeof(header) }, { (void *)data, len } };
	return writev(reply_fd, iov, len ? 2 : 1) < 0 ? -errno : 0;
}

/* -- requests -------------------------------------------------------------------------------------------------------- */

/* The longer form of SETXATTR, as the kernel sends it once SETXATTR_EXT is agreed, becomes the one that libfuse knows: the
 * header moves up over the two fields in between. */
static char *convert_setxattr(char *request, size_t *len)
{
	const size_t old_size = offsetof(struct fuse_setxattr_in, setxattr_flags);
	const size_t gap = sizeof(struct fuse_setxattr_in) - old_size;
	struct fuse_in_header *in = (struct fuse_in_header *)request;
	const struct fuse_setxattr_in *arg = (const void *)(in + 1);
	if (!self->t->setxattr_ext || *len < sizeof(*in) + sizeof(*arg))
		return request;
	self->setxattr_flags = arg->setxattr_flags;
	if (!CONVERT_SETXATTR)
		return request;
	in->len -= (uint32_t)gap;
	memmove(request + gap, request, sizeof(*in) + old_size);
	*len -= gap;
	return request + gap;
}

static void note_init(const struct fuse_in_header *in, size_t len)
{
	const struct fuse_init_in *arg = (const void *)(in + 1);
	if (len < sizeof(*in) + offsetof(struct fuse_init_in, flags2))
		return;
	self->answering_init = true;
	self->offered = arg->flags;
	if (arg->flags & FUSE_INIT_EXT && len >= sizeof(*in) + offsetof(struct fuse_init_in, unused))
		self->offered |= (uint64_t)arg->flags2 << 32;
}

static void process(struct worker *w, char *request, size_t len)
{
	const struct fuse_in_header *in = (const void *)request;
	w->setxattr_flags = 0;
	if (in->opcode == FUSE_INIT)
		note_init(in, len);
	else if (in->opcode == FUSE_SETXATTR)
		request = convert_setxattr(request, &len);
	w->current = (const void *)request;
	if (!w->t->raw(w->t->arg, w->current)) {
		struct fuse_buf buf = { .size = len, .mem = request };
		fuse_session_process_buf(w->t->se, &buf);
	}
	w->current = NULL;
	w->answering_init = false;
}

static void *map_buffer(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NULL : p;
}

/* A buffer that somebody else still uses is his; the worker goes on with another. False: there is no memory. */
static bool replace_held(struct transport *t, char **buf, size_t len)
{
	if (!t->holds(t->arg, *buf, len))
		return true;
	char *fresh = map_buffer(len);
	if (!fresh)
		return false;
	*buf = fresh;
	return true;
}

static void renew_buffers(struct worker *w)
{
	while (!replace_held(w->t, &w->map, REQUEST_MAP) || !replace_held(w->t, &w->scratch, SCRATCH_CAP))
		usleep(100000);
	w->request = w->map + PAGE - WRITE_HEADER;
}

void transport_waits(bool begins)
{
	struct worker *w = self;
	if (!w || (begins ? w->waiting++ : --w->waiting) || !w->holds_token)
		return;
	if (!begins) {
		atomic_fetch_add(&w->t->nr_able, 1);
	} else if (atomic_fetch_sub(&w->t->nr_able, 1) == 1) {
		w->holds_token = false;
		sem_post(&w->t->tokens);
	}
}

void transport_answered(void)
{
	self->answered_ns = clock_now_ns();
}

/* Requests whose like took long of late count as waiting; how long is a moving mean of each opcode. Those that sync say it
 * themselves, because some of them wait for a disk on behalf of all others. */
static void process_timed(struct worker *w, size_t len)
{
	struct transport *t = w->t;
	uint32_t opcode = ((const struct fuse_in_header *)w->request)->opcode;
	atomic_uint *mean = &t->mean_ns[opcode % NR_OPCODES];
	uint32_t before = atomic_load_explicit(mean, memory_order_relaxed);
	bool slow = before > SLOW_NS && opcode != FUSE_FSYNC && opcode != FUSE_FSYNCDIR;
	if (slow)
		transport_waits(true);
	int64_t start = clock_now_ns();
	w->answered_ns = 0;
	process(w, w->request, len);
	if (slow)
		transport_waits(false);
	int64_t took = (w->answered_ns ? w->answered_ns : clock_now_ns()) - start;
	renew_buffers(w);
	if (took > 1000000000)
		took = 1000000000;
	/* lost updates of other workers do no harm */
	atomic_store_explicit(mean, (uint32_t)((before * 7ull + took) / 8), memory_order_relaxed);
	atomic_fetch_add_explicit(&t->nr_done, 1, memory_order_relaxed);
}

static bool take_token(struct worker *w)
{
	struct transport *t = w->t;
	if (w->holds_token && atomic_load_explicit(&t->nr_surplus, memory_order_relaxed) > 0) {
		if (atomic_fetch_sub(&t->nr_surplus, 1) > 0) {
			w->holds_token = false;
			atomic_fetch_sub(&t->nr_able, 1);
		} else {
			atomic_fetch_add(&t->nr_surplus, 1);
		}
	}
	while (!w->holds_token && !atomic_load(&t->stop)) {
		if (sem_wait(&t->tokens) == 0) {
			w->holds_token = true;
			atomic_fetch_add(&t->nr_able, 1);
		}
	}
	return !atomic_load(&t->stop);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct transport *t = w->t;
	self = w;
	reply_fd = w->fd;
	pthread_setname_np(pthread_self(), "poolfs-fuse");
	while (take_token(w) && !fuse_session_exited(t->se)) {
		atomic_fetch_add_explicit(&t->nr_reading, 1, memory_order_relaxed);
		ssize_t n = read(w->fd, w->request, REQUEST_CAP);
		int err = errno;
		atomic_fetch_sub_explicit(&t->nr_reading, 1, memory_order_relaxed);
		if (n >= (ssize_t)sizeof(struct fuse_in_header)) {
			process_timed(w, (size_t)n);
			continue;
		}
		/* ENOENT: the request was interrupted before we got it */
		if (n < 0 && (err == EINTR || err == EAGAIN || err == ENOENT))
			continue;
		if (n >= 0 || (err != ENODEV && err != ECONNABORTED))
			log_line(PF_LOG_ERROR, "cannot read requests of the kernel: %s", n < 0 ? strerror(err) : "short");
		break;
	}
	atomic_store(&t->stop, true);
	sem_post(&t->tokens); /* the next one that waits for it ends too */
	if (atomic_fetch_sub(&t->nr_running, 1) == 1)
		notify(t);
	return NULL;
}

/* -- start and end --------------------------------------------------------------------------------------------------- */

/* The hot workers' pages are there from the start; those of spare ones come with use, and stay. */
static int prepare_worker(struct worker *w, bool hot)
{
	int master = fuse_session_fd(w->t->se);
	w->fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (w->fd >= 0 && ioctl(w->fd, FUSE_DEV_IOC_CLONE, &master) < 0) {
		close(w->fd);
		w->fd = -1;
	}
	if (w->fd < 0)
		w->fd = master;
	w->map = map_buffer(REQUEST_MAP);
	w->scratch = map_buffer(SCRATCH_CAP);
	if (!w->map || !w->scratch)
		return -ENOMEM;
	w->request = w->map + PAGE - WRITE_HEADER;
	if (hot) {
		memset(w->map, 0, REQUEST_MAP);
		memset(w->scratch, 0, SCRATCH_CAP);
	}
	return 0;
}

void transport_free(struct transport *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < t->nr_workers; i++) {
		struct worker *w = &t->workers[i];
		if (w->fd >= 0 && w->fd != fuse_session_fd(t->se))
			close(w->fd);
		if (w->map)
			munmap(w->map, REQUEST_MAP);
		if (w->scratch)
			munmap(w->scratch, SCRATCH_CAP);
	}
	sem_destroy(&t->tokens);
	close(t->event_fd);
	free(t);
}

static void wake(int sig)
{
	(void)sig;
}

/* SIGUSR1 makes a blocked read() return, so it must have a handler and no SA_RESTART. */
static void prepare_signal(void)
{
	struct sigaction sa = { .sa_handler = wake };
	sigaction(SIGUSR1, &sa, NULL);
}

static int start_threads(struct transport *t)
{
	sigset_t usr1;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &usr1, NULL);
	for (unsigned i = 0; i < t->nr_workers; i++) {
		atomic_fetch_add(&t->nr_running, 1);
		int err = pf_thread_start(&t->workers[i].thread, work, &t->workers[i]);
		if (err) {
			atomic_fetch_sub(&t->nr_running, 1);
			return err;
		}
		t->workers[i].started = true;
	}
	return 0;
}

int transport_start(struct fuse_session *se, unsigned nr_threads, transport_raw_fn *raw, transport_holds_fn *holds, void *arg,
		    struct transport **out)
{
	static const struct fuse_custom_io io = { .writev = io_writev, .read = io_read };
	unsigned nr = nr_threads + NR_SPARE;
	struct transport *t = calloc(1, sizeof(*t) + nr * sizeof(t->workers[0]));
	if (!t)
		return -ENOMEM;
	t->se = se;
	t->raw = raw;
	t->holds = holds;
	t->arg = arg;
	t->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	sem_init(&t->tokens, 0, nr_threads);
	int err = t->event_fd < 0 ? -errno : fuse_session_custom_io(se, &io, fuse_session_fd(se));
	for (unsigned i = 0; i < nr && !err; i++) {
		t->workers[i].t = t;
		t->workers[i].fd = -1;
		t->nr_workers++;
		err = prepare_worker(&t->workers[i], i < nr_threads);
	}
	if (!err) {
		prepare_signal();
		err = start_threads(t);
		if (err)
			transport_stop(t);
	}
	if (err) {
		transport_free(t);
		return err;
	}
	*out = t;
	return 0;
}

int transport_event_fd(const struct transport *t)
{
	return t->event_fd;
}

bool transport_ready(struct transport *t)
{
	return atomic_load(&t->ready);
}

bool transport_ended(struct transport *t)
{
	return atomic_load(&t->nr_running) == 0;
}

uint64_t transport_nr_done(struct transport *t)
{
	return atomic_load(&t->nr_done);
}

void transport_tick(struct transport *t)
{
	uint64_t done = transport_nr_done(t);
	if (done == t->nr_done_at_tick && atomic_load(&t->nr_reading) == 0 && atomic_load(&t->nr_surplus) < NR_SPARE &&
	    !atomic_load(&t->stop)) {
		atomic_fetch_add(&t->nr_surplus, 1);
		sem_post(&t->tokens);
		/* what is stuck now will be followed by more of the kind: let them loose at once, not one at each tick */
		for (unsigned i = 0; i < NR_OPCODES; i++)
			atomic_store_explicit(&t->mean_ns[i], STUCK_NS, memory_order_relaxed);
	}
	t->nr_done_at_tick = done;
}

void transport_stop(struct transport *t)
{
	if (!t)
		return;
	atomic_store(&t->stop, true);
	sem_post(&t->tokens);
	for (unsigned i = 0; i < t->nr_workers; i++) {
		if (!t->workers[i].started)
			continue;
		/* again and again, because a worker may be just before its read() */
		do
			pthread_kill(t->workers[i].thread.id, SIGUSR1);
		while (!pf_thread_join_for(&t->workers[i].thread, 10));
		t->workers[i].started = false;
	}
}
