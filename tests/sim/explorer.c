/* SPDX-License-Identifier: MIT */
#include "sim/explorer.h"

#include "ondisk/ondisk_log.h"
#include "ondisk/ondisk_super.h"

#include <stdlib.h>

#define LIFE_OPS       25 /* operations between the first crash and the second */
#define LIFE_OPS_SYNCS 60

/* -- names ---------------------------------------------------------------------------------------------------------- */
void explore_name(const struct explore_id *id, char *buf, size_t cap)
{
	const struct workload_config *r = &id->run;
	int n = snprintf(buf, cap, "v%u:m%u:p%s:seed%ju:ops%u:size%ju:cache%ju:profile%d:break%jx:discard%d:cut%zu:sub%u",
			 r->pool.version, r->pool.nr_members, r->pool.placement == PF_PLACE_FILE ? "file" : "stripe",
			 (uintmax_t)r->pool.seed, r->nr_ops, (uintmax_t)r->pool.size_bytes >> 20,
			 (uintmax_t)r->pool.cache_bytes >> 10, r->profile, (uintmax_t)r->pool.break_rules, r->pool.discard, id->cut,
			 id->sub);
	if (id->again && n > 0 && (size_t)n < cap)
		say(buf + n, cap - (size_t)n, ":recut%zu:resub%u", id->recut, id->resub);
}

bool explore_parse(const char *text, struct explore_id *id)
{
	char place[8] = "";
	uintmax_t seed, size, cache, rules;
	struct workload_config *r = &id->run;
	int n = 0, discard = 0;
	memset(id, 0, sizeof(*id));
	if (sscanf(text, "v%u:m%u:p%6[a-z]:seed%ju:ops%u:size%ju:cache%ju:profile%d:break%jx:discard%d:cut%zu:sub%u%n",
		   &r->pool.version, &r->pool.nr_members, place, &seed, &r->nr_ops, &size, &cache, &r->profile,
		   &rules, &discard, &id->cut, &id->sub, &n) != 12 ||
	    !n)
		return false;
	r->pool.break_rules = rules;
	r->pool.discard = discard;
	r->pool.seed = seed;
	r->pool.size_bytes = size << 20;
	r->pool.cache_bytes = cache << 10;
	r->pool.placement = strcmp(place, "stripe") ? PF_PLACE_FILE : PF_PLACE_STRIPE;
	if (text[n])
		id->again = sscanf(text + n, ":recut%zu:resub%u", &id->recut, &id->resub) == 2;
	return id->again || !text[n];
}

/* -- which writes survive ------------------------------------------------------------------------------------------- */
static bool has_magic(const struct sim_event *event, uint64_t expected)
{
	struct le64 magic;
	if (event->op != SIM_WRITE)
		return false;
	memcpy(&magic, event->data, sizeof(magic));
	return pf_get64(magic) == expected;
}

static bool is_super(const struct sim_event *event)
{
	return event->len_bytes == PF_BLOCK_SIZE && has_magic(event, PF_SUPER_MAGIC);
}

static bool is_log(const struct sim_event *event)
{
	return has_magic(event, PF_LOG_MAGIC);
}

struct chooser {
	struct simworld *world;
	const size_t *events;
	struct sim_fate *fates;
	size_t nr;
	struct rng rng;
};

static void all(struct chooser *c, enum sim_fate_kind kind)
{
	for (size_t k = 0; k < c->nr; k++)
		c->fates[k] = (struct sim_fate){ .kind = kind };
}

static void all_but_one(struct chooser *c, enum sim_fate_kind others, enum sim_fate_kind one)
{
	all(c, others);
	size_t k = (size_t)rng_below(&c->rng, c->nr);
	c->fates[k].kind = one;
	c->fates[k].arg = rng_below(&c->rng, simworld_event(c->world, c->events[k])->len_bytes);
}

/* Every write of one disk, and nothing (or all) of the others. */
static void one_disk(struct chooser *c, bool kept)
{
	unsigned disk = (unsigned)rng_below(&c->rng, simworld_nr_disks(c->world));
	for (size_t k = 0; k < c->nr; k++)
		c->fates[k].kind = (simworld_event(c->world, c->events[k])->disk == disk) == kept ? SIM_KEPT : SIM_LOST;
}

/* What is of this kind, and nothing else; or all but that. */
static void only(struct chooser *c, bool (*is_kind)(const struct sim_event *), bool kept)
{
	for (size_t k = 0; k < c->nr; k++)
		c->fates[k].kind = is_kind(simworld_event(c->world, c->events[k])) == kept ? SIM_KEPT : SIM_LOST;
}

/* All but the beginning of what was written of the log, on each disk: the rest is of a time that never was. */
static void no_log_head(struct chooser *c)
{
	uint64_t nr_blocks = 1 + rng_skewed(&c->rng, 15);
	uint32_t seen = 0;
	all(c, SIM_KEPT);
	for (size_t k = 0; k < c->nr; k++) {
		const struct sim_event *event = simworld_event(c->world, c->events[k]);
		if (!is_log(event) || seen >> event->disk & 1)
			continue;
		seen |= 1u << event->disk;
		c->fates[k].kind = event->len_bytes > nr_blocks * PF_BLOCK_SIZE ? SIM_TORN_TAIL : SIM_LOST;
		c->fates[k].arg = nr_blocks * PF_BLOCK_SIZE;
	}
}

/* All up to some point in time, or all from there on. */
static void one_side(struct chooser *c, bool early)
{
	size_t at = (size_t)rng_below(&c->rng, c->nr + 1);
	for (size_t k = 0; k < c->nr; k++)
		c->fates[k].kind = (k < at) == early ? SIM_KEPT : SIM_LOST;
}

/* Each on its own; of some states nearly all is there, of others nearly nothing. */
static void mixed(struct chooser *c)
{
	static const enum sim_fate_kind torn[] = { SIM_TORN_HEAD, SIM_TORN_TAIL, SIM_TORN_ANY };
	uint64_t keep_percent = rng_below(&c->rng, 101);
	for (size_t k = 0; k < c->nr; k++) {
		struct sim_fate *f = &c->fates[k];
		f->kind = rng_below(&c->rng, 100) < keep_percent ? SIM_KEPT : SIM_LOST;
		if (rng_one_in(&c->rng, 5))
			f->kind = torn[rng_below(&c->rng, 3)];
		f->rank = rng_one_in(&c->rng, 8) ? -1 : 0;
		f->arg = rng_skewed(&c->rng, simworld_event(c->world, c->events[k])->len_bytes);
	}
}

static void choose(struct chooser *c, unsigned sub)
{
	all(c, sub ? SIM_KEPT : SIM_LOST);
	if (sub < 2 || !c->nr)
		return;
	switch (sub == 2 ? 4 : sub == 3 ? 12 : rng_below(&c->rng, 16)) {
	case 0:
		all_but_one(c, SIM_KEPT, SIM_LOST);
		break;
	case 1:
		all_but_one(c, SIM_LOST, SIM_KEPT);
		break;
	case 2:
		all_but_one(c, SIM_KEPT, SIM_TORN_HEAD);
		break;
	case 3:
		all_but_one(c, rng_one_in(&c->rng, 2) ? SIM_KEPT : SIM_LOST, SIM_TORN_ANY);
		break;
	case 4:
		only(c, is_super, true);
		break;
	case 5:
		only(c, is_super, false);
		break;
	case 6:
		one_disk(c, true);
		break;
	case 7:
		one_disk(c, false);
		break;
	case 8:
		one_side(c, true);
		break;
	case 9:
		one_side(c, false);
		break;
	case 10:
		only(c, is_log, true);
		break;
	case 11:
		only(c, is_log, false);
		break;
	case 12:
		no_log_head(c);
		break;
	default:
		mixed(c);
		break;
	}
}

static struct simworld *crash(struct simworld *world, size_t cut, unsigned sub, uint64_t seed)
{
	size_t nr = simworld_pending(world, cut, NULL, 0);
	size_t *events = calloc(nr + 1, sizeof(*events));
	struct chooser c = { .world = world, .events = events, .nr = nr };
	c.fates = calloc(nr + 1, sizeof(*c.fates));
	c.rng.state = rng_mix(seed ^ rng_mix(cut) ^ sub);
	simworld_pending(world, cut, events, nr);
	choose(&c, sub);
	struct simworld *crashed = simworld_crash(world, cut, c.fates);
	free(c.fates);
	free(events);
	return crashed;
}

/* One copy of the log is gone: zeros. */
static void lose_log_copy(struct simworld *world, unsigned disk)
{
	struct simdisk *d = simworld_disk(world, disk);
	static const uint8_t zeros[PF_BLOCK_SIZE];
	struct pf_geometry geo = simpool_geometry(d);
	for (uint64_t b = 0; b < geo.log_blocks; b++) {
		struct le64 magic;
		uint64_t off = (geo.log_block + b) * PF_BLOCK_SIZE;
		simdisk_peek(d, off, &magic, sizeof(magic));
		if (pf_get64(magic) == PF_LOG_MAGIC)
			simdisk_poke(d, off, zeros, sizeof(zeros));
	}
}

/* -- one state ------------------------------------------------------------------------------------------------------ */
static struct simpool *adopt(struct explorer *e, const struct explore_id *id, struct simworld *world)
{
	struct simpool_config config = id->run.pool;
	config.seed = rng_mix(config.seed ^ id->cut) ^ id->sub;
	/* what concerns the recovery is left out there */
	config.break_rules &= PF_BREAK_REPLAY_UNVERIFIED | PF_BREAK_REPLAY_CHECKPOINT | PF_BREAK_REPLAY_OLD_EPOCH |
			      PF_BREAK_REPLAY_UNCLAIMED | PF_BREAK_LOG_OLD_EPOCH | PF_BREAK_LOG_FORGETS_DATA_ID;
	config.verbose = e->verbose;
	struct simpool *s = simpool_adopt(&config, world);
	s->torn_supers = true;
	s->env.now_ns = e->w.s->env.now_ns;
	return s;
}

/* What a read-only mount shows keeps the promise too, and nothing is written. */
static int look(struct simpool *s, struct oracle *oracle, size_t cut, char *why, size_t cap)
{
	simworld_record(s->world);
	if (simpool_open(s, true, why, cap))
		return -1;
	struct model *got = model_new();
	int err = model_load(s->pool, got, why, cap);
	if (!err)
		err = oracle_judge(oracle, cut, got, why, cap);
	if (!err)
		err = simpool_close(s, why, cap);
	if (err) {
		char text[1500];
		say(text, sizeof(text), "%s", why);
		say(why, cap, "read-only: %s", text);
	} else if (simworld_log_len(s->world)) {
		say(why, cap, "a read-only mount has written");
		err = -1;
	}
	model_free(got);
	simpool_abandon(s);
	return err;
}

/* Where a mount, the first thing in the log of the disks, has begun its epoch. */
static size_t epoch_end(struct simworld *world, size_t end)
{
	size_t k = 0;
	while (k < end && (is_super(simworld_event(world, k)) || simworld_event(world, k)->op == SIM_FLUSH))
		k++;
	return k;
}

/* Opens the crashed world and compares, closes and checks it. */
static int recover(struct explorer *e, struct simpool *s, struct oracle *oracle, size_t cut, char *why, size_t cap)
{
	simworld_record(s->world);
	if (simpool_open(s, false, why, cap))
		return -1;
	size_t opened = simworld_log_len(s->world);
	e->nr_redone += epoch_end(s->world, opened) < opened;
	struct model *got = model_new();
	int err = model_load(s->pool, got, why, cap);
	if (!err)
		err = oracle_judge(oracle, cut, got, why, cap);
	model_free(got);
	if (!err)
		err = simpool_close(s, why, cap);
	if (!err)
		err = simpool_check(s, why, cap);
	return err;
}

/* The recovered pool goes on working, and loses power once more: perhaps while it still recovers. */
static int second_life(struct explorer *e, const struct explore_id *id, struct simworld *world, char *why, size_t cap)
{
	struct explore_id next = *id;
	struct workload life;
	next.run.pool.seed = rng_mix(id->run.pool.seed ^ id->cut);
	next.run.nr_ops = id->run.profile >= WORKLOAD_SYNCS ? LIFE_OPS_SYNCS : LIFE_OPS;
	int err = workload_continue(&life, &next.run, adopt(e, id, world));
	if (err) {
		say(why, cap, "second life: %s", life.why);
	} else {
		size_t end = id->recut % 2 ? simworld_log_len(world) : life.opened;
		size_t cut = id->recut / 2 % (end + 1), epoch = epoch_end(world, life.opened);
		e->nr_cut_epoch += cut && cut < epoch;
		e->nr_cut_redoing += cut >= epoch && cut < life.opened;
		struct simworld *twice = crash(world, cut, id->resub, next.run.pool.seed);
		struct simpool *s = adopt(e, id, twice);
		err = recover(e, s, life.oracle, cut, why, cap);
		simpool_free(s);
	}
	workload_free(&life);
	return err;
}

int explorer_state(struct explorer *e, const struct explore_id *id, char *why, size_t cap)
{
	struct simworld *world = crash(e->w.s->world, id->cut, id->sub, id->run.pool.seed);
	if (id->sub % 8 == 5 && id->run.pool.version >= 6 && id->run.pool.nr_members > 1) {
		lose_log_copy(world, id->sub / 8 % 2);
		e->nr_one_copy++;
	}
	struct simworld *again = id->again ? simworld_copy(world) : NULL;
	struct simpool *s = adopt(e, id, world);
	int err = 0;
	/* at boot fsck comes before the mount */
	s->missing_supers = true;
	if (id->sub % 4 == 0)
		err = simpool_check(s, why, cap);
	s->missing_supers = false;
	if (!err && id->sub % 4 == 1)
		err = look(s, e->w.oracle, id->cut, why, cap);
	if (!err)
		err = recover(e, s, e->w.oracle, id->cut, why, cap);
	simpool_free(s);
	if (again && !err)
		err = second_life(e, id, again, why, cap);
	else
		simworld_free(again);
	return err;
}

/* -- many states ---------------------------------------------------------------------------------------------------- */
int explorer_run(struct explorer *e, const struct workload_config *config)
{
	memset(e, 0, sizeof(*e));
	e->max_bad = 5;
	int err = workload_run(&e->w, config);
	if (err) {
		struct explore_id id = { .run = *config };
		char name[300];
		explore_name(&id, name, sizeof(name));
		say(e->first_bad, sizeof(e->first_bad), "%s: the run itself: %s", name, e->w.why);
		e->nr_bad++;
	}
	return err;
}

void explorer_free(struct explorer *e)
{
	workload_free(&e->w);
}

static void try_state(struct explorer *e, const struct explore_id *id)
{
	char why[2000] = "", name[300];
	e->nr_states++;
	e->nr_again += id->again;
	if (!explorer_state(e, id, why, sizeof(why)))
		return;
	explore_name(id, name, sizeof(name));
	if (!e->nr_bad++)
		say(e->first_bad, sizeof(e->first_bad), "%s: %s", name, why);
	if (!e->quiet) {
		printf("FAIL: %s: %s\nrepeat with: test_crash --replay %s\n", name, why, name);
		fflush(stdout);
	}
}

/* Flushes and superblocks are where the order matters: cuts beside them are taken more often than others. */
static bool interesting(struct simworld *world, size_t at)
{
	const struct sim_event *event = simworld_event(world, at);
	return event->op == SIM_FLUSH || is_super(event);
}

/* Places in the log of the run. */
struct marks {
	size_t *at;
	size_t nr;
};

static struct marks find_marks(struct simworld *world, bool (*wanted)(struct simworld *world, size_t at))
{
	size_t len = simworld_log_len(world);
	struct marks m = { .at = calloc(len + 1, sizeof(*m.at)) };
	for (size_t k = 0; k < len; k++) {
		if (wanted(world, k))
			m.at[m.nr++] = k;
	}
	return m;
}

/* Commits of several blocks. First those with which a log begins: when their beginning is missing, the next mount writes to the same
 * places under its own epoch, and what is left of them lies behind that. */
static struct marks find_long_commits(struct simworld *world)
{
	size_t len = simworld_log_len(world);
	struct marks first = { .at = calloc(len + 1, sizeof(*first.at)) }, later = { .at = calloc(len + 1, sizeof(*later.at)) };
	uint64_t start = 0;
	for (size_t k = 0; k < len; k++) {
		const struct sim_event *event = simworld_event(world, k);
		if (is_super(event))
			start = pf_get64(((const struct pf_disk_super *)event->data)->log_start);
		if (!is_log(event) || event->len_bytes == PF_BLOCK_SIZE)
			continue;
		struct marks *m = pf_get64(((const struct pf_disk_log_head *)event->data)->lsn) == start ? &first : &later;
		m->at[m->nr++] = k;
	}
	free(first.nr ? later.at : first.at);
	return first.nr ? first : later;
}

void explorer_states(struct explorer *e, uint64_t nr_states)
{
	struct simworld *world = e->w.s->world;
	size_t len = simworld_log_len(world);
	struct rng rng = { .state = rng_mix(e->w.config.pool.seed ^ UINT64_C(0x637574)) };
	struct marks marks = find_marks(world, interesting), logs = find_long_commits(world);
	/* ascending cuts: each builds on the one before */
	uint64_t per_cut = 4, nr_cuts = nr_states / per_cut + 1;
	for (uint64_t k = 0; k < nr_cuts && e->nr_bad < e->max_bad; k++) {
		struct explore_id id = { .run = e->w.config };
		size_t from = (size_t)(len * k / nr_cuts), to = (size_t)(len * (k + 1) / nr_cuts) + 1;
		bool no_head = logs.nr && rng_one_in(&rng, 6);
		id.cut = from + (size_t)rng_below(&rng, to - from);
		if (no_head)
			id.cut = logs.at[logs.nr * k / nr_cuts] + 1;
		else if (marks.nr && !rng_one_in(&rng, 4))
			id.cut = marks.at[marks.nr * k / nr_cuts] + (size_t)rng_below(&rng, 2);
		for (unsigned n = 0; n < per_cut && e->nr_bad < e->max_bad; n++) {
			id.sub = n < 1 ? (unsigned)rng_below(&rng, 4) : 4 + (unsigned)rng_below(&rng, 1000);
			id.sub = no_head ? 3 : id.sub;
			id.again = rng_one_in(&rng, 6) || id.sub == 3;
			id.recut = id.again ? (size_t)rng_below(&rng, 20000) : 0;
			id.resub = id.again ? (unsigned)rng_below(&rng, 60) : 0;
			try_state(e, &id);
		}
	}
	free(marks.at);
	free(logs.at);
}
