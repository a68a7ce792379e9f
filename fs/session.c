/* SPDX-License-Identifier: MIT */
#include "session.h"

#include "child.h"
#include "log.h"
#include "mountinfo.h"
#include "namespace.h"
#include "unmount.h"
#include "utab.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_AHEAD_KIB 1024

/* -- the mount point ------------------------------------------------------------------------------------------------------- */

/* A daemon that was killed leaves its mount behind, which answers ENOTCONN. */
static int clear_dead(const char *path)
{
	/* one daemon may have died over another one's remains */
	for (int i = 0; i < 16 && mountinfo_is_dead(path); i++) {
		int err = unmount_path(path, UNMOUNT_LAZY);
		if (err)
			return err;
		log_line(PF_LOG_INFO, "%s: removed the mount of a daemon that died", path);
	}
	return 0;
}

int session_prepare(struct session *s, const struct options *opt)
{
	struct stat st;
	int err = mountinfo_canonical(opt->dir, s->mountpoint);
	if (!err)
		err = clear_dead(s->mountpoint);
	if (!err && stat(s->mountpoint, &st) < 0)
		err = -errno;
	if (err) {
		say("mount point '%s': %s%s", opt->dir, strerror(-err),
		    err == -ENOTCONN ? "; another filesystem died there: unmount it first" : "");
		return err;
	}
	if (!S_ISDIR(st.st_mode)) {
		say("mount point '%s' is not a directory", opt->dir);
		return -ENOTDIR;
	}
	return 0;
}

/* -- mounting -------------------------------------------------------------------------------------------------------------- */

static int add(char **list, const char *option)
{
	return fuse_opt_add_opt(list, option);
}

static const char *source_of(const struct options *opt)
{
	return opt->fsname ? opt->fsname : opt->spec;
}

/* The options of libfuse and mount(2). libfuse would add nodev and nosuid by itself: mount(8)'s default is without. */
static int build_options(const struct options *opt, bool read_only, char **list)
{
	bool root = geteuid() == 0;
	char *source = NULL;
	int err = asprintf(&source, "fsname=%s", source_of(opt)) < 0 ? -1 : 0;
	if (!err)
		err = fuse_opt_add_opt_escaped(list, source) | add(list, "subtype=poolfs");
	free(source);
	err |= add(list, "default_permissions");
	if (opt->allow_other == YES || (opt->allow_other == UNSET && root))
		err |= add(list, "allow_other");
	if (read_only)
		err |= add(list, "ro");
	if (opt->dev == NO || root)
		err |= add(list, opt->dev == NO ? "nodev" : "dev");
	if (opt->suid == NO || root)
		err |= add(list, opt->suid == NO ? "nosuid" : "suid");
	if (opt->exec == NO)
		err |= add(list, "noexec");
	if (opt->noatime)
		err |= add(list, "noatime");
	if (opt->sync)
		err |= add(list, "sync");
	if (opt->dirsync)
		err |= add(list, "dirsync");
	return err ? -ENOMEM : 0;
}

static void fuse_log_line(enum fuse_log_level level, const char *fmt, va_list ap)
{
	char text[1024];
	int n = vsnprintf(text, sizeof(text), fmt, ap);
	if (n > 0 && n < (int)sizeof(text) && text[n - 1] == '\n')
		text[n - 1] = 0;
	log_line(level <= FUSE_LOG_ERR ? PF_LOG_ERROR : level <= FUSE_LOG_WARNING ? PF_LOG_WARNING : PF_LOG_DEBUG, "%s",
		 text);
}

int session_mount(struct session *s, const struct options *opt, bool read_only, struct fs *fs)
{
	char *list = NULL;
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	int err = opt->name_space ? namespace_enter(opt->name_space) : 0;
	if (!err && opt->name_space)
		err = session_prepare(s, opt);
	if (err)
		return err;
	fuse_set_log_func(fuse_log_line);
	if (build_options(opt, read_only, &list) || fuse_opt_add_arg(&args, "mount.poolfs") ||
	    fuse_opt_add_arg(&args, "-o") || fuse_opt_add_arg(&args, list)) {
		say("out of memory");
		err = -ENOMEM;
	} else {
		s->se = fuse_session_new(&args, &ops_table, sizeof(ops_table), fs);
		err = s->se ? 0 : -EINVAL; /* libfuse has said why */
	}
	free(list);
	fuse_opt_free_args(&args);
	if (err)
		return err;
	if (fuse_session_mount(s->se, s->mountpoint) < 0) {
		say("cannot mount on '%s'%s", opt->dir, access("/dev/fuse", F_OK) ? ": there is no /dev/fuse; load the module fuse" : "");
		return -EIO;
	}
	s->mounted = true;
	return 0;
}

void session_tune(struct session *s, const struct options *opt)
{
	struct mountinfo mi;
	char path[64];
	/* in another namespace the directory is another one, for the table and for umount(8) */
	if (!opt->name_space) {
		utab_add(source_of(opt), s->mountpoint);
		s->in_utab = true;
	}
	/* not stat(2): this process would have to answer (child.h) */
	if (mountinfo_find(s->mountpoint, &mi))
		return;
	s->major = mi.major;
	s->minor = mi.minor;
	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", s->major, s->minor);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return; /* an ordinary user, or no sysfs: it works all the same, slower */
	if (dprintf(fd, "%d\n", READ_AHEAD_KIB) < 0)
		log_line(PF_LOG_DEBUG, "%s: %s", path, strerror(errno));
	close(fd);
}

/* -- unmounting ------------------------------------------------------------------------------------------------------------ */

static bool still_mounted(const struct session *s)
{
	struct mountinfo mi;
	return s->mounted && mountinfo_find(s->mountpoint, &mi) == 0 && strcmp(mi.type, FS_TYPE) == 0 &&
	       (!s->minor || (mi.major == s->major && mi.minor == s->minor));
}

static int sync_mount(const void *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0; /* the connection is gone, and the pages with it */
	return syncfs(fd) < 0 ? errno : 0;
}

static void write_back(const char *path)
{
	int err = child_call(sync_mount, path, CHILD_FOR_EVER);
	if (err)
		log_line(PF_LOG_ERROR, "%s: writing back: %s", path, strerror(err < 0 ? -err : err));
}

void session_unmount(struct session *s, bool serving)
{
	if (!still_mounted(s))
		return;
	int err = serving ? unmount_path(s->mountpoint, UNMOUNT_OWN) : -EBUSY;
	if (err == -EBUSY) {
		/* Somebody uses it. They lose it, but not what they have written so far. */
		if (serving)
			write_back(s->mountpoint);
		err = unmount_path(s->mountpoint, UNMOUNT_LAZY | UNMOUNT_OWN);
	}
	if (err)
		log_line(PF_LOG_ERROR, "cannot unmount %s: %s", s->mountpoint, strerror(-err));
	if (s->in_utab)
		utab_remove(s->mountpoint);
	s->mounted = false;
}

/* libfuse frees its copy of the mount point only in fuse_session_unmount(), which unmounts whatever is at that path unless the
 * connection is dead. So it gets one that is: the writing end of a pipe that nobody reads. */
static void disconnect(struct fuse_session *se)
{
	int fds[2];
	if (fuse_session_fd(se) < 0 || pipe2(fds, O_CLOEXEC) < 0)
		return;
	close(fds[0]);
	if (dup3(fds[1], fuse_session_fd(se), O_CLOEXEC) >= 0)
		fuse_session_unmount(se);
	close(fds[1]);
}

void session_free(struct session *s)
{
	if (!s->se)
		return;
	disconnect(s->se);
	fuse_session_destroy(s->se);
	s->se = NULL;
}
