"""``airflow-hive-opt report``: a run's report in the terminal and as one HTML file."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest
from upath import UPath

from airflow_hive_opt.commands.main import main
from airflow_hive_opt.documents.descriptor import write
from airflow_hive_opt.documents.report import Report, StageSummary, TableRead, keep_report
from airflow_hive_opt.pages import html_file as html_files
from tests.plugins.descriptors import EVIL, descriptor


class Scripts(HTMLParser):
    """The texts of a page's scripts and styles, by kind; an inline handler is an error."""

    def __init__(self, text):
        super().__init__()
        self.found, self.policy, self._kind = [], "", None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        assert not any(name.startswith("on") or name == "style" for name in given)
        assert "src" not in given
        if tag in ("script", "style"):
            self._kind = given.get("type", tag)
            self.found.append([self._kind, ""])
        if given.get("http-equiv") == "Content-Security-Policy":
            self.policy = given["content"]

    def handle_data(self, data):
        if self._kind:
            self.found[-1][1] += data

    def handle_endtag(self, tag):
        self._kind = None


@pytest.fixture
def run(tmp_path):
    """The descriptor's path of a run that has left its report too."""
    path = UPath(tmp_path) / "dag" / "run" / "task" / "-1" / "2.json"
    path.parent.mkdir(parents=True)
    found = descriptor()
    write(found, path)
    stages = (StageSummary("Stage-1", "MapReduce", (), (23,), (EVIL,)),)
    reads = (TableRead("dw.fact", 250, 250, 5, 7),)
    keep_report(Report(found, str(path), {"map join": 1.5}, {}, reads=reads, stages=stages), path)
    return path


def written(run, tmp_path):
    file = tmp_path / "run.html"
    assert main(["report", str(run), "--html", str(file)]) == 0
    return Scripts(file.read_text())


def test_the_report_in_the_terminal_has_the_headline_and_the_advice(run, capsys):
    assert main(["report", str(run)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("kept 250 of 1,000 partitions")
    assert "  to do: Use an inner join if the result allows it. More: docs/" in printed


def test_the_html_report_is_one_file_that_needs_no_server(run, tmp_path):
    page = written(run, tmp_path)
    kinds = [kind for kind, _ in page.found]
    assert kinds == ["style", "application/json", "module"]
    style, data, script = (text for _, text in page.found)
    for kind, text in (("style-src", style), ("script-src", script)):
        assert (
            f"{kind} 'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" in page.policy
        )
    assert page.policy.startswith("default-src 'none'")
    assert "unsafe" not in page.policy
    found = json.loads(data)
    instance = found["data"]
    ids = [instance[name] for name in ("dag_id", "run_id", "task_id", "map_index", "try_number")]
    assert ids == ["dag", "run", "task", -1, 2]
    assert instance["stages"][0]["details"] == [EVIL]
    assert instance["stages"][0]["scans"] == [0]
    assert instance["reads"][0]["total_bytes"] == 7
    (listed,) = found["partitions"]
    assert listed["reference"] == instance["scans"][0]["reference"] == [23, 27]
    assert len(listed["partitions"]) == 250
    assert EVIL in listed["partitions"][-1]["values"]


def test_the_report_of_a_descriptor_without_a_report_has_no_stages(run, tmp_path):
    run.with_name("2.report.json").unlink()
    instance = json.loads(written(run, tmp_path).found[1][1])["data"]
    assert (instance["kept"], instance["stages"], instance["reads"]) == (250, [], [])


@pytest.mark.parametrize("name", ["3.json", "2.report.json"])
def test_a_path_that_is_no_descriptor_is_an_error(run, tmp_path, capsys, name):
    assert main(["report", str(run.with_name(name))]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_an_html_report_without_built_pages_names_make_pages(run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(html_files, "STATIC", tmp_path)
    assert main(["report", str(run), "--html", str(tmp_path / "run.html")]) == 1
    assert "make pages" in capsys.readouterr().err
    assert not (tmp_path / "run.html").exists()
