"""If these tests failed, `leat bench report` or `compare` would show wrong figures, accept damaged files,
or make a page that a browser does not show correctly."""
import json
import re
import xml.etree.ElementTree as xml

import pytest

from browser import Browser, find_executable
from sample_results import SIZES, sample, write
from test_cli import one_line


@pytest.fixture
def results(tmp_path):
    """A directory of results: two files with all methods in all sizes."""
    directory = tmp_path / "results"
    directory.mkdir()
    write(directory / "a.json", sample(sizes=SIZES[:3]))
    write(directory / "b.json", sample(sizes=SIZES[3:]))
    return directory


def refused(leat, *arguments, code):
    """Runs a command that must be refused; returns its one line of error."""
    done = leat("bench", *arguments)
    one_line(done, code)
    assert done.stdout == ""
    return done.stderr


# --- report -------------------------------------------------------------------------------------

def test_report_writes_page_pictures_and_table(leat, results, tmp_path):
    page, pictures, table = tmp_path / "r.html", tmp_path / "new" / "svg", tmp_path / "r.md"
    done = leat("bench", "report", results, "--html", page, "--svg", pictures, "--markdown", table,
                check=True)
    assert done.stdout == "" and done.stderr == ""
    assert page.read_text().startswith("<!doctype html>")
    names = {path.name for path in pictures.iterdir()}
    for size in SIZES:
        assert {f"round-trip-{size}.svg", f"percentiles-{size}.svg", f"cpu-{size}.svg",
                f"percentiles-{size}-at-100000.svg"} <= names
    assert {"throughput-batch-1.svg", "throughput-batch-64.svg"} <= names
    for path in pictures.iterdir():
        assert xml.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"
        assert "nan" not in path.read_text() and "inf" not in path.read_text()
    rows = [line for line in table.read_text().splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in rows}) == 1
    assert any(line.startswith("| leat | spinning |") for line in rows)


def test_report_writes_to_stdout(leat, results):
    assert leat("bench", "report", results, "--html", "-", check=True).stdout.endswith("</html>\n")
    table = leat("bench", "report", results, "--markdown", "-", "--size", "16384", check=True).stdout
    assert table.startswith("| 16 KiB, round trip |")
    assert "mq-sysv (not supported: kernel.msgmax is 8192 bytes)" in table


def test_report_of_the_same_measurement_takes_the_later_name(leat, tmp_path):
    write(tmp_path / "1.json", sample(methods={"pipe"}, sizes=(100,), slower={"pipe": 1000}))
    write(tmp_path / "2.json", sample(methods={"pipe"}, sizes=(100,)))
    table = leat("bench", "report", tmp_path, "--markdown", "-", check=True).stdout
    assert " ms " not in table and " µs " in table


def test_report_leaves_out_other_reports_of_a_directory_and_says_so(leat, results):
    write(results / "log.json", {"machine": {}, "cases": []})
    done = leat("bench", "report", results, "--markdown", "-", check=True)
    assert done.stderr == f"leat: {results}/log.json is left out: it has no results of `leat bench ipc`\n"


def test_report_refuses_what_it_cannot_do(leat, results, tmp_path):
    assert "nothing to write" in refused(leat, "report", results, code=2)
    # The page that was to be written, named as if it held the results.
    page = tmp_path / "r.html"
    page.write_text("<!doctype html>")
    assert "results are what `leat bench ipc --json=FILE` writes" in refused(leat, "report", page,
                                                                           code=5)
    assert "no such file" in refused(leat, "report", tmp_path / "none.html", code=3)
    assert "--size 77: not measured; there are 1 B, 100 B, 1000 B, 16 KiB, 64 KiB" in refused(
        leat, "report", results, "--html", "-", "--size", "77", code=2)
    assert "only one of them" in refused(leat, "report", results, "--html", "-", "--markdown", "-",
                                         code=2)
    assert "no such file" in refused(leat, "report", tmp_path / "x", "--html", "-", code=3)
    assert "no *.json" in refused(leat, "report", tmp_path, "--html", "-", code=3)
    assert "cannot write" in refused(leat, "report", results, "--html", tmp_path / "x" / "y", code=3)
    assert "cannot make" in refused(leat, "report", results, "--svg", results / "a.json", code=1)


@pytest.mark.parametrize("change, sentence", [
    (lambda r: r["results"][0].pop("size"), "results[0]: size is missing"),
    (lambda r: r["results"][0].update(size=-1), "size is -1, not a whole number"),
    (lambda r: r["results"][1]["median"].update(p50_ns=-3), "median.p50_ns is -3, not a number"),
    (lambda r: r["results"][1]["runs"][2].update(p50_ns="x"), "runs[2].p50_ns is 'x', not a number"),
    (lambda r: r["results"][0].update(method="a\nb"), "method is not a name"),
    (lambda r: r.update(results={}), "results is not a list"),
    (lambda r: r.pop("results"), "not a report of `leat bench ipc`"),
])
def test_broken_results_are_refused_in_one_line(leat, tmp_path, change, sentence):
    report = sample(sizes=(100,), methods={"pipe", "leat"})
    change(report)
    broken = write(tmp_path / "broken.json", report)
    good = write(tmp_path / "good.json", sample(sizes=(100,), methods={"pipe"}))
    for arguments in (["report", broken, "--html", tmp_path / "r.html"], ["compare", broken, good],
                      ["compare", good, broken]):
        said = refused(leat, *arguments, code=5)
        assert f"{broken}: " in said and sentence in said
    assert not (tmp_path / "r.html").exists()


def test_what_is_not_json_is_refused(leat, tmp_path):
    broken = tmp_path / "broken.json"
    whole = json.dumps(sample(sizes=(100,), methods={"pipe"}))
    for text in ("", "{", whole[:-1], whole.replace("0.1.0", "\x01"), "NaN", "[" * 100000):
        broken.write_text(text)
        assert "not JSON" in refused(leat, "report", broken, "--html", "-", code=5)
    broken.write_bytes(b"\xff" * 1000)
    assert "not JSON" in refused(leat, "report", broken, "--html", "-", code=5)


# --- compare ------------------------------------------------------------------------------------

@pytest.fixture
def pair(tmp_path):
    """Two reports: pipe becomes slower, leat faster, eventfd stays; tcp and udp are in one each."""
    a = write(tmp_path / "a.json", sample(sizes=(100,), seed=1,
                                          methods={"pipe", "leat", "eventfd", "tcp"}))
    b = write(tmp_path / "b.json", sample(sizes=(100,), seed=2,
                                          methods={"pipe", "leat", "eventfd", "udp"},
                                          slower={"pipe": 1.5, "leat": 0.5}))
    return a, b


def compare(leat, a, b):
    return json.loads(leat("bench", "compare", a, b, "--json", check=True).stdout)


def test_compare_tells_change_from_noise(leat, pair):
    report = compare(leat, *pair)
    assert report["same_machine"] is True
    verdicts = {}
    for entry in report["compared"]:
        assert entry["runs"] == [5, 5]
        verdicts.setdefault(entry["method"], set()).add(entry["verdict"])
        metrics = entry["metrics"]
        assert set(metrics) == ({"messages_per_second", "cpu_ns_per_message"}
                                if entry["pattern"] == "oneway"
                                else {"p50_ns", "p99_ns", "cpu_ns_per_message"})
        for metric in metrics.values():
            assert 0 < metric["low"] <= metric["ratio"] <= metric["high"]
            assert 0.95 <= metric["confidence"] < 1
    assert verdicts["pipe"] == {"slower"} and verdicts["leat"] == {"faster"}
    ratio = next(e for e in report["compared"]
                 if (e["method"], e["variant"], e["pattern"]) == ("pipe", "blocking", "pingpong"))
    assert ratio["metrics"]["p50_ns"]["ratio"] == pytest.approx(1.5, rel=0.06)
    assert {e["method"] for e in report["only_in_a"]} == {"tcp"}
    assert {e["method"] for e in report["only_in_b"]} == {"udp"}


def test_compare_of_a_file_with_itself_finds_nothing(leat, pair):
    report = compare(leat, pair[0], pair[0])
    assert {e["verdict"] for e in report["compared"]} == {"no change beyond noise"}
    assert all(m["ratio"] == pytest.approx(1) for e in report["compared"]
               for m in e["metrics"].values())
    assert report["only_in_a"] == report["only_in_b"] == []


def test_compare_says_it_in_a_table(leat, pair):
    text = leat("bench", "compare", *pair, check=True).stdout
    assert re.search(r"^pipe +blocking +100 B +1\.\d+ \[1\.\d+, 1\.\d+\] .* slower$", text, re.M)
    assert re.search(r"^Only in A:\n  tcp, spinning, pingpong, 100 B$", text, re.M)
    assert re.search(r"\d+ faster, \d+ slower", text)


def test_compare_of_too_few_runs_gives_no_interval(leat, tmp_path):
    a = write(tmp_path / "a.json", sample(sizes=(100,), methods={"pipe"}, runs=3))
    b = write(tmp_path / "b.json", sample(sizes=(100,), methods={"pipe"}, runs=3, slower={"pipe": 9}))
    for entry in compare(leat, a, b)["compared"]:
        assert entry["verdict"] == "too few runs"
        assert entry["metrics"]["cpu_ns_per_message"]["low"] is None
    assert "needs at least 4 runs on each side" in leat("bench", "compare", a, b, check=True).stdout


def test_compare_warns_of_different_machines_and_of_nothing_in_common(leat, pair, tmp_path):
    report = sample(sizes=(8,), methods={"pipe"})
    report["machine"]["cpu"] = "Another CPU"
    other = write(tmp_path / "other.json", report)
    text = leat("bench", "compare", pair[0], other, check=True).stdout
    assert "different machines" in text and "no measurement is in both" in text


def test_compare_refuses_bad_usage(leat, pair, tmp_path):
    assert "required" in refused(leat, "compare", pair[0], code=2)
    assert "no such file" in refused(leat, "compare", pair[0], tmp_path / "x", code=3)


# --- In a browser -------------------------------------------------------------------------------

PHONE, TABLET, DESKTOP = (400, 860), (700, 860), (1280, 900)

# For each visible chart: its width, its height, and how many shapes and visible texts it has.
CHARTS = """[...document.querySelectorAll('svg.chart')].filter(s => s.checkVisibility()).map(svg => {
  const box = svg.getBoundingClientRect();
  return [box.width, box.height, svg.querySelectorAll('rect,circle,polyline').length,
          [...svg.querySelectorAll('text')].filter(t => t.getBBox().width > 0).length]; })"""
# Texts of charts that are partly outside the window or outside their chart.
STRAYS = """[...document.querySelectorAll('svg.chart')].filter(s => s.checkVisibility()).flatMap(svg => {
  const area = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(t => { const box = t.getBoundingClientRect();
    return box.left < area.left - 1 || box.right > Math.min(innerWidth, area.right + 12) ||
           box.top < area.top - 1 || box.bottom > area.bottom + 1; }).map(t => t.textContent); })"""
# Pairs of texts in one chart that overlap. Fonts differ, so an overlap of one pixel does not count.
COLLISIONS = """[...document.querySelectorAll('svg.chart')].filter(s => s.checkVisibility()).flatMap(svg => {
  const all = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBBox()]);
  return all.flatMap(([name, a], i) => all.slice(i + 1).filter(([, b]) =>
    Math.min(a.x + a.width, b.x + b.width) - Math.max(a.x, b.x) > 1 &&
    Math.min(a.y + a.height, b.y + b.height) - Math.max(a.y, b.y) > 1).map(([b]) => [name, b])); })"""

# Tables that are wider than their place and can't be scrolled.
STUCK = """[...document.querySelectorAll('table')].filter(t => t.checkVisibility()).filter(t => {
  const box = t.parentElement; return t.offsetWidth > box.clientWidth + 1 &&
    getComputedStyle(box).overflowX != 'auto'; }).length"""
# Tables that are cut at the edge of the window without a sign. The first one has no need to be scrolled.
CUT = """[...document.querySelectorAll('table')].filter(t => t.checkVisibility()).filter(t => {
  const box = t.parentElement; return t.offsetWidth > box.clientWidth + 1 &&
    (t.className == 'decision' || getComputedStyle(box).backgroundAttachment != 'local, scroll'); })
  .map(t => t.textContent.slice(0, 80))"""
# Cells of the first table that are partly outside the window, or have no title where there is no head.
LOST_CELLS = """[...document.querySelectorAll('.decision td')].filter(t => t.checkVisibility()).filter(t => {
  const box = t.getBoundingClientRect(), head = t.closest('table').tHead.checkVisibility();
  return box.left < 0 || box.right > innerWidth || t.scrollWidth > t.clientWidth + 1 ||
    !head && (!t.dataset.title || getComputedStyle(t, '::before').content == 'none'); })
  .map(t => t.textContent)"""
# Words with a hyphen, such as --size and leat-group, that are on two lines in a window of some width.
BROKEN_WORDS = """[...Array(12).keys()].flatMap(step => { const broken = [];
  document.querySelector('main').style.width = 320 + 7 * step + 'px';
  for (const place of document.querySelectorAll('code, pre, li, .about dd, .decision td')) {
    const texts = document.createTreeWalker(place, NodeFilter.SHOW_TEXT);
    for (let text; text = texts.nextNode();) for (const word of text.data.matchAll(/\\S*-\\S*/g)) {
      const range = document.createRange();
      range.setStart(text, word.index); range.setEnd(text, word.index + word[0].length);
      if (range.getClientRects().length > 1) broken.push(word[0]); } }
  return broken; })"""
# The headings, tables and charts in the order in which they are seen.
ORDER = """[...document.querySelectorAll('h1,h2,dl,table,svg.chart')].filter(e => e.checkVisibility())
  .map(e => [e.tagName.toLowerCase() + (e.className ? '.' + (e.className.baseVal ?? e.className) : ''),
             e.tagName[0] == 'H' ? e.textContent : ''].join(' ').trim())"""
# Gridlines of an axis: as many as there are labels for them, or more labels.
BARE_TICKS = """[...document.querySelectorAll('svg.chart')].filter(s => s.checkVisibility()).flatMap(svg => {
  const labels = [...svg.querySelectorAll('text.muted')].map(t => t.getBBox());
  return [...svg.querySelectorAll('line.rule')].filter(line => {
    const [x1, x2, y1, y2] = ['x1', 'x2', 'y1', 'y2'].map(name => +line.getAttribute(name));
    return !labels.some(b => x1 == x2 ? Math.abs(b.x + b.width / 2 - x1) < 2
                                      : Math.abs(b.y + b.height / 2 - y1) < 4 && b.x < x1); }); }).length"""


@pytest.fixture
def browser(tmp_path):
    assert find_executable(), "chromium is missing: tools/install-deps.sh test installs it"
    with Browser(tmp_path / "profile") as running:
        yield running


def luminance(colour):
    red, green, blue = (int(part) for part in re.findall(r"\d+", colour)[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_page_is_right_in_a_browser(leat, results, browser, tmp_path):
    page = tmp_path / "r.html"
    leat("bench", "report", results, "--html", page, check=True)
    for (width, height) in (PHONE, TABLET, DESKTOP):
        for dark in (False, True):
            shown = browser.open(page.as_uri(), width, height, dark)
            assert shown.complaints() == []
            assert shown.requests() == [page.as_uri()]
            assert shown.value("document.documentElement.scrollWidth") <= width
            paper = luminance(shown.value("getComputedStyle(document.body).backgroundColor"))
            ink = luminance(shown.value("getComputedStyle(document.body).color"))
            assert (paper < 60 and ink > 180) if dark else (paper > 230 and ink < 80)
            charts = shown.value(CHARTS)
            assert len(charts) == 6  # Those of the usual size; the others are folded.
            for chart_width, chart_height, shapes, words in charts:
                assert chart_width >= 300 and chart_height >= 200
                assert shapes >= 10 and words >= 10
            assert shown.value(STRAYS) == []
            assert shown.value(COLLISIONS) == []
            assert shown.value(BARE_TICKS) == 0
            assert shown.value(STUCK) == 0
            assert shown.value(CUT) == [] and shown.value(LOST_CELLS) == []
            assert shown.value(ORDER)[:5] == [
                "h1 Messages between two processes", "dl.about", "h2 Which should I use?",
                "table.decision", "h2 Messages of 100 B"]
            shown.screenshot(tmp_path / f"page-{width}-{'dark' if dark else 'light'}.png")


def test_page_of_a_measurement_shows_every_method(leat, browser, tmp_path):
    page, report = tmp_path / "r.html", tmp_path / "r.json"
    leat("bench", "ipc", "-c", "200", "-s", "100", "--runs", "2", f"--json={report}", "--html", page,
         check=True)
    methods = {result["method"] for result in json.loads(report.read_text())["results"]}
    assert len(methods) == 27
    for (width, height) in (PHONE, DESKTOP):
        shown = browser.open(page.as_uri(), width, height)
        assert shown.complaints() == [] and shown.requests() == [page.as_uri()]
        assert shown.value("document.documentElement.scrollWidth") <= width
        assert len(shown.value(CHARTS)) >= 3
        assert shown.value(STRAYS) == []
        assert shown.value(COLLISIONS) == []
        rows = shown.value("[...document.querySelectorAll('tr')].map(row => row.textContent.trim())")
        for method in methods:
            assert any(row.startswith(method) for row in rows), method


def test_page_of_every_size_is_right_when_unfolded(leat, results, browser, tmp_path):
    page = tmp_path / "r.html"
    leat("bench", "report", results, "--html", page, check=True)
    shown = browser.open(page.as_uri(), *PHONE)
    shown.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert shown.value("document.documentElement.scrollWidth") <= PHONE[0]
    assert len(shown.value(CHARTS)) == 6 + 4 * 4
    assert shown.value(STRAYS) == []
    assert shown.value(COLLISIONS) == []
    assert shown.value(BARE_TICKS) == 0
    assert shown.value(STUCK) == 0
    assert shown.value(CUT) == [] and shown.value(LOST_CELLS) == []


def test_commands_and_names_are_not_broken_at_hyphens(leat, browser, tmp_path):
    report = sample(sizes=(100,))
    report["command"] = ("leat bench ipc --pin 0,1 --out results --sweep sizes=1..64KiB --pattern oneway "
                         "--method all --time-limit 60 --json=out-of-a-run.json --runs 5")
    page = tmp_path / "r.html"
    leat("bench", "report", write(tmp_path / "a.json", report), "--html", page, check=True)
    shown = browser.open(page.as_uri(), *PHONE)
    shown.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert shown.value("document.querySelector('.about code').innerText") == report["command"]
    assert shown.value(BROKEN_WORDS) == []
    # A word that is longer than a line is broken rather than cut.
    shown.value("document.querySelector('code .whole').textContent = '--' + 'x'.repeat(400)")
    assert shown.value("document.documentElement.scrollWidth") <= PHONE[0]


def test_hostile_texts_do_nothing_in_a_browser(leat, browser, tmp_path):
    evil = "</style><script>document.title='bad'</script><img src=x onerror=document.title='bad'>"
    report = sample(sizes=(100,), methods={"pipe"})
    report["commit"] = report["command"] = report["machine"]["cpu"] = evil
    for result in report["results"]:
        result.update(method="<svg onload=document.title='bad'>\"'", note=evil)
    write(tmp_path / "evil.json", report)
    page = tmp_path / "r.html"
    leat("bench", "report", tmp_path / "evil.json", "--html", page, check=True)
    shown = browser.open(page.as_uri(), *PHONE)
    assert shown.complaints() == [] and shown.requests() == [page.as_uri()]
    assert shown.value("document.title") == "leat bench ipc"
    assert shown.value("document.querySelectorAll('script, img').length") == 0
    assert shown.value("document.documentElement.scrollWidth") <= PHONE[0]


def test_picture_files_are_right_in_a_browser(leat, results, browser, tmp_path):
    leat("bench", "report", results, "--svg", tmp_path / "svg", check=True)
    for name in ("round-trip-100", "percentiles-100", "cpu-100", "throughput-batch-1"):
        shown = browser.open((tmp_path / "svg" / f"{name}.svg").as_uri(), 500, 800, dark=True)
        assert shown.complaints() == []
        background = "getComputedStyle(document.querySelector('rect')).fill"
        assert luminance(shown.value(background)) < 60
