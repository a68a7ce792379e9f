/* SPDX-License-Identifier: MIT
 * Superblocks, slot by slot, and one in full. */
#include "dump.h"

#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* -- one superblock in full ----------------------------------------------------------------------------------------- */

static const char *const class_names[] = { "compat", "ro_compat", "incompat" };

static uint64_t mask_of(const struct pf_features *f, enum pf_feature_class class)
{
	return class == PF_COMPAT ? f->compat : class == PF_RO_COMPAT ? f->ro_compat : f->incompat;
}

static const char *feature_name(enum pf_feature_class class, unsigned bit)
{
	for (unsigned i = 0; i < PF_FEAT_COUNT; i++) {
		const struct pf_feature_info *info = pf_feature_info((enum pf_feature)i);
		if (info->class == class && info->bit == bit)
			return info->name;
	}
	return NULL;
}

static void features_text(const struct pf_features *f)
{
	for (unsigned c = 0; c < 3; c++) {
		uint64_t mask = mask_of(f, (enum pf_feature_class)c);
		printf("  %-12s 0x%" PRIx64, class_names[c], mask);
		for (unsigned bit = 0; bit < 64; bit++) {
			const char *name = feature_name((enum pf_feature_class)c, bit);
			if (!(mask >> bit & 1))
				continue;
			if (name)
				printf(" %s", name);
			else
				printf(" unknown-%u", bit);
		}
		putchar('\n');
	}
}

static void members_text(const struct pf_super *s)
{
	char size[CLI_SIZE_LEN], uuid[CLI_UUID_LEN];
	for (unsigned i = 0; i < s->nr_members; i++) {
		const struct pf_member_row *m = &s->members[i];
		printf("  member %-5u %s %s, log %u blocks, share %ju blocks, table root slot %u generation %ju crc 0x%016" PRIx64
		       "%s%s, state %u class %u\n",
		       i, cli_uuid(uuid, m->uuid), cli_size(size, m->size_blocks * PF_BLOCK_SIZE), m->log_blocks,
		       (uintmax_t)m->share_blocks, m->root_slot, (uintmax_t)m->root_generation, m->root_crc,
		       m->flags & PF_MEMBER_META ? ", metadata" : "", m->flags & PF_MEMBER_RAW ? ", raw" : "", m->state,
		       m->class);
	}
}

static void super_text(const struct pf_super *s)
{
	char a[CLI_UUID_LEN], t[CLI_TIME_LEN], ptr[PF_ITEM_TEXT_BYTES];
	const struct pf_counters *c = &s->counters;
	printf("  pool         %s label \"", cli_uuid(a, s->pool_uuid));
	cli_print_name(stdout, s->label);
	printf("\"\n  this member  id %u of %u, %s\n", s->member_id, s->nr_members, cli_uuid(a, s->member_uuid));
	printf("  version      %u, placement %u, flags 0x%jx%s\n", s->version, s->placement, (uintmax_t)s->flags,
	       s->flags & PF_SUPER_CLEAN ? " clean" : "");
	features_text(&s->features);
	printf("  created      %s\n", cli_time(t, s->created_ns));
	printf("  written      %s, generation %ju\n", cli_time(t, s->written_ns), (uintmax_t)s->generation);
	printf("  root         %s, level %u\n", pf_ptr_to_text(&s->root, ptr, sizeof(ptr)), s->root_level);
	printf("  metadata on ");
	for (unsigned i = 0; i < s->nr_meta; i++)
		printf(" %u", s->meta_members[i]);
	printf("\n  counters     next id %ju, next orphan %ju, inodes %ju, data %ju blocks, orphans %ju blocks, nodes %ju blocks\n",
	       (uintmax_t)c->next_id, (uintmax_t)c->next_orphan, (uintmax_t)c->nr_inodes, (uintmax_t)c->data_blocks,
	       (uintmax_t)c->orphan_blocks, (uintmax_t)c->node_blocks);
	members_text(s);
	for (unsigned i = 0; i < PF_MAX_EPOCHS && s->epochs[i].id; i++)
		printf("  epoch        0x%016" PRIx64 " of %s after generation %ju\n", s->epochs[i].id,
		       cli_time(t, s->epochs[i].time_ns), (uintmax_t)s->epochs[i].last_generation);
}

static void features_json(struct json *j, const struct pf_features *f)
{
	json_object(j, "features");
	for (unsigned c = 0; c < 3; c++)
		json_hex(j, class_names[c], mask_of(f, (enum pf_feature_class)c));
	json_end_object(j);
}

static void members_json(struct json *j, const struct pf_super *s)
{
	json_array(j, "members");
	for (unsigned i = 0; i < s->nr_members; i++) {
		const struct pf_member_row *m = &s->members[i];
		json_object(j, NULL);
		json_number(j, "id", i);
		json_uuid(j, "uuid", m->uuid);
		json_number(j, "size_blocks", m->size_blocks);
		json_number(j, "log_blocks", m->log_blocks);
		json_number(j, "share_blocks", m->share_blocks);
		json_number(j, "root_slot", m->root_slot);
		json_number(j, "root_generation", m->root_generation);
		json_hex(j, "root_crc", m->root_crc);
		json_number(j, "state", m->state);
		json_number(j, "class", m->class);
		json_bool(j, "metadata", m->flags & PF_MEMBER_META);
		json_bool(j, "raw", m->flags & PF_MEMBER_RAW);
		json_end_object(j);
	}
	json_end_array(j);
}

static void epochs_json(struct json *j, const struct pf_super *s)
{
	json_array(j, "epochs");
	for (unsigned i = 0; i < PF_MAX_EPOCHS && s->epochs[i].id; i++) {
		json_object(j, NULL);
		json_hex(j, "id", s->epochs[i].id);
		json_signed(j, "time_ns", s->epochs[i].time_ns);
		json_number(j, "last_generation", s->epochs[i].last_generation);
		json_end_object(j);
	}
	json_end_array(j);
}

static void super_json(struct json *j, const char *key, const struct pf_super *s)
{
	char text[PF_ITEM_TEXT_BYTES];
	json_object(j, key);
	json_uuid(j, "pool_uuid", s->pool_uuid);
	json_name(j, "label", s->label);
	json_number(j, "member_id", s->member_id);
	json_uuid(j, "member_uuid", s->member_uuid);
	json_number(j, "version", s->version);
	features_json(j, &s->features);
	json_number(j, "placement", s->placement);
	json_bool(j, "clean", s->flags & PF_SUPER_CLEAN);
	json_number(j, "generation", s->generation);
	json_signed(j, "created_ns", s->created_ns);
	json_signed(j, "written_ns", s->written_ns);
	json_string(j, "root", s->root.addr[0] ? pf_addr_to_text(s->root.addr[0], text, sizeof(text)) : NULL);
	if (s->root.addr[1])
		json_string(j, "root_copy", pf_addr_to_text(s->root.addr[1], text, sizeof(text)));
	json_number(j, "root_generation", s->root.generation);
	json_hex(j, "root_crc", s->root.crc);
	json_number(j, "root_level", s->root_level);
	json_array(j, "meta_members");
	for (unsigned i = 0; i < s->nr_meta; i++)
		json_number(j, NULL, s->meta_members[i]);
	json_end_array(j);
	json_number(j, "next_id", s->counters.next_id);
	json_number(j, "next_orphan", s->counters.next_orphan);
	json_number(j, "inodes", s->counters.nr_inodes);
	json_number(j, "data_blocks", s->counters.data_blocks);
	json_number(j, "no_csum_blocks", s->counters.no_csum_blocks);
	json_number(j, "orphan_blocks", s->counters.orphan_blocks);
	json_number(j, "node_blocks", s->counters.node_blocks);
	members_json(j, s);
	epochs_json(j, s);
	json_end_object(j);
}

/* -- slots ---------------------------------------------------------------------------------------------------------- */
struct newest {
	bool found;
	struct pf_super super;
};

static void show_slot(struct dump *d, unsigned ring, unsigned slot, uint64_t block, int err, const struct pf_super *s)
{
	const char *state = err == -PF_ESB_MAGIC ? "empty" : err ? pf_strerror(err) : "valid";
	if (d->json_wanted) {
		json_object(&d->json, NULL);
		json_string(&d->json, "ring", ring ? "B" : "A");
		json_number(&d->json, "slot", slot);
		json_number(&d->json, "block", block);
		json_string(&d->json, "state", state);
		if (!err) {
			json_number(&d->json, "generation", s->generation);
			json_signed(&d->json, "written_ns", s->written_ns);
			json_bool(&d->json, "clean", s->flags & PF_SUPER_CLEAN);
		}
		json_end_object(&d->json);
		return;
	}
	printf("  ring %c slot %u block %-10ju ", ring ? 'B' : 'A', slot, (uintmax_t)block);
	if (err) {
		printf("%s\n", state);
	} else {
		char t[CLI_TIME_LEN];
		printf("valid, generation %ju, version %u, written %s%s\n", (uintmax_t)s->generation, s->version,
		       cli_time(t, s->written_ns), s->flags & PF_SUPER_CLEAN ? ", clean" : "");
	}
}

static int show_slots(struct dump *d, struct pf_io *io, const struct pf_geometry *geo, struct newest *newest)
{
	void *block = aligned_alloc(PF_BLOCK_SIZE, PF_BLOCK_SIZE);
	if (!block)
		return -ENOMEM;
	for (unsigned i = 0; i < 2 * PF_SUPER_SLOTS; i++) {
		struct pf_super s;
		unsigned ring = i / PF_SUPER_SLOTS, slot = i % PF_SUPER_SLOTS;
		uint64_t at = pf_geometry_super_block(geo, ring, slot);
		int err = pf_io_read(io, at * PF_BLOCK_SIZE, block, PF_BLOCK_SIZE);
		if (!err)
			err = pf_super_unpack(block, &s);
		show_slot(d, ring, slot, at, err, &s);
		if (err && err != -PF_ESB_MAGIC)
			d->nr_damaged++;
		if (!err && (!newest->found || s.generation > newest->super.generation))
			*newest = (struct newest){ true, s };
	}
	free(block);
	return 0;
}

/* Looks without a lock when somebody has the member: a slot is one block, so what is seen is whole. */
static int open_any(const char *path, const struct pf_env *env, struct pf_io **io)
{
	struct pf_diag diag = { 0 };
	int err = pf_io_open(path, PF_IO_OPEN_UNLOCKED, 0, env, io, &diag);
	if (err)
		cli_fail(&diag, path, err);
	return err;
}

static int show_member(struct dump *d, const char *path)
{
	struct newest newest = { 0 };
	struct pf_geometry geo;
	struct pf_io *io;
	int err = open_any(path, d->env, &io);
	if (err)
		return err;
	uint64_t blocks = io->size_bytes / PF_BLOCK_SIZE;
	err = pf_geometry_init(&geo, blocks, pf_geometry_log_blocks(blocks));
	if (err) {
		cli_message("%s: %s", path, pf_strerror(err));
		goto out;
	}
	if (d->json_wanted) {
		json_object(&d->json, NULL);
		json_name(&d->json, "path", path);
		json_number(&d->json, "size_bytes", io->size_bytes);
		json_array(&d->json, "slots");
	} else {
		cli_print_name(stdout, path);
		printf(": %ju bytes\n", (uintmax_t)io->size_bytes);
	}
	err = show_slots(d, io, &geo, &newest);
	if (d->json_wanted) {
		json_end_array(&d->json);
		if (newest.found)
			super_json(&d->json, "newest", &newest.super);
		json_end_object(&d->json);
	} else if (newest.found) {
		printf("newest superblock\n");
		super_text(&newest.super);
	}
	if (!err && !newest.found) {
		err = -PF_EMEMBER_NONE;
		cli_message("%s: %s", path, pf_strerror(err));
	}
out:
	pf_io_close(io);
	return err;
}

int dump_supers(struct dump *d, char **paths, unsigned nr)
{
	int err = 0;
	if (d->json_wanted)
		json_array(&d->json, "superblocks");
	for (unsigned i = 0; i < nr; i++) {
		int one = show_member(d, paths[i]);
		if (!err)
			err = one;
	}
	if (d->json_wanted)
		json_end_array(&d->json);
	return err;
}
