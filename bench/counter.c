/* SPDX-License-Identifier: MIT */
#include "counter.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Places in the line, from 0; sectors are of 512 bytes whatever those of the device are. */
enum { FIELD_SECTORS = 6, FIELD_FLUSHES = 15, NR_FIELDS = 16, SECTOR = 512 };

bool counter_add(const char *line, struct counter_values *sum)
{
	uint64_t fields[NR_FIELDS];
	for (unsigned i = 0; i < NR_FIELDS; i++) {
		int len = 0;
		if (sscanf(line, "%" SCNu64 "%n", &fields[i], &len) != 1)
			return false;
		line += len;
	}
	sum->bytes += fields[FIELD_SECTORS] * SECTOR;
	sum->flushes += fields[FIELD_FLUSHES];
	return true;
}

static int read_one(const char *device, struct counter_values *sum)
{
	char path[64 + LOOP_NAME_LEN], line[512];
	const char *slash = strrchr(device, '/');
	snprintf(path, sizeof(path), "/sys/block/%s/stat", slash ? slash + 1 : device);
	FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	bool good = fgets(line, sizeof(line), f) && counter_add(line, sum);
	fclose(f);
	return good ? 0 : -EPROTO;
}

int counter_read(const struct counter *counter, struct counter_values *out)
{
	*out = (struct counter_values){ 0 };
	int err = 0;
	for (unsigned i = 0; i < counter->nr && !err; i++)
		err = read_one(counter->devices[i], out);
	return err;
}
