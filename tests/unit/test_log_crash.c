/* SPDX-License-Identifier: MIT
 * Power cuts: seeded workloads on a log, then at every write and flush the states that the disks could be in. What the scan finds
 * must be a prefix of what was appended, with everything that a commit had acknowledged, and the data of what is proven or
 * acknowledged must be there. Then a second mount goes on from such a state, and loses power too. Each rule broken is noticed. */
#include "log_util.h"

#define DISKS_MAX   5
#define ACKS_MAX    400
#define PENDING_MAX 256
#define FLYING_MAX  6
#define DATA_BLOCK  1500 /* behind the log ring of a disk of 16 MiB; a data block for each record */

struct point { /* from event 'at' on */
	size_t at;
	uint64_t lsn, number;
};

struct flying { /* data that goes out with the next commit */
	struct pf_log_writes writes;
	struct pf_aio_req req;
	uint8_t data[BLOCK] __attribute__((aligned(BLOCK)));
};

struct run {
	struct rig rig;
	struct flying flying[FLYING_MAX];
	unsigned nr_flying;
	unsigned nr_log, nr_disks;
	uint64_t epoch;
	struct rng rng;
	/* acks: records below 'number' were promised; starts: superblocks, each saying that the log begins at 'lsn' with 'number' */
	struct point acks[ACKS_MAX], starts[ACKS_MAX];
	unsigned nr_acks, nr_starts;
	/* a checkpoint under way */
	struct point frozen;
	bool freezing, super_durable;
	uint64_t break_rules;
	unsigned nr_states;
	const char *violation; /* the first one */
};

static uint8_t data[BLOCK] __attribute__((aligned(BLOCK)));

static uint64_t dice(struct run *run, uint64_t sides)
{
	return rng_below(&run->rng, sides);
}

/* -- the workload --------------------------------------------------------------------------------------------------- */
static void add_point(struct point *points, unsigned *nr, struct point point)
{
	ck_assert_uint_lt(*nr, ACKS_MAX);
	points[(*nr)++] = point;
}

static size_t now(struct run *run)
{
	return simworld_log_len(run->rig.world);
}

static void fill_data(uint64_t epoch, uint64_t number)
{
	for (unsigned i = 0; i < BLOCK; i += 16) {
		memcpy(data + i, &epoch, 8);
		memcpy(data + i + 8, &number, 8);
	}
}

/* A record with data that goes out with the commit. */
static void append_with_data(struct run *run, uint32_t len, const uint64_t *extra)
{
	struct flying *f = &run->flying[run->nr_flying++];
	uint8_t *bytes = malloc(len);
	memcpy(f->data, data, BLOCK);
	pf_set_req(run->rig.set, &f->req, PF_AIO_WRITE, extra[1], f->data, 1);
	f->writes = (struct pf_log_writes){ .reqs = &f->req, .nr = 1 };
	record_fill(bytes, len, run->rig.next++, extra);
	struct pf_log_part part = { bytes, len };
	pf_log_append_with(run->rig.log, &part, 1, UINT32_C(1) << pf_addr_member(extra[1]), &f->writes);
	free(bytes);
}

static void step_commit(struct run *run)
{
	int err = pf_log_commit(run->rig.log);
	ck_assert(err == 0 || err == -EAGAIN);
	for (; run->nr_flying > 0; run->nr_flying--) {
		struct flying *f = &run->flying[run->nr_flying - 1];
		if (err)
			pf_log_take_back(run->rig.log, &f->writes);
		ck_assert(err || f->writes.done);
		if (!f->writes.done)
			pf_aio_run(run->rig.set->aio, &f->req, 1);
	}
	if (!err)
		add_point(run->acks, &run->nr_acks, (struct point){ now(run), 0, run->rig.next });
}

/* Half of the records name a block of data, that is written before or by the commit. */
static void step_append(struct run *run)
{
	uint64_t extra[2] = { run->epoch, 0 };
	uint32_t members = 0;
	uint32_t len = (uint32_t)(32 + 8 * dice(run, dice(run, 8) == 0 ? 3000 : 60));
	if (dice(run, 2)) {
		unsigned id = (unsigned)dice(run, run->nr_disks);
		extra[1] = pf_addr_make(id, DATA_BLOCK + run->rig.next % 1000);
		fill_data(run->epoch, run->rig.next);
		if (dice(run, 2)) {
			append_with_data(run, len, extra);
			if (run->nr_flying == FLYING_MAX)
				step_commit(run);
			return;
		}
		if (pf_set_write(run->rig.set, extra[1], data, 1) != 0)
			return; /* an injected fault: the caller would have put it elsewhere */
		members = UINT32_C(1) << id;
	}
	rig_append(&run->rig, len, members, extra);
}

/* A checkpoint in three steps: it freezes, its superblock is durable, the log hears of it. */
static void step_checkpoint(struct run *run)
{
	if (!run->freezing) {
		if (run->nr_flying >
		    0) /* the caller of the log sees to it that no freeze comes between a record and its data */
			step_commit(run);
		run->frozen.lsn = pf_log_freeze(run->rig.log);
		run->frozen.number = run->rig.next;
		run->freezing = true;
		run->super_durable = false;
	} else if (!run->super_durable) {
		ck_assert_int_eq(pf_set_flush(run->rig.set, UINT32_MAX, NULL), 0);
		run->frozen.at = now(run);
		add_point(run->starts, &run->nr_starts, run->frozen);
		run->super_durable = true;
	} else {
		pf_log_release(run->rig.log, run->frozen.lsn);
		run->freezing = false;
	}
}

static void step_fault(struct run *run)
{
	simworld_clear_faults(run->rig.world);
	struct sim_fault fault = {
		.disk = simworld_disk(run->rig.world, (unsigned)dice(run, run->nr_log)),
		.ops = SIM_WRITE,
		.kind = dice(run, 2) ? SIM_TEAR : SIM_FAIL,
		.skip = dice(run, 3),
		.count = 1,
		.arg = 512,
	};
	simworld_add_fault(run->rig.world, &fault);
}

static void workload(struct run *run, unsigned nr_steps)
{
	run->rig.env.break_rules = run->break_rules;
	simworld_record(run->rig.world);
	add_point(run->starts, &run->nr_starts, (struct point){ 0, run->rig.super.log_start, run->rig.next });
	for (unsigned i = 0; i < nr_steps; i++) {
		unsigned what = (unsigned)dice(run, 100);
		if (what < 50)
			step_append(run);
		else if (what < 80)
			step_commit(run);
		else if (what < 96 || run->break_rules)
			step_checkpoint(run);
		else if (what < 98)
			step_fault(run);
		else
			pf_log_lose(run->rig.log);
		if (pf_log_wants_checkpoint(run->rig.log))
			step_checkpoint(run);
	}
	simworld_clear_faults(run->rig.world);
}

/* -- what must be there --------------------------------------------------------------------------------------------- */
static struct point last_before(const struct point *points, unsigned nr, size_t cut)
{
	struct point last = { 0 };
	for (unsigned i = 0; i < nr && points[i].at <= cut; i++)
		last = points[i];
	return last;
}

static bool data_is_there(struct run *run, struct simworld *world, uint64_t addr, uint64_t number)
{
	static uint8_t found[BLOCK];
	simdisk_peek(simworld_disk(world, pf_addr_member(addr)), pf_addr_block(addr) * BLOCK, found, BLOCK);
	fill_data(run->epoch, number);
	return memcmp(found, data, BLOCK) == 0;
}

static const char *judge(struct run *run, struct simworld *world, const struct pf_log_scan *scan, uint64_t first,
			 uint64_t acked)
{
	for (unsigned i = 0; i < scan->nr_records; i++) {
		const struct pf_log_record *rec = &scan->records[i];
		uint64_t extra[2];
		memcpy(extra, (const uint8_t *)rec->data + 16, 16);
		if (record_number(rec) != first + i)
			return "not a prefix";
		if (extra[0] != run->epoch)
			return "a record of another mount";
		bool promised = rec->proven || first + i < acked;
		if (promised && extra[1] && !data_is_there(run, world, extra[1], first + i))
			return "the data of a promised record is not there";
	}
	if (first + scan->nr_records < acked)
		return "a promised record is not there";
	return NULL;
}

/* The disks as a power cut left them; takes @world unless @next wants it: then that is the rig of the next mount. */
static void check_state(struct run *run, struct simworld *world, size_t cut, struct run *next)
{
	uint32_t rings[DISKS_MAX];
	struct rig rig;
	struct pf_log_scan scan;
	struct pf_diag diag;
	struct point start = last_before(run->starts, run->nr_starts, cut);
	for (unsigned i = 0; i < run->nr_disks; i++)
		rings[i] = run->rig.super.members[i].log_blocks;
	rig_assemble(&rig, world, rings, run->epoch, start.lsn);
	rig.env.break_rules = run->break_rules;
	int err = rig_scan(&rig, start.lsn, &scan, &diag);
	uint64_t acked = last_before(run->acks, run->nr_acks, cut).number;
	const char *violation = err ? "the scan fails" : judge(run, world, &scan, start.number, acked);
	run->nr_states++;
	if (violation && !run->violation)
		run->violation = violation;
	if (next) {
		ck_assert(run->break_rules || !violation);
		memset(next, 0, sizeof(*next));
		uint64_t end = err ? start.lsn : scan.end;
		pf_set_close(rig.set);
		rig_assemble(&next->rig, world, rings, run->epoch + 1, end);
		ck_assert_int_eq(pf_log_open(next->rig.set, &next->rig.super, run->epoch + 1, end, &next->rig.log), 0);
		next->nr_log = run->nr_log;
		next->nr_disks = run->nr_disks;
		next->epoch = run->epoch + 1;
		next->rng = run->rng;
		next->break_rules = run->break_rules;
	} else {
		rig_free(&rig);
	}
	pf_log_scan_free(&scan);
}

static struct simworld *crash(struct run *run, size_t cut, uint64_t seed)
{
	static struct sim_fate fates[PENDING_MAX];
	size_t nr = simworld_pending(run->rig.world, cut, NULL, 0);
	ck_assert_uint_le(nr, PENDING_MAX);
	sim_fates_seeded(seed, fates, nr);
	return simworld_crash(run->rig.world, cut, fates);
}

/* Where most of the log is in flight: there it can be left with a hole, and blocks behind it. */
static size_t worst_cut(struct run *run)
{
	size_t worst = 0, events[PENDING_MAX];
	uint64_t most = 0;
	for (size_t cut = 0; cut <= now(run); cut++) {
		size_t nr = simworld_pending(run->rig.world, cut, events, PENDING_MAX);
		uint64_t bytes = 0;
		for (size_t i = 0; i < nr; i++) {
			const struct sim_event *event = simworld_event(run->rig.world, events[i]);
			bytes += event->len_bytes * (event->disk < run->nr_log);
		}
		if (bytes >= most) {
			most = bytes;
			worst = cut;
		}
	}
	return worst;
}

/* Of each write that is in flight the first sector is lost. */
static struct simworld *crash_with_holes(struct run *run, size_t cut)
{
	static struct sim_fate fates[PENDING_MAX];
	for (unsigned i = 0; i < PENDING_MAX; i++)
		fates[i] = (struct sim_fate){ SIM_TORN_TAIL, 0, 512 };
	return simworld_crash(run->rig.world, cut, fates);
}

static void check_all(struct run *run)
{
	static struct sim_fate kept[PENDING_MAX];
	for (unsigned i = 0; i < PENDING_MAX; i++)
		kept[i].kind = SIM_KEPT;
	size_t nr = now(run);
	for (size_t cut = 0; cut <= nr; cut++) {
		check_state(run, simworld_crash(run->rig.world, cut, NULL), cut, NULL);
		check_state(run, simworld_crash(run->rig.world, cut, kept), cut, NULL);
		for (unsigned i = 0; i < 3; i++)
			check_state(run, crash(run, cut, rng_next(&run->rng)), cut, NULL);
	}
}

/* Two mounts with a power cut between, and every cut of both. Returns the first violation. */
static const char *explore(uint64_t seed, unsigned nr_log, unsigned nr_steps, uint64_t break_rules, unsigned *nr_states)
{
	static struct run run, second;
	static const uint32_t rings[DISKS_MAX] = { 96, 64, 110, 0, 0 };
	uint32_t own[DISKS_MAX] = { 0 };
	memcpy(own, rings, nr_log * sizeof(own[0]));
	memset(&run, 0, sizeof(run));
	rig_new(&run.rig, nr_log + 2, own, seed % 7 * 13);
	run.nr_log = nr_log;
	run.nr_disks = nr_log + 2;
	run.epoch = 1;
	run.rng.state = seed;
	run.break_rules = break_rules;
	workload(&run, nr_steps);
	check_all(&run);
	size_t cut = worst_cut(&run);
	check_state(&run, crash_with_holes(&run, cut), cut, &second);
	workload(&second, nr_steps / 2);
	check_all(&second);
	*nr_states += run.nr_states + second.nr_states;
	const char *violation = run.violation ? run.violation : second.violation;
	rig_free(&run.rig);
	rig_free(&second.rig);
	return violation;
}

START_TEST(power_cuts)
{
	unsigned nr_states = 0;
	for (uint64_t seed = 1; seed <= 12; seed++) {
		const char *violation = explore(seed, (unsigned)(1 + seed % 3), 60, 0, &nr_states);
		ck_assert_msg(!violation, "seed %lu: %s", (unsigned long)seed, violation);
	}
	ck_assert_uint_gt(nr_states, 2000);
}
END_TEST

/* -- what each rule is for ------------------------------------------------------------------------------------------ */
static void bites(uint64_t break_rules, const char *how)
{
	unsigned nr_states = 0;
	for (uint64_t seed = 1; seed <= 30; seed++) {
		const char *violation = explore(seed, (unsigned)(1 + seed % 2), 40, break_rules, &nr_states);
		if (violation && strcmp(violation, how) == 0)
			return;
	}
	ck_abort_msg("rule %jx broken: not noticed in %u states", (uintmax_t)break_rules, nr_states);
}

START_TEST(broken_rules_are_noticed)
{
	bites(PF_BREAK_LOG_NO_FLUSH, "a promised record is not there");
	bites(PF_BREAK_LOG_FLUSH_EARLY, "a promised record is not there");
	bites(PF_BREAK_LOG_SKIP_DATA_MEMBERS, "the data of a promised record is not there");
	bites(PF_BREAK_LOG_REWRITE, "a promised record is not there");
	bites(PF_BREAK_LOG_OLD_EPOCH, "not a prefix");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("log_crash");
	TCase *tc = tcase_create("log_crash");
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, power_cuts);
	tcase_add_test(tc, broken_rules_are_noticed);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
