/* SPDX-License-Identifier: MIT */
#include "log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <syslog.h>

static const char *program = "mount.poolfs";
static atomic_bool use_syslog;
static atomic_bool be_verbose;

static void print(const char *text)
{
	/* one write, so that lines of several threads do not mix */
	dprintf(2, "%s: %s\n", program, text);
}

void log_set_name(const char *name)
{
	program = name;
}

void say(const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print(text);
}

void log_to_syslog(void)
{
	openlog("poolfs", LOG_PID, LOG_DAEMON);
	atomic_store(&use_syslog, true);
}

void log_set_verbose(int verbose)
{
	atomic_store(&be_verbose, verbose != 0);
}

void log_engine(void *arg, enum pf_log_level level, const char *message)
{
	static const int priority[] = { LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG };
	(void)arg;
	if (level >= PF_LOG_DEBUG && !atomic_load(&be_verbose))
		return;
	if (atomic_load(&use_syslog))
		syslog(priority[level], "%s", message);
	else if (level <= PF_LOG_WARNING || atomic_load(&be_verbose))
		print(message);
}

void log_line(enum pf_log_level level, const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_engine(NULL, level, text);
}
