/* SPDX-License-Identifier: MIT
 * The intent log that a crash has left: what the next mount would redo. */
#include "dump.h"

#include "cli.h"

#include <stdio.h>
#include <string.h>

static void show_ranges(struct dump *d, const struct pf_record *rec)
{
	char text[256];
	struct pf_record_range range;
	if (d->json_wanted)
		json_array(&d->json, "ranges");
	for (uint32_t pos = 0; pf_record_next_range(rec, &pos, &range);) {
		pf_record_range_to_text(&range, text, sizeof(text));
		if (d->json_wanted)
			json_string(&d->json, NULL, text);
		else
			printf("      %s\n", text);
	}
	if (d->json_wanted)
		json_end_array(&d->json);
}

static void show_record(struct dump *d, const struct pf_log_record *from)
{
	char text[PF_RECORD_TEXT_BYTES];
	struct pf_record rec;
	bool valid = pf_record_unpack(from->data, from->len, &rec) == 0, has_ranges = valid && rec.type == PF_RECORD_FILE;
	d->nr_damaged += !valid;
	pf_record_to_text(from->data, from->len, text, sizeof(text));
	if (d->json_wanted) {
		json_object(&d->json, NULL);
		json_number(&d->json, "block", from->lsn);
		json_bool(&d->json, "promised", from->proven);
		json_string(&d->json, "record", text);
		if (has_ranges)
			show_ranges(d, &rec);
		json_end_object(&d->json);
		return;
	}
	printf("  block %-8ju %-12s ", (uintmax_t)from->lsn, from->proven ? "promised" : "not proven");
	cli_print_name(stdout, text);
	putchar('\n');
	if (has_ranges)
		show_ranges(d, &rec);
}

static void show_place(struct dump *d, const struct pf_super *super, uint32_t ring_blocks, bool clean)
{
	if (d->json_wanted) {
		json_number(&d->json, "ring_blocks", ring_blocks);
		json_number(&d->json, "start", super->log_start);
		json_hex(&d->json, "epoch", super->log_epoch);
		json_bool(&d->json, "clean", clean);
		json_array(&d->json, "members");
		for (unsigned i = 0; i < super->nr_log; i++)
			json_number(&d->json, NULL, super->log_members[i]);
		json_end_array(&d->json);
		return;
	}
	printf("intent log: ring of %u blocks on", ring_blocks);
	for (unsigned i = 0; i < super->nr_log; i++)
		printf("%s member %u", i ? "," : "", super->log_members[i]);
	printf(", from block %ju, epoch 0x%016jx%s\n", (uintmax_t)super->log_start, (uintmax_t)super->log_epoch,
	       clean ? "; unmounted cleanly, nothing to redo" : "");
}

int dump_log(struct dump *d, struct pf_set *set)
{
	const struct pf_super *super = &set->super;
	uint32_t ring_blocks = pf_log_ring_blocks(set, super);
	bool clean = super->flags & PF_SUPER_CLEAN;
	struct pf_log_scan scan = { 0 };
	struct pf_diag diag = { "" };
	int err = ring_blocks && !clean ? pf_log_scan(set, super, &scan, &diag) : 0;
	if (err) {
		cli_message("%s", diag.text);
		d->nr_damaged += pf_is_damage(err);
	}
	if (d->json_wanted)
		json_object(&d->json, "log");
	if (ring_blocks)
		show_place(d, super, ring_blocks, clean);
	else if (!d->json_wanted)
		printf("intent log: %s\n", pf_has(&super->features, PF_FEAT_INTENT_LOG) ? "not used yet" : "none before version 6");
	if (d->json_wanted)
		json_array(&d->json, "records");
	for (unsigned i = 0; i < scan.nr_records; i++)
		show_record(d, &scan.records[i]);
	if (d->json_wanted) {
		json_end_array(&d->json);
		json_end_object(&d->json);
	}
	pf_log_scan_free(&scan);
	return pf_is_damage(err) ? 0 : err;
}
