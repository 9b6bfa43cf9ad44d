"""If these tests failed, `leat group create | list | info | seek | delete`, the group options of `leat sub`
or what `leat doctor` says about groups would be wrong."""
import json
import re

import pytest

from test_cli import info, one_line, wait_until
from test_doctor import examine
from test_pub_sub import read_all

KEYS = {"name", "lag", "members", "in_flight", "redelivered", "mode", "by_key", "max_deliveries",
        "returned", "returned_limit", "taking", "dead_letters", "dead_letter_topic",
        "lease_ns", "on_expired", "in_flight_limit", "offsets", "member_details"}


def group_info(leat, topic="t", name="g"):
    return json.loads(leat("group", "info", topic, name, "--json", check=True).stdout)


def make(leat, *options, topic="t", name="g"):
    if leat("topic", "info", topic).returncode == 3:
        leat("topic", "create", topic, check=True)
    leat("group", "create", topic, name, *options, check=True)


def drain(leat, topic="t", name="g", *options):
    return leat("sub", topic, "--group", name, "--exit", *options, check=True).stdout


# --- Bad input ------------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments, code, words", [
    (["group"], 2, ["create", "list", "info", "seek", "delete"]),
    (["group", "frobnicate"], 2, ["frobnicate", "create"]),
    (["group", "create"], 2, ["TOPIC", "--help"]),
    (["group", "create", "t"], 2, ["NAME", "--help"]),
    (["group", "create", "a/b", "g"], 2, ["topic name", "'a/b'"]),
    (["group", "create", "t", "a/b"], 2, ["group name", "'a/b'", "letters, digits"]),
    (["group", "create", "t", ""], 2, ["group name", "empty"]),
    (["group", "create", "t", "x" * 201], 2, ["201", "200"]),
    (["group", "create", "t", "g"], 3, ["'t'", "topic list"]),
    (["group", "create", "t", "g", "--from", "middle"], 2, ["--from", "middle", "beginning"]),
    (["group", "create", "t", "g", "--lease", "5"], 2, ["--lease", "500ms"]),
    (["group", "create", "t", "g", "--lease", "0s"], 2, ["--lease", "above 0"]),
    (["group", "create", "t", "g", "--max-deliveries", "0"], 2, ["--max-deliveries", "1 to"]),
    (["group", "create", "t", "g", "--max-deliveries", "65535"], 2,
     ["--max-deliveries", "1 to 65534"]),
    (["group", "create", "t", "g", "--in-flight", "0"], 2, ["--in-flight", "65536"]),
    (["group", "create", "t", "g", "--in-flight", "70000"], 2, ["--in-flight", "65536"]),
    (["group", "create", "t", "g", "--members", "256"], 2, ["--members", "255"]),
    (["group", "create", "t", "g", "--at-most-once", "--max-deliveries", "3"], 2,
     ["--at-most-once", "--max-deliveries", "exclude"]),
    (["sub", "t", "--group", "g", "--at-most-once", "--max-deliveries", "3"], 2,
     ["--at-most-once", "--max-deliveries", "exclude"]),
    (["group", "craete", "t", "g"], 2, ["'craete'", "did you mean 'create'?"]),
    (["group", "create", "t", "g", "h"], 2, ["'h'", "too many"]),
    (["group", "list", "t", "g"], 2, ["'g'", "too many"]),
    (["group", "list", ""], 2, ["topic name", "empty"]),
    (["group", "list", "t"], 3, ["'t'", "topic list"]),
    (["group", "info", "t"], 2, ["NAME"]),
    (["group", "info", "t", "g"], 3, ["'t'", "topic list"]),
    (["group", "seek", "t", "g"], 2, ["PLACE"]),
    (["group", "seek", "t", "g", "middle"], 2, ["middle", "beginning"]),
    (["group", "seek", "t", "g", "@yesterday"], 2, ["2024-05-01T12:00:00Z"]),
    (["group", "delete", "t", "g"], 3, ["'t'", "topic list"]),
    (["sub", "t", "--group", "a/b"], 2, ["group name", "'a/b'"]),
    (["sub", "t", "--group", ""], 2, ["group name", "empty"]),
    (["sub", "t", "--group", "g", "--lossy"], 2, ["--lossy", "--group", "exclude"]),
    (["sub", "t", "--group", "g", "--partition", "0"], 2, ["--partition", "--group", "exclude"]),
    (["sub", "t", "--group", "g", "--member", "x" * 64], 2, ["--member", "64", "63"]),
    (["sub", "t", "--group", "g", "--from", "middle"], 2, ["--from", "middle"]),
    (["sub", "t", "--group", "g", "--lease", "never"], 2, ["--lease", "'never'"]),
    (["sub", "t", "--member", "anna"], 2, ["--member", "--group"]),
    (["sub", "t", "--by-key"], 2, ["--by-key", "--group"]),
    (["sub", "t", "--max-deliveries", "3"], 2, ["--max-deliveries", "--group"]),
], ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else str(value))
def test_bad_input_gets_one_line_and_a_code(leat, arguments, code, words):
    done = leat(*arguments)
    one_line(done, code, *words)
    assert done.stdout == ""
    assert list(leat.directory.glob("*")) == []  # Nothing was created.


@pytest.mark.parametrize("command", [["group", "info", "t", "g"], ["group", "delete", "t", "g"],
                                     ["group", "seek", "t", "g", "end"]], ids=" ".join)
def test_group_that_is_not_there_is_named(leat, command):
    leat("topic", "create", "t", check=True)
    one_line(leat(*command), 3, "'t'", "'g'", "leat group list t")


@pytest.mark.parametrize("command", [["create"], ["list"], ["info"], ["seek"], ["delete"]],
                         ids=" ".join)
def test_every_command_has_help_with_an_example(leat, command):
    text = leat("group", *command, "--help", check=True).stdout
    assert "Usage: " in text and f"Example:\n  leat group {command[0]} " in text


# --- create ---------------------------------------------------------------------------------------

def test_create_then_info_has_the_promised_keys(leat):
    make(leat)
    facts = group_info(leat)
    assert set(facts) == KEYS
    assert facts["name"] == "g"
    for key in ("lag", "members", "in_flight", "redelivered"):
        assert facts[key] == 0
    assert facts["offsets"] == [0] and facts["member_details"] == []
    assert facts["mode"] == "at least once" and facts["by_key"] is False


def test_create_understands_every_option(leat):
    make(leat, "--from", "beginning", "--by-key", "--max-deliveries", "5",
         "--lease", "90s", "--in-flight", "10", "--members", "3")
    facts = group_info(leat)
    assert facts["mode"] == "at least once" and facts["by_key"] is True
    assert facts["max_deliveries"] == 5 and facts["lease_ns"] == 90_000_000_000
    assert facts["in_flight_limit"] == 10
    text = leat("group", "info", "t", "g", check=True).stdout
    for word in ("at least once", "by key", "5 deliveries", "lease of 90s", "at most 10",
                 "nobody is a member"):
        assert word in text
    make(leat, "--at-most-once", name="once")
    assert group_info(leat, name="once")["mode"] == "at most once"
    assert "at most once" in leat("group", "info", "t", "once", check=True).stdout
    one_line(leat("group", "create", "t", "g"), 3, "'t'", "'g'", "already")


def test_create_begins_where_it_is_told_to(leat):
    leat("pub", "t", input="a\nb\nc\n", check=True)
    for name, place, lag in (("e", "end", 0), ("b", "beginning", 3), ("o", "2", 1)):
        make(leat, "--from", place, name=name)
        assert group_info(leat, name=name)["lag"] == lag
    assert drain(leat, "t", "o") == "c\n"


def test_place_that_cannot_be_is_explained(leat):
    leat("topic", "create", "t", "--partitions", "3", check=True)
    one_line(leat("group", "create", "t", "g", "--from", "2"), 2, "3 partitions", "leat group seek")
    one_line(leat("group", "create", "t", "g", "--from", "@2024-05-01"), 2, "--timestamps")
    make(leat)
    one_line(leat("group", "seek", "t", "g", "2"), 2, "3 partitions", "--partition 0 to 2")
    one_line(leat("group", "seek", "t", "g", "2", "--partition", "3"), 2, "no partition 3", "0 to 2")
    one_line(leat("group", "seek", "t", "g", "@2024-05-01"), 2, "--timestamps")
    one_line(leat("group", "seek", "t", "g", "7", "--partition", "0"), 2, "no such offset", "'t'")
    leat("topic", "create", "u", check=True)
    one_line(leat("group", "create", "u", "g", "--from", "7"), 2, "no such offset", "'u'")
    one_line(leat("group", "create", "u", "x" * 195, "--max-deliveries", "2"), 2,
             "--max-deliveries", "dead'", "200")


def test_topic_that_overwrites_has_no_groups(leat):
    leat("topic", "create", "t", "--policy", "overwrite", check=True)
    one_line(leat("group", "create", "t", "g"), 2, "'t'", "overwrites")
    one_line(leat("sub", "t", "--group", "g"), 2, "'t'", "overwrites")


def test_topic_and_group_that_are_swapped_are_noticed(leat):
    leat("topic", "create", "t", check=True)
    swapped = "there is no topic 'g': write the topic first, then the group: t g"
    for command in (["create"], ["info"], ["delete"]):
        one_line(leat("group", *command, "g", "t"), 3, swapped)
    one_line(leat("group", "seek", "g", "t", "end"), 3, swapped)
    make(leat, name="t")  # Both names are right.
    leat("group", "info", "t", "t", check=True)


def test_sixty_four_groups_and_no_more(leat):
    leat("topic", "create", "t", check=True)
    for i in range(64):
        make(leat, "--members", "1", "--in-flight", "1", name=f"g{i}")
    one_line(leat("group", "create", "t", "another"), 3, "'t'", "as many groups", "leat group list t")


# --- list and info --------------------------------------------------------------------------------

def test_list_shows_all_groups(leat):
    leat("topic", "create", "t", check=True)
    done = leat("group", "list", "t", check=True)
    assert done.stdout == "" and done.stderr == "leat: topic 't' has no groups\n"
    assert json.loads(leat("group", "list", "t", "--json", check=True).stdout) == []
    for name in ("workers", "audit"):
        make(leat, name=name)
    leat("pub", "t", input="1\n2\n3\n", check=True)
    lines = leat("group", "list", "t", check=True).stdout.splitlines()
    assert lines[0].split() == ["NAME", "LAG", "IN", "FLIGHT", "MEMBERS", "REDELIVERED"]
    assert lines[1].split() == ["audit", "3", "0", "0", "0"]
    assert lines[2].split() == ["workers", "3", "0", "0", "0"]
    listed = json.loads(leat("group", "list", "t", "--json", check=True).stdout)
    assert listed == [group_info(leat, name="audit"), group_info(leat, name="workers")]


def test_list_without_a_topic_shows_the_groups_of_all(leat):
    done = leat("group", "list", check=True)
    assert done.stdout == "" and done.stderr == f"leat: no groups in {leat.directory}\n"
    assert json.loads(leat("group", "list", "--json", check=True).stdout) == []
    for topic, name in (("news", "workers"), ("news", "audit"), ("orders", "workers"), ("none", None)):
        leat("pub", topic, "1", check=True)
        if name:
            make(leat, topic=topic, name=name)
    leat("pub", "orders", "2", check=True)
    lines = leat("group", "list", check=True).stdout.splitlines()
    assert [line.split() for line in lines] == [
        ["TOPIC", "NAME", "LAG", "IN", "FLIGHT", "MEMBERS", "REDELIVERED"], ["news", "audit", "0", "0", "0", "0"],
        ["news", "workers", "1", "0", "0", "0"], ["orders", "workers", "1", "0", "0", "0"]]
    assert json.loads(leat("group", "ls", "--json", check=True).stdout) == [
        {"topic": topic, **group_info(leat, topic, name)}
        for topic, name in (("news", "audit"), ("news", "workers"), ("orders", "workers"))]


def test_list_without_a_topic_shows_what_is_wrong_with_others(leat):
    make(leat)
    broken = leat.directory / "broken"
    broken.mkdir()
    (broken / "control").write_bytes(b"nonsense" * 1000)
    lines = leat("group", "list", check=True).stdout.splitlines()
    shown = leat("ls", check=True).stdout
    assert lines[1].split()[0] == "broken" and lines[1] in shown and lines[2].split()[:2] == ["t", "g"]
    listed = json.loads(leat("group", "list", "--json", check=True).stdout)
    assert set(listed[0]) == {"topic", "error"} and listed[1]["topic"] == "t"


def test_list_without_a_topic_opens_no_durable_topic(leat):
    leat("topic", "create", "kept", "--durable", "os", check=True)
    leat("pub", "kept", "1", "2", "3", check=True)
    make(leat, "--from", "1", topic="kept")
    assert not (leat.directory / "kept").exists()
    assert leat("group", "list", check=True).stdout.splitlines()[1].split() == ["kept", "g", "2", "0", "0", "-"]
    group, = json.loads(leat("group", "list", "--json", check=True).stdout)
    assert set(group) == KEYS | {"topic"} and (group["topic"], group["lag"], group["mode"]) == ("kept", 2, None)
    assert not (leat.directory / "kept").exists()


def test_info_names_the_members(leat):
    make(leat)
    subs = [leat.start("sub", "t", "--group", "g", "--member", name) for name in ("anna", "ben")]
    subs.append(leat.start("sub", "t", "--group", "g"))
    wait_until(lambda: group_info(leat)["members"] == 3)
    members = {one["pid"]: one for one in group_info(leat)["member_details"]}
    assert set(members) == {sub.pid for sub in subs}
    assert [members[sub.pid]["name"] for sub in subs] == ["anna", "ben", ""]
    assert all(one["in_flight"] == 0 for one in members.values())
    text = leat("group", "info", "t", "g", check=True).stdout
    assert re.search(rf"^ *{subs[1].pid} +0 +ben$", text, re.M)
    assert re.search(rf"^ *{subs[2].pid} +0 +-$", text, re.M)
    subs[0].terminate()
    assert subs[0].wait(20) == 0
    wait_until(lambda: group_info(leat)["members"] == 2)


# --- seek -----------------------------------------------------------------------------------------

def test_seek_moves_the_group(leat):
    leat("topic", "create", "t", "--timestamps", check=True)
    leat("pub", "t", input="a\nb\nc\n", check=True)
    make(leat)
    assert drain(leat) == ""
    for place, expected in (("beginning", "a\nb\nc\n"), ("1", "b\nc\n"), ("end", ""),
                            ("@2020-01-01", "a\nb\nc\n")):
        assert leat("group", "seek", "t", "g", place, check=True).stdout == ""
        assert drain(leat) == expected


def test_seek_of_one_partition(leat):
    leat("topic", "create", "t", "--partitions", "2", check=True)
    for partition in (0, 1):
        leat("pub", "t", "--partition", partition, input=f"{partition}a\n{partition}b\n", check=True)
    make(leat)
    leat("group", "seek", "t", "g", "1", "--partition", "1", check=True)
    assert group_info(leat)["offsets"] == [2, 1]
    assert drain(leat) == "1b\n"


# --- delete ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("command", ["info", "delete", "seek"])
def test_group_with_a_name_like_the_one_that_is_missing_is_named(leat, command):
    make(leat, name="workers")
    place = ["end"] if command == "seek" else []
    one_line(leat("group", command, "t", "wrokers", *place), 3, "'wrokers'", "did you mean 'workers'?",
             "leat group list t")
    assert "did you mean" not in leat("group", command, "t", "other", *place).stderr


def test_delete_is_also_called_rm(leat):
    make(leat)
    leat("group", "rm", "t", "g", check=True)
    one_line(leat("group", "info", "t", "g"), 3, "'g'")


def test_delete_of_a_group_in_use_names_its_members(leat):
    make(leat)
    sub = leat.start("sub", "t", "--group", "g", "--member", "anna")
    wait_until(lambda: group_info(leat)["members"] == 1)
    one_line(leat("group", "delete", "t", "g"), 3, "'g'", f"{sub.pid} (anna)", "--force")
    assert sub.poll() is None
    leat("group", "delete", "t", "g", "-f", check=True)
    _, errors = sub.communicate(timeout=20)
    assert sub.returncode == 3 and errors == "leat: group 'g' of topic 't' was deleted\n"
    one_line(leat("group", "info", "t", "g"), 3, "'g'")


def test_delete_of_a_group_whose_members_died(leat):
    make(leat)
    sub = leat.start("sub", "t", "--group", "g")
    wait_until(lambda: group_info(leat)["members"] == 1)
    sub.kill()
    sub.wait()
    leat("group", "delete", "t", "g", check=True)
    make(leat)


def test_deleted_topic_ends_the_members(leat):
    make(leat)
    sub = leat.start("sub", "t", "--group", "g")
    wait_until(lambda: group_info(leat)["members"] == 1)
    leat("topic", "delete", "t", "--force", check=True)
    _, errors = sub.communicate(timeout=20)
    assert sub.returncode == 3 and errors == "leat: topic 't' was deleted\n"


# --- The options of sub ---------------------------------------------------------------------------

def test_sub_makes_the_group_with_its_options_and_later_ones_are_told(leat):
    leat("pub", "t", input="a\nb\n", check=True)
    first = ["sub", "t", "--group", "g", "--from", "beginning", "--by-key", "--max-deliveries", "4",
             "--lease", "1h", "--in-flight", "9", "--exit"]
    done = leat(*first, check=True)
    assert (done.stdout, done.stderr) == (
        "a\nb\n", "leat: created group 'g' of topic 't': it holds room for what it has not read, also without "
        "members, until `leat group delete t g`\n")
    facts = group_info(leat)
    assert facts["by_key"] is True and facts["max_deliveries"] == 4
    assert facts["lease_ns"] == 3_600_000_000_000 and facts["in_flight_limit"] == 9
    done = leat("sub", "t", "--group", "g", "--from", "beginning", "--in-flight", "2", "--exit",
                check=True)
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for word in ("'g'", "--from, --in-flight", "only the command that creates it can set"):
        assert word in done.stderr
    assert group_info(leat)["in_flight_limit"] == 9
    assert leat("sub", "t", "--group", "g", "--exit", check=True).stderr == ""


def test_group_of_a_durable_topic_is_not_said_to_hold_room(leat):
    leat("topic", "create", "t", "--durable", "os", check=True)
    done = leat("sub", "t", "--group", "g", "--exit", check=True)
    assert done.stderr == ("leat: created group 'g' of topic 't': it keeps its position, also without members, until "
                           "`leat group delete t g`\n")


def test_sub_begins_at_the_end_unless_told_otherwise(leat):
    leat("pub", "t", input="old\n", check=True)
    assert drain(leat) == ""
    leat("pub", "t", input="new\n", check=True)
    assert drain(leat) == "new\n"


def test_sub_has_formats_and_json(leat):
    leat("topic", "create", "t", "--timestamps", check=True)
    make(leat)
    line = "anna:tea\n"
    leat("pub", "t", "--key-separator", ":", "--header", "a=b", input=line, check=True)
    assert drain(leat, "t", "g", "--format", "%t %p %o %k %s %h\\n") == "t 0 0 anna tea a=b\n"
    leat("pub", "t", "--key-separator", ":", "--header", "a=b", input=line, check=True)
    expected = leat("sub", "t", "--from", "1", "--exit", "--json", check=True).stdout
    assert drain(leat, "t", "g", "--json") == expected != ""


def test_sub_leaves_after_a_count_and_requeues_the_rest(leat):
    make(leat)
    leat("pub", "t", "--generate", "4", "--count", "100", check=True)
    done = leat("sub", "t", "--group", "g", "--count", "7", check=True)
    assert done.stdout.split() == [f"{i:04}" for i in range(7)]
    assert drain(leat).split() == [f"{i:04}" for i in range(7, 100)]
    assert group_info(leat)["redelivered"] == 0


def test_group_of_a_topic_of_several_partitions(leat):
    leat("topic", "create", "t", "--partitions", "4", check=True)
    make(leat, "--from", "beginning")
    lines = [f"key{i % 20}:{i}" for i in range(1000)]
    leat("pub", "t", "--key-separator", ":", input="\n".join(lines), check=True)
    assert sorted(map(int, drain(leat).split())) == list(range(1000))


def test_no_place_for_another_member(leat):
    make(leat, "--members", "1")
    first = leat.start("sub", "t", "--group", "g")
    wait_until(lambda: group_info(leat)["members"] == 1)
    one_line(leat("sub", "t", "--group", "g"), 3, "'g'", "'t'", "--members", "--participants")
    first.kill()
    first.wait()
    leat("sub", "t", "--group", "g", "--exit", check=True)


def test_members_take_part_in_the_topic(leat):
    make(leat)
    sub = leat.start("sub", "t", "--group", "g")
    wait_until(lambda: group_info(leat)["members"] == 1)
    assert [(one["role"], one["pid"]) for one in info(leat, "t")["participants"]] == [
        ("member", sub.pid)]
    assert re.search(rf"^ *{sub.pid}  member +-  +-  -$", leat("topic", "info", "t").stdout, re.M)
    one_line(leat("topic", "delete", "t"), 3, f"member {sub.pid}", "--force")


# --- doctor ---------------------------------------------------------------------------------------

def test_doctor_names_groups_that_hold_room_and_have_no_members(leat):
    make(leat, name="idle")
    make(leat, name="busy")
    assert "idle groups" not in examine(leat)  # They hold nothing yet.
    leat.start("sub", "t", "--group", "busy")
    wait_until(lambda: group_info(leat, name="busy")["members"] == 1)
    leat("pub", "t", input="1\n2\n", check=True)
    check = examine(leat)["idle groups"]
    assert check["status"] == "note" and "leat group delete" in check["advice"]
    assert check["facts"]["groups"] == ["t/idle (2 records)"]
    assert drain(leat, "t", "idle") == "1\n2\n"
    assert "idle groups" not in examine(leat)
    assert read_all(leat, "t") == "1\n2\n" and info(leat, "t")["partitions"][0]["end"] == 2
