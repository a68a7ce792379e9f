/* SPDX-License-Identifier: MIT
 * Group tables and free-space maps. Groups that were never used are counted, not listed. */
#include "dump.h"

#include "cli.h"

#include <inttypes.h>
#include <stdlib.h>

static void on_bad(void *arg, unsigned member, bool is_root, uint64_t index, uint64_t block, int err)
{
	struct dump *d = arg;
	d->nr_damaged++;
	cli_message("member %u: %s %ju at block %ju: %s", member, is_root ? "table root" : "table block", (uintmax_t)index,
		    (uintmax_t)block, pf_strerror(err));
}

static unsigned count_free(const struct pf_disk_map *map)
{
	unsigned used = 0;
	for (size_t i = 0; i < sizeof(map->used); i++)
		used += (unsigned)__builtin_popcount(map->used[i]);
	return PF_GROUP_BLOCKS - used;
}

static unsigned count_free_quads(const struct pf_disk_map *map)
{
	unsigned nr = 0;
	for (size_t i = 0; i < sizeof(map->used); i++)
		nr += (unsigned)!(map->used[i] & 0x0f) + (unsigned)!(map->used[i] & 0xf0);
	return nr;
}

struct group_line {
	unsigned member;
	uint64_t group;
	const struct pf_group_info *info;
	int err; /* of the map */
	unsigned map_free, map_free_quads;
};

static void show_group(struct dump *d, const struct group_line *g)
{
	const char *state = g->info->lost ? "table block damaged" : g->err ? pf_strerror(g->err) : "valid";
	if (d->json_wanted) {
		json_object(&d->json, NULL);
		json_number(&d->json, "group", g->group);
		json_string(&d->json, "state", state);
		json_number(&d->json, "free_blocks", g->info->free_blocks);
		json_number(&d->json, "free_quads", g->info->free_quads);
		json_number(&d->json, "slot", g->info->slot);
		json_number(&d->json, "generation", g->info->generation);
		json_hex(&d->json, "crc", g->info->crc);
		json_bool(&d->json, "metadata", g->info->flags & PF_GROUP_META);
		json_number(&d->json, "map_free_blocks", g->map_free);
		json_number(&d->json, "map_free_quads", g->map_free_quads);
		json_end_object(&d->json);
		return;
	}
	printf("  group %-7ju free %-6u quads %-5u slot %u generation %ju crc 0x%016" PRIx64 "%s: map %s",
	       (uintmax_t)g->group, g->info->free_blocks, g->info->free_quads, g->info->slot,
	       (uintmax_t)g->info->generation, g->info->crc, g->info->flags & PF_GROUP_META ? " metadata" : "", state);
	if (!g->info->lost && !g->err)
		printf(", %u clear bits, %u clear quads", g->map_free, g->map_free_quads);
	putchar('\n');
}

static int show_groups(struct dump *d, struct pf_set *set, unsigned member, const struct pf_tables *tables,
		       uint64_t *untouched)
{
	struct pf_disk_map *map = aligned_alloc(PF_BLOCK_SIZE, sizeof(*map));
	if (!map)
		return -ENOMEM;
	for (uint64_t i = 0; i < tables->nr_groups; i++) {
		const struct pf_group_info *info = &tables->groups[i];
		struct group_line g = { .member = member, .group = i, .info = info };
		if (!info->lost && !(info->flags & PF_GROUP_INIT)) {
			++*untouched;
			continue;
		}
		if (!info->lost)
			g.err = pf_tables_read_map(set, &set->super, member, i, info, map);
		if (g.err)
			d->nr_damaged++;
		else if (!info->lost) {
			g.map_free = count_free(map);
			g.map_free_quads = count_free_quads(map);
		}
		show_group(d, &g);
	}
	free(map);
	return 0;
}

static int show_member(struct dump *d, struct pf_set *set, unsigned member)
{
	const struct pf_member *m = &set->members[member];
	const struct pf_member_row *row = &set->super.members[member];
	struct pf_tables tables = { 0 };
	uint64_t untouched = 0;
	int err = pf_tables_load(set, &set->super, member, on_bad, d, &tables);
	if (err)
		goto out;
	if (d->json_wanted) {
		json_object(&d->json, NULL);
		json_number(&d->json, "member", member);
		json_name(&d->json, "path", m->io->name);
		json_number(&d->json, "root_slot", row->root_slot);
		json_number(&d->json, "root_generation", row->root_generation);
		json_number(&d->json, "data_start", m->geo.data_start);
		json_number(&d->json, "data_end", m->geo.data_end);
		json_array(&d->json, "groups");
	} else {
		printf("member %u ", member);
		cli_print_name(stdout, m->io->name);
		printf(": table root slot %u generation %ju, data blocks [%ju, %ju), %ju groups\n", row->root_slot,
		       (uintmax_t)row->root_generation, (uintmax_t)m->geo.data_start, (uintmax_t)m->geo.data_end,
		       (uintmax_t)tables.nr_groups);
	}
	err = show_groups(d, set, member, &tables, &untouched);
	if (d->json_wanted) {
		json_end_array(&d->json);
		json_number(&d->json, "untouched_groups", untouched);
		json_end_object(&d->json);
	} else {
		printf("  %ju groups never used\n", (uintmax_t)untouched);
	}
out:
	pf_tables_free(&tables);
	return err;
}

int dump_maps(struct dump *d, struct pf_set *set)
{
	int err = 0;
	if (d->json_wanted)
		json_array(&d->json, "maps");
	for (unsigned i = 0; i < set->nr && !err; i++)
		err = show_member(d, set, i);
	if (d->json_wanted)
		json_end_array(&d->json);
	if (err)
		cli_message("group tables: %s", pf_strerror(err));
	return err;
}
