"""The docs say what the code says."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
import yaml

from airflow_hive_opt.documents import descriptor
from airflow_hive_opt.documents.format import Format
from airflow_hive_opt.documents.indexed_scans import IndexCode
from airflow_hive_opt.documents.job import Stages
from airflow_hive_opt.documents.key_set import KeySetCode
from airflow_hive_opt.documents.report import NO_PARTITIONED_TABLE, headline
from airflow_hive_opt.get_provider_info import get_provider_info
from airflow_hive_opt.pruning.advice import ADVICE
from airflow_hive_opt.pruning.reasons import Reason
from airflow_hive_opt.rewriting import Refusal
from tests import pages
from tests.document_fields import FORMATS, fields_of_classes, fields_of_page
from tests.pages import PAGES, PROJECT
from tests.versions.installed import needs_airflow

DESCRIPTOR_PAGE = PROJECT / "docs" / "reference" / "descriptor.md"
every_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(PROJECT)))


def test_every_reason_is_listed_with_its_sentence():
    text = (PROJECT / "docs" / "reference" / "reasons.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    codes: list[Reason | KeySetCode | IndexCode] = [*Reason, *KeySetCode, *IndexCode]
    assert rows == [f"| `{code.value}` | {code.sentence} |" for code in codes]
    assert f"`{NO_PARTITIONED_TABLE}`" in text  # not of a scan


def test_the_advice_on_every_reason_is_on_the_troubleshooting_page():
    page = (PROJECT / "docs" / "guides" / "troubleshooting.md").read_text()
    section = page.split("## Nothing is pruned")[1].split("\n## ")[0]
    found = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            codes, _, advice = line.strip("| ").split(" | ")
            advice = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", advice).replace("`", "")
            found |= dict.fromkeys(re.findall(r"`(\w+)`", codes), advice)
    assert found == {reason.value: advice for reason, advice in ADVICE.items()}
    assert set(Reason) - set(ADVICE) == {Reason.PRUNED, Reason.RESTRICTED, Reason.OWN_CONDITION}


def test_every_refusal_of_a_rewriting_is_listed_with_its_sentence():
    text = (PROJECT / "docs" / "how-it-works" / "correlation.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{refusal.value}` | {refusal.sentence} |" for refusal in Refusal]


def test_every_option_of_the_configuration_is_described():
    text = (PROJECT / "docs" / "reference" / "settings.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `AIRFLOW__HIVE_OPT__", text, re.MULTILINE)
    assert set(rows) == set(get_provider_info()["config"]["hive_opt"]["options"])


def linked(path):
    """The files that a page links to."""
    names = re.findall(r"\]\(([^)#:\s]+)[^)\s]*\)", path.read_text())
    return {(path.parent / name).resolve() for name in names}


def test_every_page_is_linked_from_the_index_of_its_folder():
    folders = [path.parent for path in (PROJECT / "docs").glob("*/index.md")]
    assert len(folders) == 4
    for folder in folders:
        listed = {folder / "index.md"} | linked(folder / "index.md")
        listed |= {page for path in listed if path.name == "index.md" for page in linked(path)}
        assert sorted({path for path in PAGES if folder in path.parents} - listed) == []
    assert {folder / "index.md" for folder in folders} <= linked(PROJECT / "README.md")


def test_the_site_has_every_page():
    folder = PROJECT / "docs"
    trees = (folder / "index.rst").read_text()
    found = [path for path in PAGES if folder in path.parents and path.parent.name != "adr"]
    names = [str(path.relative_to(folder).with_suffix("")) for path in found]
    assert len(names) > 30
    assert [name for name in names if f"   {name}\n" not in trees] == []


def test_every_guarantee_names_existing_tests():
    text = (PROJECT / "docs" / "reference" / "guarantees.md").read_text()
    named = set(re.findall(r"`(tests/[\w/.]+)`", text))
    assert len(named) > 10
    assert [name for name in sorted(named) if not (PROJECT / name).exists()] == []


def test_messages_on_the_troubleshooting_page_are_in_the_code():
    page = (PROJECT / "docs" / "guides" / "troubleshooting.md").read_text()
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| ")]
    shown = [text for row in rows for text in re.findall(r"`([^`]+)`", row[0])]
    assert len(shown) > 50
    assert [text for text in shown if not pages.in_the_code(text)] == []
    assert not pages.in_the_code("no answer from the moon")


@every_page
def test_code_blocks_commands_and_links_of_each_page_are_right(path):
    page = path.read_text()
    problems = [
        *pages.python_problems(page),
        *pages.sql_problems(page),
        *pages.command_problems(page),
        *pages.make_problems(page),
        *pages.install_problems(page),
        *pages.link_problems(page, path),
    ]
    assert problems == []


@needs_airflow("3.0")  # the examples import airflow.sdk
@every_page
def test_dags_on_each_page_can_be_imported(path, tmp_path):
    assert pages.dag_problems(path.read_text(), tmp_path) == []


@needs_airflow("3.3")
@every_page
def test_airflow_commands_on_each_page_are_accepted(path):
    assert pages.airflow_problems(path.read_text()) == []


def test_the_pages_have_blocks_commands_and_anchors_to_check():
    text = {str(path.relative_to(PROJECT)): path.read_text() for path in PAGES}
    found = [block.language for page in text.values() for block in pages.blocks(page)]
    assert found.count("python") >= 5
    assert found.count("sql") >= 4
    called = [command for page in text.values() for command in pages.commands(page)]
    for program in ("airflow-hive-opt ", "airflow ", "make "):
        assert sum(command.startswith(program) for command in called) >= 4
    assert "nothing-is-pruned" in pages.anchors(text["docs/guides/troubleshooting.md"])


@pytest.mark.parametrize(
    ("check", "page", "problem"),
    [
        (pages.python_problems, "```python\nwith DAG(\n```", "was never closed"),
        (pages.sql_problems, "```sql\nSELECT FROM WHERE\n```", "line 1"),
        (pages.sql_problems, "```sql\nSELECT ${x}\n```", "variable"),
        (pages.sql_problems, "```sql unsupported\nSELECT 1\n```", "the planner parses it"),
        (pages.command_problems, "a `airflow-hive-opt\nrun --catalog X` b", "unrecognized"),
        (pages.command_problems, "x\n\n    A=b airflow-hive-opt plan  # c\n", "invalid choice"),
        (pages.command_problems, "```sh\nairflow-hive-opt run \\\n --row\n```", "--row"),
        (pages.airflow_problems, "`airflow backfill create --from-now`", "required"),
        (pages.make_problems, "```\n$ make tests N=1\n```", "make tests: no such target"),
        (pages.install_problems, "`pip install 'airflow-hive-opt[java,hive]'`", "no extra hive"),
    ],
)
def test_a_broken_block_is_noticed(check, page, problem):
    (found,) = check(page)
    assert problem in found


@pytest.mark.parametrize(
    "link", ["gone.md", "#gone", "docs/guides/gates.md#gone", "../x/README.md"]
)
def test_a_broken_link_is_noticed(link):
    (found,) = pages.link_problems(f"# Here\n[there]({link}) [here](#here)", PROJECT / "README.md")
    assert found.startswith(f"{link}: no such")


@needs_airflow("3.0")
@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("    MapJoinPruneOperator(task_id='a', sqll='SELECT 1')", "sqll"),
        ("    pass", "no DAG with tasks"),
    ],
)
def test_a_broken_dag_is_noticed(rest, problem, tmp_path):
    operator = "airflow_hive_opt.operators.map_join_prune import MapJoinPruneOperator"
    head = f"from airflow.sdk import DAG\nfrom {operator}\nwith DAG('broken'):"
    (found,) = pages.dag_problems(f"```python\n{head}\n{rest}\n```", tmp_path)
    assert problem in found


def test_pre_commit_hooks_are_the_checks_of_make_lint():
    hooks = yaml.safe_load((PROJECT / ".pre-commit-config.yaml").read_text())["repos"][0]["hooks"]
    makefile = (
        (PROJECT / "Makefile")
        .read_text()
        .replace("$(BIN)", ".venv/bin")
        .replace("$(MAKE)", "make")
        .replace("\\\n\t\t", "")
    )
    lint = makefile.split("\nlint:")[1].split("\n\n")[0]
    assert [hook["entry"].strip() for hook in hooks] == lint.split("\n\t")[1:]


def test_the_docs_give_the_format_versions_that_the_code_has():
    rows = re.findall(r"^\| `([a-z ]+)` \| (\d+) \|", DESCRIPTOR_PAGE.read_text(), re.MULTILINE)
    assert dict(rows) == {each.kind: str(each.version) for each in FORMATS}


def test_the_documented_fields_are_those_of_the_data_classes():
    """Each has its row, in order, and its type, which says whether it may be null."""
    documented, expected = fields_of_page(DESCRIPTOR_PAGE.read_text()), fields_of_classes()
    assert documented.keys() == expected.keys()
    for name, fields in expected.items():
        assert documented[name] == fields, f"the table of {name}"


def test_fields_of_data_classes_are_described_by_their_json_types():
    @dataclass(frozen=True)
    class _Inner:
        ratio: float | None

    @dataclass(frozen=True)
    class Outer:
        pairs: tuple[tuple[int, bool], ...]
        inner: tuple[_Inner, ...] | None
        names: Mapping[str, str | None]
        stages: Stages
        value: str | int | None

    Outer.__annotations__ |= {"inner": tuple[_Inner, ...] | None}
    assert fields_of_classes((Format("outer document", 1, Outer),)) == {
        "Outer document": [
            ("pairs", "list of [integer, boolean]"),
            ("inner", "list of [Inner](#inner) or null"),
            ("names", "object of (string or null)"),
            ("stages", "`keys`, `local task`, `map join` or `both`"),
            ("value", "string or integer or null"),
        ],
        "Inner": [("ratio", "number or null")],
    }


def test_the_documented_descriptor_is_valid():
    (example,) = (
        block.text
        for block in pages.blocks(DESCRIPTOR_PAGE.read_text())
        if block.language == "json"
    )
    document = json.loads(example)
    sha256 = document.pop("sha256")
    sealed = json.dumps(document, separators=(",", ":")).encode("ascii")
    assert sha256 == hashlib.sha256(sealed).hexdigest()
    found = descriptor.decode(example.encode())
    assert found.query_digest == descriptor.query_digest(
        "SELECT ss.price FROM sales ss JOIN days d ON ss.ds = d.ds WHERE d.month_end", None
    )
    assert headline(found).startswith("kept 1 of 365 partitions")
