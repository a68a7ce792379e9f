/* SPDX-License-Identifier: MIT */
#include "status_fetch.h"

#include "poolfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { MAX_TRIES = 100 };

/* The next piece. 1: more to come; 0: complete; or a negative errno. */
static int fetch_piece(int fd, struct poolfs_ioc_status *req, char **text, size_t *len)
{
	if (ioctl(fd, POOLFS_IOC_STATUS, req) != 0)
		return -errno;
	if (req->len > sizeof(req->text) || (!req->len && *len < req->total))
		return -EPROTO;
	char *longer = realloc(*text, *len + req->len + 1);
	if (!longer)
		return -ENOMEM;
	*text = longer;
	memcpy(longer + *len, req->text, req->len);
	*len += req->len;
	longer[*len] = '\0';
	req->offset = (uint32_t)*len;
	return *len < req->total;
}

int status_fetch(int fd, char **text)
{
	struct poolfs_ioc_status req;
	int err = -EAGAIN;
	*text = NULL;
	/* Somebody else may ask at the same time and make our picture an old one: then from the start. */
	for (unsigned tries = 0; tries < MAX_TRIES && err == -EAGAIN; tries++) {
		size_t len = 0;
		memset(&req, 0, sizeof(req));
		do
			err = fetch_piece(fd, &req, text, &len);
		while (err == 1);
	}
	if (err) {
		free(*text);
		*text = NULL;
	}
	return err;
}
