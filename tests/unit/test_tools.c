/* SPDX-License-Identifier: MIT
 * What the command line programs share: sizes, numbers, names, JSON written and read. */
#include "../../tools/cli.h"
#include "../../tools/json.h"
#include "../../tools/utf8.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* -- sizes ---------------------------------------------------------------------------------------------------------- */
START_TEST(sizes_are_read)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} good[] = {
		{ "0", 0 }, { "4096", 4096 }, { "7B", 7 }, { "1K", 1024 }, { "1k", 1024 }, { "1KiB", 1024 }, { "1KB", 1000 },
		{ "16M", 16u << 20 }, { "2G", UINT64_C(2) << 30 }, { "3T", UINT64_C(3) << 40 }, { "1P", UINT64_C(1) << 50 },
		{ "15E", UINT64_C(15) << 60 }, { "1.5K", 1536 }, { "0.25G", UINT64_C(1) << 28 }, { "1.5KB", 1500 },
		{ "18446744073709551615", UINT64_MAX },
	};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		uint64_t bytes = 1;
		ck_assert_msg(cli_parse_size(good[i].text, &bytes), "%s", good[i].text);
		ck_assert_msg(bytes == good[i].bytes, "%s is %ju", good[i].text, (uintmax_t)bytes);
	}
}
END_TEST

START_TEST(wrong_sizes_are_refused)
{
	static const char *const bad[] = { "", "x", "-1", "+1", " 1", "1 ", "1X", "1KK", "1Ki", "1.K", "1.", ".5K", "0x10", "16E",
					   "18446744073709551616", "99999999999G", "1,5K" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		uint64_t bytes;
		ck_assert_msg(!cli_parse_size(bad[i], &bytes), "'%s' was taken", bad[i]);
	}
}
END_TEST

START_TEST(sizes_are_written)
{
	char buf[CLI_SIZE_LEN];
	ck_assert_str_eq(cli_size(buf, 0), "0 bytes");
	ck_assert_str_eq(cli_size(buf, 1023), "1023 bytes");
	ck_assert_str_eq(cli_size(buf, 1024), "1 KiB");
	ck_assert_str_eq(cli_size(buf, 1536), "1.50 KiB");
	ck_assert_str_eq(cli_size(buf, UINT64_C(1) << 40), "1 TiB");
	ck_assert_str_eq(cli_size(buf, UINT64_MAX), "16.00 EiB");
}
END_TEST

START_TEST(numbers_and_uuids)
{
	uint64_t n;
	uint8_t uuid[16];
	ck_assert(cli_parse_number("5", 5, &n) && n == 5);
	ck_assert(cli_parse_number("0x10", 16, &n) && n == 16);
	ck_assert(!cli_parse_number("6", 5, &n));
	ck_assert(!cli_parse_number("-1", UINT64_MAX, &n));
	ck_assert(!cli_parse_number("5x", 9, &n));
	ck_assert(!cli_parse_number("", 9, &n));
	ck_assert(cli_parse_uuid("01234567-89AB-cdef-0123-456789abcdef", uuid) && uuid[0] == 1 && uuid[15] == 0xef);
	ck_assert(!cli_parse_uuid("01234567-89ab-cdef-0123-456789abcde", uuid));
	ck_assert(!cli_parse_uuid("00000000-0000-0000-0000-000000000000", uuid));
}
END_TEST

/* -- names ---------------------------------------------------------------------------------------------------------- */
START_TEST(utf8_is_judged)
{
	static const struct {
		const char *bytes;
		size_t len;
	} cases[] = {
		{ "a", 1 }, { "\xc3\xa4", 2 }, { "\xe2\x82\xac", 3 }, { "\xf0\x9f\x98\x80", 4 }, { "\xf4\x8f\xbf\xbf", 4 },
		{ "\x80", 0 }, { "\xc3", 0 }, { "\xc0\x80", 0 }, { "\xc1\xbf", 0 }, { "\xe0\x9f\xbf", 0 }, { "\xed\xa0\x80", 0 },
		{ "\xf0\x8f\xbf\xbf", 0 }, { "\xf4\x90\x80\x80", 0 }, { "\xf5\x80\x80\x80", 0 }, { "\xe2\x82", 0 },
		{ "\xe2\x82\x28", 0 }, { "\xff", 0 },
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t len = utf8_length((const unsigned char *)cases[i].bytes, strlen(cases[i].bytes));
		ck_assert_msg(len == cases[i].len, "case %zu: %zu", i, len);
	}
}
END_TEST

START_TEST(names_stay_on_their_line)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	cli_print_name(f, "a\n\t\x1b[31m\\\xff\xc3\xa4");
	fclose(f);
	ck_assert_str_eq(text, "a\\012\\011\\033[31m\\134\\377\xc3\xa4");
	free(text);
}
END_TEST

/* -- JSON ----------------------------------------------------------------------------------------------------------- */
static char *write_sample(void)
{
	static const uint8_t uuid[16] = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 1, 2, 3, 4, 5, 6, 7, 8 };
	struct json j;
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	json_init(&j, f);
	json_object(&j, NULL);
	json_string(&j, "text", "q\" b\\ n\n e\xc3\xa4 bad\xff.");
	json_name(&j, "name", "x\xfe");
	json_name(&j, "plain", "y");
	json_number(&j, "big", UINT64_MAX);
	json_signed(&j, "low", INT64_MIN);
	json_hex(&j, "hex", 0xabc);
	json_bool(&j, "yes", true);
	json_null(&j, "nothing");
	json_uuid(&j, "uuid", uuid);
	json_array(&j, "empty");
	json_end_array(&j);
	json_array(&j, "list");
	json_number(&j, NULL, 1);
	json_object(&j, NULL);
	json_string(&j, "k", "v");
	json_end_object(&j);
	json_end_array(&j);
	json_end_object(&j);
	json_finish(&j);
	fclose(f);
	return text;
}

START_TEST(what_is_written_is_read)
{
	char *text = write_sample();
	struct json_value *v = json_parse(text);
	ck_assert_msg(v != NULL, "%s", text);
	ck_assert_str_eq(json_get_string(v, "text", ""), "q\" b\\ n\n e\xc3\xa4 bad\xef\xbf\xbd.");
	ck_assert_str_eq(json_get_string(v, "name", ""), "x\xef\xbf\xbd");
	ck_assert_str_eq(json_get_string(v, "name_hex", ""), "78fe");
	ck_assert(!json_get(v, "plain_hex"));
	ck_assert(json_get_number(v, "big", 0) == UINT64_MAX);
	ck_assert_str_eq(json_get(v, "low")->text, "-9223372036854775808");
	ck_assert_str_eq(json_get_string(v, "hex", ""), "0x0000000000000abc");
	ck_assert(json_get_bool(v, "yes", false));
	ck_assert(json_get(v, "nothing")->type == JSON_NULL);
	ck_assert_str_eq(json_get_string(v, "uuid", ""), "01234567-89ab-cdef-0102-030405060708");
	ck_assert(json_get(v, "empty")->type == JSON_ARRAY && !json_get(v, "empty")->children);
	const struct json_value *list = json_get(v, "list");
	ck_assert_str_eq(list->children->text, "1");
	ck_assert_str_eq(json_get_string(list->children->next, "k", ""), "v");
	ck_assert(!json_get(v, "absent") && json_get_number(v, "absent", 7) == 7);
	json_free(v);
	free(text);
}
END_TEST

START_TEST(escapes_are_read)
{
	struct json_value *v = json_parse(" [ \"\\u00e4\\ud83d\\ude00\\/\\b\\f\\r\\t\" , -1.5e3 , [] , {} ] ");
	ck_assert(v != NULL);
	ck_assert_str_eq(v->children->text, "\xc3\xa4\xf0\x9f\x98\x80/\b\f\r\t");
	ck_assert_str_eq(v->children->next->text, "-1.5e3");
	json_free(v);
}
END_TEST

START_TEST(wrong_json_is_refused)
{
	static const char *const bad[] = { "", "{", "[", "[1", "[1,", "[1,]", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{a:1}", "\"a", "\"\\",
					   "\"\\u12\"", "\"\\u0000\"", "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"\\x\"", "\"\n\"", "1 2",
					   "[1] x", "nul", "{\"a\":1,}", "}", "[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]" };
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct json_value *v = json_parse(bad[i]);
		ck_assert_msg(!v, "%s was taken", bad[i]);
		json_free(v);
	}
}
END_TEST

int main(void)
{
	TCase *tc = tcase_create("tools");
	tcase_add_test(tc, sizes_are_read);
	tcase_add_test(tc, wrong_sizes_are_refused);
	tcase_add_test(tc, sizes_are_written);
	tcase_add_test(tc, numbers_and_uuids);
	tcase_add_test(tc, utf8_is_judged);
	tcase_add_test(tc, names_stay_on_their_line);
	tcase_add_test(tc, what_is_written_is_read);
	tcase_add_test(tc, escapes_are_read);
	tcase_add_test(tc, wrong_json_is_refused);
	Suite *s = suite_create("tools");
	suite_add_tcase(s, tc);
	SRunner *sr = srunner_create(s);
	srunner_run_all(sr, CK_NORMAL);
	int failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
