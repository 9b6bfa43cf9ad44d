"""If these tests failed, a publisher at a full topic would hang and say nothing, or blame somebody else."""
import json
import os
import signal
import subprocess

import pytest

from test_advice import mounted
from test_cli import info, one_line, wait_until
from test_pub_sub import Reader


@pytest.fixture
def small(leat):
    leat("topic", "create", "news", "--capacity", "64KiB", check=True)
    return "news"


def blocked(leat, *arguments):
    """A publisher that has more than there is room for, and a reader of its stderr that has read the first line."""
    publisher = leat.start("pub", "news", "--generate", "1000", "--count", "1000", *arguments)
    says = Reader(publisher.stderr)
    says.until("\n")
    return publisher, says


def stopped_subscriber(leat, *arguments):
    reader = leat.start("sub", "news", "--from", "beginning", *arguments, stdout=subprocess.DEVNULL)
    wait_until(lambda: info(leat, "news")["participants"])
    reader.send_signal(signal.SIGSTOP)
    return reader


def test_a_group_without_members_is_named_and_the_commands_work(leat, small):
    leat("group", "create", small, "wokers", check=True)
    publisher, says = blocked(leat)
    assert says.text == ("leat: topic 'news' is full and waits for group 'wokers', which has no members: `leat sub news "
                    "--group wokers` reads on, `leat group delete news wokers` gives its records up\n")
    leat("sub", "news", "--group", "wokers", "--count", "10", check=True)
    assert publisher.poll() is None
    leat("group", "delete", "news", "wokers", check=True)
    assert publisher.wait(20) == 0 and publisher.stderr.read() == ""  # It was said once.


def test_a_group_that_a_typo_has_made_is_noticed_at_once(leat, small):
    leat("group", "create", small, "workers", check=True)
    done = leat("sub", small, "--group", "wokers", "--exit", check=True)
    assert done.stderr.startswith("leat: created group 'wokers' of topic 'news' (did you mean 'workers'?): it holds room")


def test_a_subscriber_is_named_by_its_pid(leat, small):
    reader = stopped_subscriber(leat)
    publisher, says = blocked(leat)
    assert f"waits for the subscriber with pid {reader.pid}: `kill {reader.pid}` ends it" in says.text
    reader.kill()
    assert publisher.wait(20) == 0


def test_members_and_others_are_named(leat, small):
    member = stopped_subscriber(leat, "--group", "workers")
    for name in "abc":
        leat("group", "create", small, name, "--from", "beginning", check=True)
    publisher, says = blocked(leat)
    assert ("waits for group 'a', which has no members and group 'b', which has no members and group 'c', which has "
            "no members and 1 other: ") in says.text
    for name in "abc":
        leat("group", "delete", small, name, check=True)
    says.until(f"waits for group 'workers' (its member has pid {member.pid}): `leat group info news workers` shows "
               "what its members hold\n")
    member.kill()
    assert publisher.poll() is None


def test_the_partition_of_a_key_counts(leat, tmp_path):
    leat("topic", "create", "news", "--capacity", "64KiB", "--partitions", "4", check=True)
    leat("group", "create", "news", "g", check=True)
    (tmp_path / "lines").write_text(f"key:{'x' * 1000}\n" * 200)
    publisher = leat.start("pub", "news", "--key-separator", ":", "--file", tmp_path / "lines")
    Reader(publisher.stderr).until("group 'g', which has no members")


def test_timeout_ends_it(leat, small):
    leat("group", "create", small, "g", check=True)
    done = leat("pub", small, "--generate", "1000", "--count", "1000", "--timeout", "100ms")
    one_line(done, 6, "nothing could be published for 100ms", "topic 'news' is full and waits for group 'g'",
             "`leat group delete news g`", " records were sent before")
    assert f"; {info(leat, small)['partitions'][0]['end']} records were sent" in done.stderr
    one_line(leat("pub", small, "x" * 1000, "--timeout", "soon"), 2, "--timeout", "'soon'")


def test_a_publisher_that_does_not_wait_says_who_has_yet_to_read(leat):
    leat("topic", "create", "news", "--capacity", "64KiB", "--policy", "fail", check=True)
    leat("group", "create", "news", "g", check=True)
    one_line(leat("pub", "news", "--generate", "1000", "--count", "1000"), 6,
             "topic 'news' is full and does not wait (--policy fail) for group 'g', which has no members: ",
             "`leat group delete news g` gives its records up; ", " records were sent before")


def test_a_topic_that_keeps_everything_says_so(leat):
    leat("topic", "create", "news", "--capacity", "64KiB", "--retain", "all", check=True)
    one_line(leat("pub", "news", "--generate", "1000", "--count", "100"), 6,
             "topic 'news' is full and keeps all its records (--retain all): create one with a larger --capacity; 64 ")


def test_no_create(leat):
    one_line(leat("pub", "nothing", "a", "--no-create"), 3, "no topic 'nothing'")
    assert leat("topic", "list").stdout == ""
    leat("topic", "create", "there", check=True)
    leat("pub", "there", "a", "--no-create", check=True)


@pytest.mark.parametrize("messages, count, wanted", [
    (["a"], 3, "aaa"), (["a", "b"], 5, "ababa"), (["a", "b", "c"], 2, "ab")])
def test_count_repeats_messages(leat, messages, count, wanted):
    leat("pub", "t", *messages, "--count", count, check=True)
    done = leat("sub", "t", "--from", "beginning", "--exit", "--format", "%s", check=True)
    assert done.stdout == wanted


def test_info_and_doctor_agree(leat, small):
    assert info(leat, small)["room_holders"] == []
    leat("group", "create", small, "g", check=True)
    assert leat("doctor").returncode == 0
    leat("pub", small, "--generate", "1000", "--count", "1000", "--timeout", "1ms")
    assert info(leat, small)["room_holders"] == [{"partition": 0, "kind": "group", "pids": [], "group": "g"}]
    text = leat("topic", "info", small, check=True).stdout
    assert " g (lag 64, 0 members, blocking)\n" in text
    assert "full      waits for group 'g', which has no members: `leat sub news --group g`" in text
    done = leat("doctor")
    assert done.returncode == 1 and done.stderr == "leat: 1 problem found that needs action\n"
    assert "problem  blocked        full, so that publishers wait or fail: news (waits for group 'g', " in done.stdout
    report = json.loads(leat("doctor", "--json").stdout)
    assert not report["ok"]
    leat("group", "delete", small, "g", check=True)
    assert leat("doctor").returncode == 0
    assert "full" not in leat("topic", "info", small, check=True).stdout


def test_doctor_leaves_a_topic_alone_that_takes_more_records(leat, small):
    leat("group", "create", small, "g", check=True)
    leat("pub", small, "--generate", "1000", "--count", "59", check=True)  # The last segment has room for five more.
    assert "blocked" not in leat("doctor").stdout
    assert "full" not in leat("topic", "info", small, check=True).stdout
    leat("pub", small, "--generate", "1000", "--count", "5", "--timeout", "1s", check=True)


@pytest.mark.usefixtures("as_root")
def test_nobody_is_told_to_kill_a_pid_of_another_pid_namespace(leat, small):
    reader = subprocess.Popen(
        ["unshare", "--pid", "--fork", "--kill-child", leat.executable, "sub", small, "--from", "beginning"],
        stdout=subprocess.DEVNULL, env=leat.environment, start_new_session=True)
    leat.started.append(reader)
    wait_until(lambda: info(leat, small)["participants"])
    children = f"/proc/{reader.pid}/task/{reader.pid}/children"
    with open(children, encoding="ascii") as file:
        pid = int(file.read())
    os.kill(pid, signal.SIGSTOP)
    publisher, says = blocked(leat)
    assert "the subscriber with pid 1: end it in its container" in says.text and "kill" not in says.text
    os.kill(pid, signal.SIGKILL)
    assert publisher.wait(20) == 0


def test_doctor_leaves_a_busy_topic_alone(leat, small):
    reader = leat.start("sub", "news", "--from", "beginning", stdout=subprocess.DEVNULL)
    wait_until(lambda: info(leat, "news")["participants"])
    publisher = leat.start("pub", "news", "--generate", "1000", "--count", "1000000000")
    wait_until(lambda: info(leat, "news")["partitions"][0]["end"] > 1000)
    for _ in range(3):
        assert "blocked" not in leat("doctor").stdout
    publisher.kill()
    reader.kill()


@pytest.mark.usefixtures("as_root")
def test_growth_that_the_file_system_refuses(leat):
    with mounted(leat.directory, "-t", "tmpfs", "-o", "size=2m", "none"):
        leat("topic", "create", "news", "--policy", "grow", "--capacity", "256KiB",
             "--max-capacity", "32MiB", check=True)
        reader = stopped_subscriber(leat)
        publisher = leat.start("pub", "news", "--generate", "1000", "--count", "100000")
        Reader(publisher.stderr).until(f"subscriber with pid {reader.pid}")
        facts = info(leat, "news")
        assert facts["capacity_bytes"] < 2 << 20
        assert [one["blocking"] for one in facts["participants"] if one["role"] == "subscriber"] == [True]
        assert f"news (waits for the subscriber with pid {reader.pid})" in leat("doctor").stdout
        reader.send_signal(signal.SIGCONT)
        assert publisher.wait(60) == 0
        reader.kill()
        reader.wait()
