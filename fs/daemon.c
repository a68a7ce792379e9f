/* SPDX-License-Identifier: MIT */
#include "daemon.h"

#include "daemonize.h"
#include "holder.h"
#include "log.h"
#include "memory.h"
#include "ops.h"
#include "session.h"
#include "transport.h"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define LOCK_WAIT_MS 10000
#define TICK_MS 500
#define SILENCE_SECONDS 60 /* a disk that sleeps needs 20 */

struct daemon {
	const struct options *opt;
	struct fs fs;
	struct session session;
	struct transport *transport;
	int signal_fd;
};

static sigset_t ending_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	return set;
}

void daemon_block_signals(void)
{
	sigset_t set = ending_signals();
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void worker_waits(void *arg, bool begins)
{
	(void)arg;
	transport_waits(begins);
}

struct pf_env daemon_env(void)
{
	struct pf_env env = *pf_env_system();
	env.log = log_engine;
	env.waits = worker_waits;
	return env;
}

/* Memory is made free by writing through us: we must not wait for that when we need some, nor be slowed down with those whose
 * pages we write. Threads that start later inherit it. Only root may ask. */
static void become_flusher(void)
{
#ifdef PR_SET_IO_FLUSHER
	if (prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0) < 0)
		log_line(PF_LOG_DEBUG, "PR_SET_IO_FLUSHER: %s", strerror(errno));
#endif
}

/* -- start --------------------------------------------------------------------------------------------------------------- */

static int open_pool(struct daemon *d, const struct spec *spec, const struct pf_env *env)
{
	struct pf_diag diag = { "" };
	struct pf_pool_options options = {
		.read_only = d->opt->read_only,
		.wait_ms = LOCK_WAIT_MS,
		.cache_bytes = d->opt->cache_bytes,
		.commit_interval_ms = d->opt->commit_seconds * 1000,
		.silence_seconds = d->opt->silence_seconds ? d->opt->silence_seconds : SILENCE_SECONDS,
		.guard_single = d->opt->silence_seconds > 0,
		.lends = true,
		.discard = d->opt->discard == YES ? PF_DISCARD_ALL : d->opt->discard == NO ? PF_DISCARD_NONE : PF_DISCARD_SPARSE,
	};
	int err = pf_pool_open((const char *const *)spec->paths, spec->nr, &options, env, &d->fs.pool, &diag);
	if (err)
		say("%s", diag.text[0] ? diag.text : pf_strerror(err));
	return err;
}

static unsigned nr_threads(const struct options *opt)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (opt->threads)
		return opt->threads;
	return cpus < 2 ? 2 : cpus > 4 ? 4 : (unsigned)cpus;
}

/* Waits until the kernel has agreed with us on the protocol; then every request of a user is answered. */
static int wait_ready(struct daemon *d)
{
	while (!transport_ready(d->transport)) {
		struct pollfd p = { .fd = transport_event_fd(d->transport), .events = POLLIN };
		if (transport_ended(d->transport)) {
			say("the kernel and libfuse %s did not agree on a protocol", fuse_pkgversion());
			return -EPROTO;
		}
		poll(&p, 1, TICK_MS);
	}
	uint64_t nr;
	if (read(transport_event_fd(d->transport), &nr, sizeof(nr)) < 0 && errno != EAGAIN)
		return -errno;
	return 0;
}

static bool holds_buffer(void *arg, const void *buf, size_t len)
{
	const struct fs *fs = arg;
	return pf_pool_holds(fs->pool, buf, len);
}

static int start(struct daemon *d)
{
	int err = session_mount(&d->session, d->opt, pf_pool_read_only(d->fs.pool), &d->fs);
	if (err)
		return err;
	d->fs.se = d->session.se;
	err = seeker_start(&d->fs);
	if (!err)
		err = notices_start(&d->fs);
	if (!err)
		err = transport_start(d->session.se, nr_threads(d->opt), ops_raw, holds_buffer, &d->fs, &d->transport);
	if (err) {
		say("cannot start the threads that serve requests: %s", strerror(-err));
		return err;
	}
	err = wait_ready(d);
	if (err)
		return err;
	err = pf_pool_start_workers(d->fs.pool);
	if (err) {
		say("cannot start the threads of the pool: %s", pf_strerror(err));
		return err;
	}
	session_tune(&d->session, d->opt);
	return 0;
}

/* -- service ------------------------------------------------------------------------------------------------------------- */

/* Until the mount is gone or somebody wants it gone. Returns the signal, or 0. */
static int serve(struct daemon *d)
{
	struct memory memory = { 0 };
	for (;;) {
		struct pollfd p[] = {
			{ .fd = transport_event_fd(d->transport), .events = POLLIN },
			{ .fd = d->signal_fd, .events = POLLIN },
		};
		int n = poll(p, 2, TICK_MS);
		if (transport_ended(d->transport))
			return 0;
		if (n > 0 && p[1].revents) {
			struct signalfd_siginfo info;
			if (read(d->signal_fd, &info, sizeof(info)) == sizeof(info))
				return (int)info.ssi_signo;
		}
		if (n > 0 && p[0].revents) {
			uint64_t nr;
			if (read(p[0].fd, &nr, sizeof(nr)) < 0 && errno != EAGAIN)
				return SIGTERM;
		}
		transport_tick(d->transport);
		memory_tick(&memory, transport_nr_done(d->transport));
	}
}

/* -- end ------------------------------------------------------------------------------------------------------------------- */

static int stop(struct daemon *d, int code)
{
	session_unmount(&d->session, d->transport && !transport_ended(d->transport));
	seeker_stop(&d->fs);
	notices_stop(&d->fs);
	transport_stop(d->transport);
	seeker_free(&d->fs);
	notices_free(&d->fs);
	transport_free(d->transport);
	session_free(&d->session);
	int err = pf_pool_close(d->fs.pool);
	if (err) {
		log_line(PF_LOG_ERROR, "the pool is not clean: %s; check it with fsck.poolfs", pf_strerror(err));
		if (code == 0)
			code = EXIT_MOUNT;
	}
	free(d->fs.status);
	pthread_mutex_destroy(&d->fs.status_lock);
	if (d->signal_fd >= 0)
		close(d->signal_fd);
	/* A member that does not answer may keep this process from ending, but from nothing else: for who waits (holder.h). */
	pthread_setname_np(pthread_self(), HOLDER_ENDED);
	return code;
}

static bool interrupted(void)
{
	sigset_t pending, set = ending_signals();
	sigpending(&pending);
	sigandset(&set, &set, &pending);
	return !sigisemptyset(&set);
}

int daemon_run(const struct options *opt, const struct spec *spec, int report_fd)
{
	struct pf_env env = daemon_env();
	struct daemon d = { .opt = opt, .signal_fd = -1 };
	d.fs.max_background = opt->max_background ? opt->max_background : 64;
	holder_start_time("self", &d.fs.start_time);
	become_flusher();
	memory_setup();
	if ((!opt->name_space && session_prepare(&d.session, opt)) || open_pool(&d, spec, &env))
		return EXIT_MOUNT;
	pthread_mutex_init(&d.fs.status_lock, NULL);

	sigset_t set = ending_signals();
	d.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (d.signal_fd < 0 || start(&d))
		return stop(&d, EXIT_MOUNT);
	if (interrupted()) {
		say("interrupted; nothing is mounted");
		return stop(&d, EXIT_INTERRUPTED);
	}
	if (report_fd >= 0) {
		log_to_syslog();
		daemonize_report(report_fd);
	}
	int sig = serve(&d);
	if (sig)
		log_line(PF_LOG_INFO, "signal %d: unmounting %s", sig, d.session.mountpoint);
	return stop(&d, 0);
}
